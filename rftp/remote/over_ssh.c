/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/over_ssh: see over_ssh.h.
 */
#include "rftp/remote/over_ssh.h"

#include "base/addr.h"
#include "base/input.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GREETING "rftp-once"
#define OUTPUT_MAX 65536u /* of what a login script may say before */
#define END_MS 2000       /* ssh ends within this, or is ended */

extern char **environ;

/* ---- what is said ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_key(const char *text, uint8_t key[MESSAGE_LOGIN_ONCE_BYTES])
{
	if (strlen(text) != 2 * MESSAGE_LOGIN_ONCE_BYTES)
		return false;
	for (unsigned i = 0; i < MESSAGE_LOGIN_ONCE_BYTES; i++) {
		int high = hex(text[2 * i]), low = hex(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

int over_ssh_parse(const char *line, struct over_ssh_line *out)
{
	char copy[512], *rest = copy, *words[7] = {NULL};
	uint64_t port;
	unsigned n = 0;
	int err = -EPROTO;

	if (strncmp(line, GREETING " ", strlen(GREETING) + 1) != 0)
		return -ENOENT;
	if (strlen(line) >= sizeof copy)
		return -EPROTO;
	strcpy(copy, line);
	while (n < 7 && (words[n] = strsep(&rest, " ")))
		n++;
	if (n == 6 && !strcmp(words[1], "1") && !number_parse(words[2], 1, UINT16_MAX, &port) &&
		!strncmp(words[3], "SHA256:", 7) && strlen(words[3]) < sizeof out->fingerprint &&
		get_key(words[4], out->key) && strlen(words[5]) < sizeof out->address) {
		out->port = (uint16_t)port;
		strcpy(out->fingerprint, words[3]);
		strcpy(out->address, words[5]);
		err = 0;
	}
	explicit_bzero(copy, sizeof copy);
	return err;
}

/* ---- processes ---- */

/*
 * The user's command is for the shell, as it may have options of its own; what comes behind it is
 * not.  Ctrl-C is for us: ssh must not end with a transfer that is stopped.  `in` < 0: it has no
 * input, and what it complains of is not shown.
 */
static int spawn(const char *ssh, const char *const *arguments, int in, int out, pid_t *pid)
{
	char *script = NULL;
	const char *argv[12] = {"sh", "-c", NULL, "rftp"};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t defaults, none;
	void (*before)(int);
	unsigned n = 4;
	int err;

	if (asprintf(&script, "exec %s \"$@\"", ssh) < 0)
		return -ENOMEM;
	argv[2] = script;
	while (*arguments && n < 11)
		argv[n++] = *arguments++;
	sigfillset(&defaults);
	sigdelset(&defaults, SIGINT);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	if (in >= 0) {
		posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	} else { /* what is wrong, ssh has said before, when it connected */
		posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	}
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	before = signal(SIGINT, SIG_IGN); /* which is inherited */
	err = posix_spawn(pid, "/bin/sh", &files, &attributes, (char *const *)argv, environ);
	if (before != SIG_ERR)
		signal(SIGINT, before);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	free(script);
	return -err;
}

