/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/certificate_users: see certificate_users.h.
 */
#include "rftpd/auth/certificate_users.h"

#include "rftpd/auth/users_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4u << 20)

/* Whether one of the lines of `names` is this. */
static bool has_name(const char *names, const char *name, size_t len)
{
	while (*names) {
		size_t n = strcspn(names, "\n");

		if (n == len && !memcmp(names, name, len))
			return true;
		names += n + (names[n] == '\n');
	}
	return false;
}

/* The user of a line, if it has one of the names. */
static bool line_fits(
	const char *line, size_t len, const char *names, char user[CERTIFICATE_USER_MAX])
{
	size_t n = 0, rest;

	while (len && (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	while (n < len && line[n] != ' ' && line[n] != '\t')
		n++;
	rest = n;
	while (rest < len && (line[rest] == ' ' || line[rest] == '\t'))
		rest++;
	if (rest == len || n >= CERTIFICATE_USER_MAX || memchr(line, '\0', len))
		return false;
	memcpy(user, line, n);
	user[n] = '\0';
	return users_name_ok(user) && has_name(names, line + rest, len - rest);
}

int certificate_users_find(const char *text, size_t len, const char *names, const char *wanted,
	char user[CERTIFICATE_USER_MAX])
{
	const char *end = text + len;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);

		if (line_fits(text, n, names, user) && (!*wanted || !strcmp(user, wanted)))
			return 0;
		text = newline ? newline + 1 : end;
	}
	user[0] = '\0';
	return -ENOENT;
}

int certificate_users_lookup(const char *path, uid_t daemon, const char *names, const char *wanted,
	char user[CERTIFICATE_USER_MAX], char why[CERTIFICATE_WHY_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err = 0;
	size_t len = 0;
	ssize_t n = 1;
	char *text = NULL;
	struct stat st;

	user[0] = '\0';
	if (fd < 0 || fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_mode & 022 ||
		 (st.st_uid && st.st_uid != daemon && daemon != (uid_t)-1))
		err = -EPERM;
	else if (st.st_size > (off_t)FILE_BYTES_MAX)
		err = -EFBIG;
	else if (!(text = malloc((size_t)st.st_size + 1)))
		err = -ENOMEM;
	while (!err && len < (size_t)st.st_size &&
		(n = read(fd, text + len, (size_t)st.st_size - len)) > 0)
		len += (size_t)n;
	if (!err && n < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err)
		snprintf(why, CERTIFICATE_WHY_MAX, "%.300s: %s", path,
			err == -EPERM ? "others may change it: chmod 644 it" : strerror(-err));
	else if ((err = certificate_users_find(text, len, names, wanted, user)))
		snprintf(why, CERTIFICATE_WHY_MAX, "%.150s has no line for %.150s%s%.150s", path,
			wanted, *wanted ? " and " : "", names);
	free(text);
	return err;
}
