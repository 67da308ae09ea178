/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/audit: see audit.h.
 */
#include "rftpd/audit.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/status.h"
#include "rftpd/json_string.h"
#include "rftpd/xferlog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STDERR_NAME "stderr"

/* ---- the file ---- */

void audit_init(struct audit *a)
{
	tzset(); /* localtime_r need not */
	*a = (struct audit){
		.json = {.name = "audit-log", .fd = -1}, .xferlog = {.name = "xferlog", .fd = -1}};
	pthread_mutex_init(&a->json.lock, NULL);
	pthread_mutex_init(&a->xferlog.lock, NULL);
}

static void close_file(struct audit_file *a)
{
	a->kept = false;
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	pthread_mutex_destroy(&a->lock);
}

void audit_fini(struct audit *a)
{
	close_file(&a->json);
	close_file(&a->xferlog);
}

static int open_target(const char *path)
{
	int fd;

	if (strcmp(path, STDERR_NAME))
		return log_open(path);
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int audit_use(struct audit_file *a, const char *path)
{
	int fd = path ? open_target(path) : -1, old;

	if (path && fd < 0) {
		log_error("%s %s: %s", a->name, path, strerror(-fd));
		return fd;
	}
	pthread_mutex_lock(&a->lock);
	old = a->fd;
	/* a line that broke off stands in the file that it is in, and in no other */
	a->torn = a->torn && old >= 0 && (fd < 0 || is_same_file(fd, old));
	a->failed = false;
	a->kept = path;
	if (path)
		a->fd = fd;
	pthread_mutex_unlock(&a->lock);
	if (path && old >= 0)
		close(old);
	return 0;
}

int audit_check(const char *name, const char *path)
{
	char directory[PATH_MAX];
	int err = 0;

	if (!path || !strcmp(path, STDERR_NAME))
		return 0;
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
		err = -errno;
	if (err == -ENOENT) {
		snprintf(directory, sizeof directory, "%s", path);
		err = faccessat(AT_FDCWD, dirname(directory), W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	}
	if (err)
		log_error("%s %s: %s", name, path, strerror(-err));
	return err;
}

/* ---- a line ---- */

static void put_string(FILE *out, const char *name, const char *s)
{
	if (!s)
		return;
	fprintf(out, ",\"%s\":", name);
	json_string_put(s, out);
}

static void put_time(FILE *out)
{
	char text[32] = "";
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(out, "{\"time\":\"%s.%03uZ\"", text, (unsigned)(now.tv_nsec / 1000000));
}

/* Under the lock.  What was begun and cannot be ended is a line by itself: the next one is whole.
 */
static int write_all(struct audit_file *a, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(a->fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
		a->torn = size;
	}
	return 0;
}

static void put_json(FILE *out, const struct audit_event *e)
{
	put_time(out);
	put_string(out, "event", e->event);
	if (e->session)
		fprintf(out, ",\"session\":%" PRIu32, e->session);
	put_string(out, "peer", e->peer);
	put_string(out, "user", e->user);
	put_string(out, "method", e->method);
	put_string(out, "export", e->export_name);
	put_string(out, "path", e->path);
	put_string(out, "to", e->to);
	put_string(out, "mode", e->mode && *e->mode ? e->mode : NULL);
	put_string(out, "owner", e->owner && *e->owner ? e->owner : NULL);
	put_string(out, "fabric", e->fabric);
	put_string(out, "agent", e->agent);
	if (e->removed)
		fprintf(out, ",\"removed\":%" PRIu64, e->removed);
	if (e->moved)
		fprintf(out, ",\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.3f",
			e->files, e->bytes,
			(double)(clock_now_ns() - e->since_ns) / (double)NS_PER_S);
	put_string(out, "status", status_name(e->status));
	put_string(out, "text", e->text && *e->text ? e->text : NULL);
	fputs("}\n", out);
}

static void write_line(struct audit_file *a, const struct audit_event *e,
	void (*put)(FILE *, const struct audit_event *))
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	bool is_news;
	int err = 0;

	if (out)
		put(out, e);
	if (!out || fclose(out))
		err = -ENOMEM;
	pthread_mutex_lock(&a->lock);
	if (!err && a->torn)
		err = write_all(a, "\n", 1);
	if (!err)
		err = write_all(a, line, size);
	is_news = err && !a->failed;
	a->failed = a->failed || err;
	pthread_mutex_unlock(&a->lock);
	free(line);
	if (is_news)
		log_error("%s: a line is lost: %s", a->name, strerror(-err));
}

static void put_xferlog(FILE *out, const struct audit_event *e)
{
	xferlog_put(out, e, clock_now_ns(), time(NULL));
}

void audit_write(struct audit *a, const struct audit_event *e)
{
	if (a->json.kept)
		write_line(&a->json, e, put_json);
	if (a->xferlog.kept && xferlog_has(e))
		write_line(&a->xferlog, e, put_xferlog);
}