static void wait_for(pid_t pid)
{
	const struct timespec pause = {0, 10000000};

	for (int ms = 0; ms < END_MS; ms += 10) {
		if (waitpid(pid, NULL, WNOHANG))
			return;
		nanosleep(&pause, NULL);
	}
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* The next line of `fd`, without its end: 1; 0: no more; -ECANCELED; -E2BIG; -errno. */
static int next_line(int fd, int cancel_fd, size_t *budget, char *line, size_t size)
{
	size_t len = 0;

	for (;;) {
		char byte;
		ssize_t n = input_read(fd, cancel_fd, &byte, 1);

		if (n <= 0)
			return (int)n;
		if (!(*budget)--)
			return -E2BIG;
		if (byte == '\n')
			break;
		if (len < size - 1)
			line[len++] = byte;
	}
	if (len && line[len - 1] == '\r')
		len--;
	line[len] = '\0';
	return 1;
}

/* Where the host's name leads by the user's configuration of ssh: `ssh -G`. */
static void find_host(const char *ssh, const char *target, int cancel_fd, char host[256])
{
	const char *const arguments[] = {"-G", target, NULL};
	size_t budget = OUTPUT_MAX;
	char line[512];
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return;
	if (spawn(ssh, arguments, -1, ends[1], &pid))
		pid = 0;
	close(ends[1]);
	while (pid && next_line(ends[0], cancel_fd, &budget, line, sizeof line) == 1)
		if (!strncmp(line, "hostname ", 9) && strlen(line + 9) < 256)
			strcpy(host, line + 9);
	close(ends[0]);
	if (pid)
		wait_for(pid);
}

/* Of a host with many addresses the one that ssh came to, if it is one of them: behind a
 * translation of addresses it is not. */
static void choose_address(char host[256], const char *address)
{
	char bare[64], shown[ADDR_TEXT_MAX], wanted[ADDR_TEXT_MAX];
	struct addr found[16], there;
	size_t count, one;

	snprintf(bare, sizeof bare, "%s", address + (*address == '['));
	bare[strcspn(bare, "]")] = '\0';
	if (addr_resolve(bare, 0, true, &there, 1, &one) || !one ||
		addr_resolve(host, 0, false, found, 16, &count))
		return;
	addr_format((struct sockaddr *)&there.ss, wanted);
	for (size_t i = 0; i < count; i++) {
		addr_format((struct sockaddr *)&found[i].ss, shown);
		if (!strcmp(shown, wanted)) {
			snprintf(host, 256, "%s", bare);
			return;
		}
	}
}

static int refuse(char why[OVER_SSH_WHY_MAX], int err, const char *text)
{
	snprintf(why, OVER_SSH_WHY_MAX, "%s", text);
	return err;
}

/* Its output, until it says where it listens. */
static int hear(int fd, int cancel_fd, struct over_ssh_line *said, char why[OVER_SSH_WHY_MAX])
{
	size_t budget = OUTPUT_MAX;
	char line[512], last[200] = "";
	int err;

	while ((err = next_line(fd, cancel_fd, &budget, line, sizeof line)) == 1) {
		err = over_ssh_parse(line, said);
		explicit_bzero(line, err == -ENOENT ? 0 : sizeof line);
		if (err == -EPROTO)
			return refuse(
				why, err, "the rftpd at the other side is of another version");
		if (!err)
			return 0;
		snprintf(last, sizeof last, "%.190s", line);
	}
	if (err == -ECANCELED)
		return refuse(why, err, "interrupted");
	snprintf(why, OVER_SSH_WHY_MAX,
		"ssh has ended, or said too much, before rftpd listened there%s%s: is rftpd "
		"installed "
		"(--rftpd-path), and what does ssh say?",
		*last ? ", with: " : "", last);
	return -ECONNREFUSED;
}

/* As ssh itself has it since 9.6: its configuration may hand these to a shell (ProxyCommand %h),
 * and a URL may be somebody else's. */
static const char *refusal(const struct url *url)
{
	const char *words[2] = {url->host, url->user};

	for (unsigned i = 0; i < 2; i++) {
		if (*words[i] == '-')
			return "a host or user does not begin with -";
		for (const char *s = words[i]; *s; s++)
			if ((unsigned char)*s < ' ' || *s == 0x7f ||
				strchr(" '`\"$\\;&<>|(){}", *s))
				return "there is no host or user with a blank, a control character "
				       "or "
				       "one of '`\"$\\;&<>|(){}";
	}
	return NULL;
}

int over_ssh_start(struct over_ssh *o, const struct url *url, const char *ssh, const char *rftpd,
	int cancel_fd, char why[OVER_SSH_WHY_MAX])
{
	char target[600], port[8], command[600];
	const char *arguments[6];
	struct over_ssh_line said;
	int in[2], out[2], err;
	unsigned n = 0;

	*o = (struct over_ssh){.input = -1};
	if (refusal(url))
		return refuse(why, -EINVAL, refusal(url));
	snprintf(target, sizeof target, "%s%s%s", url->user, *url->user ? "@" : "", url->host);
	snprintf(port, sizeof port, "%u", url->port);
	snprintf(command, sizeof command, "%s --serve-once", rftpd);
	if (url->port) {
		arguments[n++] = "-p";
		arguments[n++] = port;
	}
	arguments[n++] = target;
	arguments[n++] = command;
	arguments[n] = NULL;
	if (pipe2(in, O_CLOEXEC))
		return refuse(why, -errno, strerror(errno));
	if (pipe2(out, O_CLOEXEC)) {
		err = -errno;
		close(in[0]);
		close(in[1]);
		return refuse(why, err, strerror(-err));
	}
	err = spawn(ssh, arguments, in[0], out[1], &o->pid);
	close(in[0]);
	close(out[1]);
	o->input = in[1];
	if (err) {
		o->pid = 0;
		refuse(why, err, strerror(-err));
	} else {
		err = hear(out[0], cancel_fd, &said, why);
	}
	close(out[0]);
	if (err) {
		if (o->pid)
			kill(o->pid, SIGTERM); /* it may wait for somebody at the terminal */
		over_ssh_end(o);
		return err;
	}
	snprintf(o->host, sizeof o->host, "%s", url->host);
	find_host(ssh, target, cancel_fd, o->host);
	choose_address(o->host, said.address);
	o->port = said.port;
	memcpy(o->fingerprint, said.fingerprint, sizeof o->fingerprint);
	memcpy(o->key, said.key, sizeof o->key);
	explicit_bzero(&said, sizeof said);
	return 0;
}

void over_ssh_end(struct over_ssh *o)
{
	if (o->input >= 0)
		close(o->input);
	o->input = -1;
	if (o->pid > 0)
		wait_for(o->pid);
	o->pid = 0;
	explicit_bzero(o->key, sizeof o->key);
}
