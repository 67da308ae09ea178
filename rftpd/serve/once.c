/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/once: see once.h.
 */
#include "rftpd/serve/once.h"

#include "base/addr.h"
#include "base/clock.h"
#include "rftpd/serve/daemon.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static char home[PATH_MAX] = "/", user[MESSAGE_NAME_MAX + 1];
/* The settings have it const: only a login is checked against it. */
static uint8_t *one_key;

const char *once_home(void)
{
	return home;
}

static int make_key(uint8_t key[MESSAGE_LOGIN_ONCE_BYTES])
{
	return getrandom(key, MESSAGE_LOGIN_ONCE_BYTES, 0) == MESSAGE_LOGIN_ONCE_BYTES ? 0 : -EIO;
}

/* The address that ssh came to, the third word of SSH_CONNECTION; loopback without ssh. */
static void server_address(char out[ADDR_TEXT_MAX])
{
	const char *words = getenv("SSH_CONNECTION");
	char address[ADDR_TEXT_MAX] = "127.0.0.1";

	if (words && sscanf(words, "%*s %*s %48s", address) != 1)
		strcpy(address, "127.0.0.1");
	snprintf(out, ADDR_TEXT_MAX, strchr(address, ':') ? "[%.48s]" : "%.48s", address);
}

static int go_home(void)
{
	const struct passwd *who = getpwuid(geteuid());
	const char *directory = getenv("HOME");

	if (!directory || *directory != '/')
		directory = who ? who->pw_dir : "/";
	if (who)
		snprintf(user, sizeof user, "%s", who->pw_name);
	else
		snprintf(user, sizeof user, "%u", (unsigned)geteuid());
	if (chdir(directory) || !getcwd(home, sizeof home)) {
		log_warning("%s: %s; paths begin at /", directory, strerror(errno));
		if (chdir("/"))
			return -errno;
		strcpy(home, "/");
	}
	return 0;
}

int once_prepare(struct daemon_settings *s, uint8_t key[MESSAGE_LOGIN_ONCE_BYTES])
{
	char why[DAEMON_WHY_MAX], address[ADDR_TEXT_MAX], listen[ADDR_TEXT_MAX + 8];
	int err;

	if (s->export_count || s->listen_count || s->users || s->authorized_keys || s->client_ca) {
		log_error("--serve-once goes without export, listen and logins: it serves what its "
			  "user may use, to himself");
		return -EINVAL;
	}
	err = make_key(key);
	if (!err)
		err = go_home();
	if (err) {
		log_error("cannot serve: %s", strerror(-err));
		return err;
	}
	server_address(address);
	snprintf(listen, sizeof listen, "%s:0", address);
	err = daemon_settings_set(s, DAEMON_ORIGIN_COMMAND, "listen", listen, why);
	if (!err)
		err = daemon_settings_set(s, DAEMON_ORIGIN_COMMAND, "anonymous", "no", why);
	if (err) {
		log_error("%s", why);
		return err;
	}
	one_key = key;
	s->sandbox = s->require_sandbox = false; /* all that its user may use is served */
	s->once_key = key;
	s->once_user = user;
	s->max_sessions = s->max_sessions < 8 ? s->max_sessions : 8;
	return 0;
}

static void take_input(void *owner)
{
	struct daemon *d = owner;
	char ignored[512];
	ssize_t n = read(STDIN_FILENO, ignored, sizeof ignored);

	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	log_debug("standard input has ended, and so does this");
	poller_remove(&d->poller, &d->once.input);
	d->once.over = true;
}

/* Its end is what counts; a file, which epoll does not take, has it at once. */
static int watch_input(struct daemon *d)
{
	int err = poller_add(&d->poller, &d->once.input, STDIN_FILENO, take_input, d);

	if (err != -EPERM)
		return err;
	d->once.over = true;
	return 0;
}

int once_begin(struct daemon *d, const uint8_t key[MESSAGE_LOGIN_ONCE_BYTES], FILE *out)
{
	char fingerprint[TLS_FINGERPRINT_MAX], address[ADDR_TEXT_MAX];
	struct tls_key host_key;
	int err = tls_context_key(d->tls, &host_key);

	if (err)
		return err;
	tls_key_fingerprint(&host_key, fingerprint);
	server_address(address);
	d->once = (struct once){.active = true,
		.by_ns = clock_now_ns() + ONCE_WAIT_S * NS_PER_S,
		.input = {.fd = -1}};
	err = watch_input(d);
	if (err)
		return err;
	fprintf(out, ONCE_GREETING " 1 %u %s ",
		(unsigned)addr_port((struct sockaddr *)&d->addresses[0].ss), fingerprint);
	for (unsigned i = 0; i < MESSAGE_LOGIN_ONCE_BYTES; i++)
		fprintf(out, "%02x", key[i]);
	fprintf(out, " %s\n", address);
	return fflush(out) ? -errno : 0;
}

void once_taken(struct daemon *d)
{
	if (!d->once.active)
		return;
	d->once.taken = true;
	if (make_key(one_key)) /* one that nobody knows */
		d->once.over = true;
}

void once_ended(struct daemon *d)
{
	d->once.over = d->once.active;
}

bool once_is_over(const struct daemon *d, uint64_t now_ns)
{
	return d->once.active && (d->once.over || (!d->once.taken && now_ns >= d->once.by_ns));
}

uint64_t once_next_ns(const struct daemon *d)
{
	if (!d->once.active || d->stopping)
		return UINT64_MAX;
	return d->once.over ? 0 : d->once.taken ? UINT64_MAX : d->once.by_ns;
}
