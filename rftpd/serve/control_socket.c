/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/control_socket: see control_socket.h.
 *
 * Owns the sockets: who may connect to them, and the form of questions and answers.
 */
#include "rftpd/serve/control_socket.h"

#include "base/addr.h"
#include "rftpd/serve/control_command.h"
#include "rftpd/serve/statistics.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- rftpctl ---- */

static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof peer;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (!peer.uid || peer.uid == geteuid());
}

static void answer_control(void *owner, int fd, char *question, FILE *out)
{
	if (may_ask(fd))
		control_command_run(owner, question, out);
	else
		fputs("error: only root, and the user as whom rftpd runs, may ask\n", out);
}

/* Whether somebody serves there: the name of one that does is not taken. */
static bool is_served(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served = fd >= 0 &&
		      (!connect(fd, (const struct sockaddr *)at, sizeof *at) || errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return served;
}

/* A socket that listens, and that is this user's only from its first moment on. */
static int listen_unix(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct stat st;
	mode_t mask;
	int fd, err = 0;

	if (strlen(path) >= sizeof at.sun_path)
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	if (!lstat(path, &st) && S_ISSOCK(st.st_mode)) {
		if (is_served(&at))
			return -EADDRINUSE;
		unlink(path); /* left behind by one that was killed */
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mask = umask(0177);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 16) < 0)
		err = -errno;
	umask(mask);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* ---- Prometheus ---- */

static void answer_metrics(void *owner, int fd, char *question, FILE *out)
{
	bool known = !strncmp(question, "GET /metrics ", strlen("GET /metrics "));

	(void)fd;
	fprintf(out,
		"HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		"Connection: close\r\n\r\n",
		known ? "200 OK" : "404 Not Found");
	if (known)
		statistics_expose(owner, out);
	else
		fputs("GET /metrics\n", out);
}

/* The first address that it stands for.  0 or -EINVAL, logged. */
static int resolve(const struct daemon_settings *settings, struct addr *out)
{
	char host[256], shown[ADDR_TEXT_MAX];
	uint16_t port;
	size_t count = 0;
	int err = addr_split(settings->metrics, host, sizeof host, 0, &port);

	if (!err)
		err = addr_resolve(host, port, false, out, 1, &count);
	if (err || !count) {
		log_error("metrics %s: no such address", settings->metrics);
		return -EINVAL;
	}
	if (settings->insecure || addr_is_loopback((struct sockaddr *)&out->ss))
		return 0;
	addr_format((struct sockaddr *)&out->ss, shown);
	log_error("metrics %s: %s is not a loopback address, and anybody who reaches it could read "
		  "there what is exported and how much it is used.  --insecure allows it",
		settings->metrics, shown);
	return -EINVAL;
}

static int listen_tcp(struct addr *at)
{
	int fd = socket(at->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int err = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&at->ss, at->len) < 0 || listen(fd, 16) < 0 ||
		getsockname(fd, (struct sockaddr *)&at->ss, &at->len) < 0)
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

/* ---- both ---- */

bool control_socket_path(const struct daemon_settings *settings, char *out, size_t size)
{
	const char *directory = getenv("RUNTIME_DIRECTORY");

	if (settings->control)
		snprintf(out, size, "%s", settings->control);
	else if (directory && *directory)
		snprintf(out, size, "%.*s/control", (int)strcspn(directory, ":"), directory);
	else
		return false;
	return true;
}

static int open_control(struct daemon *d)
{
	char path[PATH_MAX];
	int fd, err;

	if (!control_socket_path(d->settings, path, sizeof path))
		return 0;
	fd = listen_unix(path);
	err = fd < 0 ? fd : text_server_open(&d->control, &d->poller, fd, "\n", answer_control, d);
	if (err)
		log_error("control %s: %s", path,
			err == -EADDRINUSE ? "another rftpd is there" : strerror(-err));
	if (!err)
		d->control_path = strdup(path); /* a reload may change the settings */
	return err;
}

static int open_metrics(struct daemon *d)
{
	char shown[ADDR_TEXT_MAX];
	struct addr at;
	int fd, err = resolve(d->settings, &at);

	if (err)
		return err;
	fd = listen_tcp(&at);
	err = fd < 0 ? fd
		     : text_server_open(&d->metrics, &d->poller, fd, "\r\n\r\n", answer_metrics, d);
	if (err) {
		log_error("metrics %s: %s", d->settings->metrics, strerror(-err));
		return err;
	}
	addr_format((struct sockaddr *)&at.ss, shown);
	log_info("metrics are at http://%s/metrics", shown);
	return 0;
}

int control_socket_open(struct daemon *d)
{
	int err = open_control(d);

	if (!err && d->settings->metrics)
		err = open_metrics(d);
	return err;
}

/* Whether a socket could be made there; one that is there may be a daemon's that runs. */
static int check_path(const char *path)
{
	char directory[PATH_MAX];
	struct stat st;

	if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
		return -ENAMETOOLONG;
	if (!lstat(path, &st))
		return S_ISSOCK(st.st_mode) ? 0 : -EEXIST;
	snprintf(directory, sizeof directory, "%s", path);
	return access(dirname(directory), W_OK | X_OK) ? -errno : 0;
}

int control_socket_check(const struct daemon_settings *settings)
{
	char path[PATH_MAX];
	struct addr at;
	int err = control_socket_path(settings, path, sizeof path) ? check_path(path) : 0;

	if (err) {
		log_error("control %s: %s", path, strerror(-err));
		return -EINVAL;
	}
	if (!settings->metrics)
		return 0;
	if (resolve(settings, &at))
		return -EINVAL;
	err = addr_is_local((struct sockaddr *)&at.ss);
	if (err)
		log_error("metrics %s: %s", settings->metrics, strerror(-err));
	return err ? -EINVAL : 0;
}

void control_socket_close(struct daemon *d)
{
	text_server_close(&d->control);
	text_server_close(&d->metrics);
	if (d->control_path)
		unlink(d->control_path);
	free(d->control_path);
	d->control_path = NULL;
}
