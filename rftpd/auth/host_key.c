/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/host_key: see host_key.h.
 */
#include "rftpd/auth/host_key.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int in_directory(char *path, size_t size, const char *directory, const char *behind)
{
	int n = snprintf(path, size, "%s%s/host_key", directory, behind);

	return n < (int)size ? 0 : -ENAMETOOLONG;
}

int host_key_path(const struct daemon_settings *settings, char *path, size_t size)
{
	const char *directory = getenv("STATE_DIRECTORY");

	if (settings->host_key)
		return snprintf(path, size, "%s", settings->host_key) < (int)size ? 0
										  : -ENAMETOOLONG;
	if (directory && *directory == '/') {
		/* several are separated by colons: the first */
		int n = snprintf(
			path, size, "%.*s/host_key", (int)strcspn(directory, ":"), directory);

		return n < (int)size ? 0 : -ENAMETOOLONG;
	}
	if (!geteuid())
		return in_directory(path, size, "/var/lib", "/rftpd");
	directory = getenv("XDG_STATE_HOME");
	if (directory && *directory == '/')
		return in_directory(path, size, directory, "/rftpd");
	directory = getenv("HOME");
	if (directory && *directory == '/')
		return in_directory(path, size, directory, "/.local/state/rftpd");
	return -ENOENT;
}

/* The directories above the file, for the owner alone where they are made here. */
static int make_parents(const char *path)
{
	char directory[PATH_MAX];

	snprintf(directory, sizeof directory, "%s", path);
	for (char *slash = strchr(directory + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(directory, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int find_path(const struct daemon_settings *settings, char path[PATH_MAX])
{
	int err = host_key_path(settings, path, PATH_MAX);

	if (err)
		log_error("the environment names no directory for the host key (%s): say "
			  "host-key = FILE",
			strerror(-err));
	return err;
}

static int load(const struct daemon_settings *settings, const char *path, struct tls_context **out)
{
	char why[TLS_WHY_MAX];
	const struct tls_files files = {
		.key = path, .certificate = settings->certificate, .ca = settings->client_ca};
	int err = tls_context_new_server(&files, out, why);

	if (err)
		log_error("host key: %s", why);
	return err;
}

/* Whether the directory of the file is the exported one or beneath it: a client could fetch the
 * key. */
static bool is_beneath(const char *exported, const char *path)
{
	char directory[PATH_MAX], *slash;
	struct stat top, here, above;
	bool found = false;
	int fd;

	snprintf(directory, sizeof directory, "%s", path);
	slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory] = '\0';
	fd = open(slash ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (stat(exported, &top) || fd < 0 || fstat(fd, &here)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (;;) {
		int up;

		found = here.st_dev == top.st_dev && here.st_ino == top.st_ino;
		up = found ? -1 : openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
		if (up < 0 || fstat(up, &above) ||
			(above.st_dev == here.st_dev && above.st_ino == here.st_ino))
			break;
		here = above;
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static int refuse_exported(const struct daemon_settings *settings, const char *path)
{
	for (unsigned i = 0; i < settings->export_count; i++) {
		const char *exported = settings->exports[i]->directory;

		if (!is_beneath(exported, path))
			continue;
		log_error("host key: %s lies within the export %s, where clients could read it: "
			  "say host-key = FILE",
			path, exported);
		return -EINVAL;
	}
	return 0;
}

/* For one session, whose client is told of it by another way. */
static int make_for_once(struct tls_context **out)
{
	char why[TLS_WHY_MAX];
	int err = tls_context_new_once(out, why);

	if (err)
		log_error("host key: %s", why);
	return err;
}

int host_key_open(const struct daemon_settings *settings, struct tls_context **out)
{
	char path[PATH_MAX], fingerprint[TLS_FINGERPRINT_MAX];
	struct tls_key key;
	bool made = false;
	int err;

	if (settings->once_key)
		return make_for_once(out);
	err = find_path(settings, path);
	if (err)
		return err;
	if (access(path, F_OK) && errno == ENOENT) {
		err = make_parents(path);
		if (!err && refuse_exported(settings, path))
			return -EINVAL;
		if (!err)
			err = tls_key_create(path);
		made = !err;
		if (err && err != -EEXIST) { /* another daemon was faster: its key is as good */
			log_error("%s: a host key cannot be made: %s", path, strerror(-err));
			return err;
		}
	}
	err = refuse_exported(settings, path);
	if (!err)
		err = load(settings, path, out);
	if (err)
		return err;
	err = tls_context_key(*out, &key);
	if (err)
		return err;
	tls_key_fingerprint(&key, fingerprint);
	log_info("host key %s (%s%s)", fingerprint, path, made ? ", made now" : "");
	return 0;
}

int host_key_check(const struct daemon_settings *settings)
{
	struct tls_context *context;
	char path[PATH_MAX];
	int err = find_path(settings, path);

	if (!err)
		err = refuse_exported(settings, path);
	if (!err && (!access(path, F_OK) || settings->certificate)) {
		err = load(settings, path, &context);
		if (!err)
			tls_context_free(context);
	}
	return err ? -EINVAL : 0;
}
