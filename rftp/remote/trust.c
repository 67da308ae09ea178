/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/trust.c: owns the question on the terminal.  The files are known_hosts'.
 */
#include "rftp/remote/trust.h"

#include "base/addr.h"
#include "rftp/remote/known_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ANSWER_MAX 128

/* A server's key, and what there is to say of it. */
struct subject {
	struct tls_key key;
	char fingerprint[TLS_FINGERPRINT_MAX];
	char name[KNOWN_HOSTS_NAME_MAX];
	char file[PATH_MAX];
};

/* $XDG_CONFIG_HOME/rftp/known_hosts, or beneath ~/.config.  -ENOENT: the environment names no
 * home. */
static int trust_user_file(char *path, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (config && *config == '/')
		n = snprintf(path, size, "%s/rftp/known_hosts", config);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.config/rftp/known_hosts", home);
	else
		return -ENOENT;
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

/* Reads one line from the terminal.  Its length, 0 at its end, -ECANCELED. */
static int read_answer(int tty, int cancel_fd, char answer[ANSWER_MAX])
{
	struct pollfd fds[2] = {{tty, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
	ssize_t n;

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[1].revents)
		return -ECANCELED;
	n = read(tty, answer, ANSWER_MAX - 1);
	if (n <= 0)
		return 0;
	answer[n] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return (int)n;
}

/* 1: yes; 0: no; -ECANCELED; -ENOTTY: there is nobody to ask. */
static int ask(struct trust *t, const struct subject *s)
{
	char answer[ANSWER_MAX];
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC), n;

	if (tty < 0)
		return -ENOTTY;
	t->asked = true;
	dprintf(tty,
		"The server %s is not known yet.\n"
		"Its host key has the fingerprint %s.\n"
		"Compare it with what its administrator says (rftpd logs it when it starts).\n"
		"Trust it from now on (yes, no, or the fingerprint)? ",
		s->name, s->fingerprint);
	for (;;) {
		n = read_answer(tty, t->cancel_fd, answer);
		if (n <= 0 || !strcasecmp(answer, "no") || !strcasecmp(answer, "n")) {
			n = n < 0 ? n : 0;
			break;
		}
		if (!strcasecmp(answer, "yes") || !strcmp(answer, s->fingerprint)) {
			n = 1;
			break;
		}
		dprintf(tty, "Please type yes, no, or the fingerprint: ");
	}
	if (n < 0)
		dprintf(tty, "\n");
	close(tty);
	return n;
}

static int remember(struct trust *t, const struct subject *s, char why[TLS_WHY_MAX])
{
	char text[KNOWN_HOSTS_NAME_MAX + PATH_MAX + 128];
	int err;

	if (!*s->file) {
		snprintf(why, TLS_WHY_MAX,
			"the host key cannot be remembered: the environment names no home "
			"directory; give --known-hosts FILE");
		return -ENOENT;
	}
	err = known_hosts_add(s->file, s->name, &s->key);
	if (err) {
		snprintf(why, TLS_WHY_MAX, "the host key cannot be remembered in %.150s: %s",
			s->file, strerror(-err));
		return err;
	}
	if (t->note && !t->asked) {
		snprintf(text, sizeof text, "%s is new: its host key %s is remembered in %s",
			s->name, s->fingerprint, s->file);
		t->note(t->note_ctx, text);
	}
	return 0;
}

static int refuse(const struct subject *s, char why[TLS_WHY_MAX], const char *text)
{
	snprintf(why, TLS_WHY_MAX,
		"%.80s is not known (host key %s)%s: compare the key with what rftpd logs when it "
		"starts, and give --accept-new",
		s->name, s->fingerprint, text);
	return -EKEYREJECTED;
}

static int meet_new(struct trust *t, const struct subject *s, const struct sockaddr *address,
	char why[TLS_WHY_MAX])
{
	int err;

	switch (t->policy) {
	case TRUST_AUTO:
		if (addr_is_loopback(address))
			return 0;
		break;
	case TRUST_ACCEPT_NEW:
		return remember(t, s, why);
	case TRUST_STRICT:
		return refuse(s, why, "");
	default:
		break;
	}
	err = ask(t, s);
	if (err == -ENOTTY)
		return refuse(s, why, ", and there is no terminal to ask on");
	if (err < 0) {
		snprintf(why, TLS_WHY_MAX, "interrupted");
		return err;
	}
	if (!err) {
		snprintf(why, TLS_WHY_MAX, "the host key of %.200s is not trusted", s->name);
		return -EKEYREJECTED;
	}
	return remember(t, s, why);
}

/* What the files say; the first that names the host decides. */
static int look_up(const struct subject *s, const char *path, enum known_hosts_answer *answer,
	char where[256], char why[TLS_WHY_MAX])
{
	unsigned line;
	int err = known_hosts_find(path, s->name, &s->key, answer, &line);

	if (err)
		snprintf(why, TLS_WHY_MAX, "%.200s: %s", path, strerror(-err));
	snprintf(where, 256, "%.230s:%u", path, line);
	return err;
}

/* And, where that is bad, `why`. */
static int ask_files(struct trust *t, const struct subject *s, enum known_hosts_answer *answer,
	char why[TLS_WHY_MAX])
{
	const char *paths[2] = {s->file, TRUST_SYSTEM_FILE};
	char where[256];

	*answer = KNOWN_HOSTS_NEW;
	for (int i = 0; i < 2 && *answer == KNOWN_HOSTS_NEW; i++) {
		int err = *paths[i] ? look_up(s, paths[i], answer, where, why) : 0;

		if (err)
			return err;
		if (*t->known_hosts)
			break; /* the user's own choice of a file is the only one */
	}
	if (*answer == KNOWN_HOSTS_CHANGED)
		snprintf(why, TLS_WHY_MAX,
			"THE HOST KEY HAS CHANGED: %.60s shows %s, which is not the key in %.70s. "
			"Somebody may be in between; if the server has a new key, remove that line",
			s->name, s->fingerprint, where);
	else if (*answer == KNOWN_HOSTS_REVOKED)
		snprintf(why, TLS_WHY_MAX, "the host key of %.60s (%s) is revoked in %.100s",
			s->name, s->fingerprint, where);
	return 0;
}

int trust_check(struct trust *t, const struct tls *tls, const struct sockaddr *address,
	char why[TLS_WHY_MAX])
{
	char ca_why[TLS_WHY_MAX];
	enum known_hosts_answer answer;
	struct subject s;
	int err = tls_peer_key(tls, &s.key);

	if (err) {
		snprintf(why, TLS_WHY_MAX, "the server shows a key that is not understood");
		return -EKEYREJECTED;
	}
	tls_key_fingerprint(&s.key, s.fingerprint);
	known_hosts_name(t->host, t->port, s.name);
	s.file[0] = '\0';
	if (*t->known_hosts)
		snprintf(s.file, sizeof s.file, "%s", t->known_hosts);
	else if (trust_user_file(s.file, sizeof s.file))
		s.file[0] = '\0';

	if (*t->fingerprint) {
		if (!strcmp(t->fingerprint, s.fingerprint))
			return 0;
		snprintf(why, TLS_WHY_MAX,
			"the server's host key is %s, not the one that --host-key names",
			s.fingerprint);
		return -EKEYREJECTED;
	}
	err = ask_files(t, &s, &answer, why);
	if (err || answer == KNOWN_HOSTS_SAME)
		return err;
	if (answer == KNOWN_HOSTS_REVOKED)
		return -EKEYREJECTED;
	if (t->has_ca && tls_peer_verified(tls, ca_why))
		return 0; /* also with a new key: that is what authorities are for */
	if (answer == KNOWN_HOSTS_CHANGED)
		return -EKEYREJECTED;
	if (!t->has_ca)
		return meet_new(t, &s, address, why);
	snprintf(why, TLS_WHY_MAX, "the authorities in --ca do not vouch for %.80s: %.120s", s.name,
		ca_why);
	return -EKEYREJECTED;
}
