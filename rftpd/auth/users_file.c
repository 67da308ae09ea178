/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/users_file: see users_file.h.
 *
 * Owns the form of the file and the kind of hash.  Knows neither sessions nor messages.
 */
#include "rftpd/auth/users_file.h"

#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HASH_PREFIX "$y$" /* yescrypt */
#define HASH_COST 0 /* what the library takes for right: some 16 MiB and a tenth of a second */
/* For who is not there: its cost is that of what users_hash makes, and no password has it. */
#define HASH_OF_NOBODY "$y$j9T$/5O1pMbbBYKZAFhRvv6.2.$cKyoUhLB47gZQZYw9YNvq3duG9mhMktg4nL1wHK1x.3"

/* A file that was not changed for so long is whole, */
#define QUIET_S 1
#define QUIET_TRIES 5 /* for which so often is waited */

_Static_assert(USERS_HASH_MAX == CRYPT_OUTPUT_SIZE, "room for a hash");

bool users_name_ok(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > 255 || strchr("-@#", *name) || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f || *name == ':' || *name == '/')
			return false;
	return true;
}

/* ---- reading ---- */

struct line {
	const char *name, *hash;
	size_t name_len, hash_len;
	bool broken;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* That of a line which has fields behind it, as those of shadow(5) have, is none. */
static bool hash_ok(const char *hash, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (hash[i] <= ' ' || hash[i] >= 0x7f || hash[i] == ':')
			return false;
	return len && len < USERS_HASH_MAX;
}

static bool line_name_ok(const char *at, size_t len)
{
	char name[256];

	if (len >= sizeof name || memchr(at, '\0', len))
		return false;
	memcpy(name, at, len);
	name[len] = '\0';
	return users_name_ok(name);
}

/* Whether it is anybody's. */
static bool read_line(const char *at, size_t len, struct line *l)
{
	const char *const start = at, *colon;

	while (len && is_blank(at[len - 1]))
		len--;
	for (; len && is_blank(*at); at++)
		len--;
	if (!len || *at == '#')
		return false;
	colon = memchr(at, ':', len);
	*l = (struct line){.name = at, .name_len = colon ? (size_t)(colon - at) : len};
	if (colon) {
		l->hash = colon + 1;
		l->hash_len = len - l->name_len - 1;
	}
	l->broken = at != start || !colon || !line_name_ok(at, l->name_len) ||
		    !hash_ok(l->hash, l->hash_len);
	while (l->name_len && is_blank(at[l->name_len - 1]))
		l->name_len--;
	return true;
}

static bool is_of(const struct line *l, const char *user)
{
	return l->name_len == strlen(user) && !memcmp(l->name, user, l->name_len);
}

/* The first line of `user`, or, with NULL, that is broken: its number, or 0. */
static unsigned find_line(const char *text, size_t len, const char *user, struct line *l)
{
	const char *end = text + len;

	for (unsigned number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		if (read_line(text, (size_t)(stop - text), l) &&
			(user ? is_of(l, user) : l->broken))
			return number;
		text = newline ? newline + 1 : end;
	}
	return 0;
}

unsigned users_find_in(const char *text, size_t len, const char *user, char hash[USERS_HASH_MAX])
{
	struct line l;
	unsigned number = users_name_ok(user) ? find_line(text, len, user, &l) : 0;

	hash[0] = '\0';
	if (number && !l.broken) {
		memcpy(hash, l.hash, l.hash_len);
		hash[l.hash_len] = '\0';
	}
	return number;
}

unsigned users_find_broken(const char *text, size_t len)
{
	struct line l;

	return find_line(text, len, NULL, &l);
}

static int refuse_mode(const char *path, int fd, char why[USERS_WHY_MAX], struct stat *st)
{
	if (fstat(fd, st)) {
		snprintf(why, USERS_WHY_MAX, "%.300s: %s", path, strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st->st_mode) || st->st_mode & 027) {
		snprintf(why, USERS_WHY_MAX,
			"%.300s: others may read or change it (mode %04o): chmod 600 it", path,
			(unsigned)st->st_mode & 07777);
		return -EPERM;
	}
	if (st->st_size > (off_t)USERS_FILE_BYTES_MAX) {
		snprintf(why, USERS_WHY_MAX, "%.300s: longer than %u bytes", path,
			USERS_FILE_BYTES_MAX);
		return -EFBIG;
	}
	return 0;
}

/* All of the file, in memory that the caller wipes and frees, and whose it is. */
static int read_file(
	const char *path, char **text, size_t *len, char why[USERS_WHY_MAX], struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err;
	size_t have = 0, size;
	ssize_t n = 0;

	if (fd < 0) {
		err = -errno;
		snprintf(why, USERS_WHY_MAX, "%.300s: %s%s", path, strerror(-err),
			err == -ENOENT ? " (`rftpd passwd USER --users FILE` makes it)" : "");
		return err;
	}
	err = refuse_mode(path, fd, why, st);
	size = err ? 0 : (size_t)st->st_size;
	*text = err ? NULL : malloc(size + 1);
	if (!err && !*text) {
		err = -ENOMEM;
		snprintf(why, USERS_WHY_MAX, "%.300s: %s", path, strerror(-err));
	}
	while (!err && have < size && (n = read(fd, *text + have, size - have)) > 0)
		have += (size_t)n;
	if (!err && n < 0) {
		err = -errno;
		snprintf(why, USERS_WHY_MAX, "%.300s: %s", path, strerror(-err));
		free(*text);
	}
	*len = have;
	close(fd);
	return err;
}

/* Whose it is may change it, and let in whom he likes. */
static int refuse_owner(const char *path, uid_t owner, uid_t daemon, char why[USERS_WHY_MAX])
{
	*why = '\0';
	if (!owner || owner == daemon)
		return 0;
	snprintf(why, USERS_WHY_MAX,
		"%.300s: it belongs to user %u: chown it to root, or to rftpd's user%s", path,
		(unsigned)owner, daemon == (uid_t)-1 ? ", if it is not that" : "");
	return daemon == (uid_t)-1 ? 0 : -EPERM;
}

static int read_as(const char *path, uid_t daemon, char **text, size_t *len,
	char why[USERS_WHY_MAX], struct stat *st)
{
	int err = read_file(path, text, len, why, st);

	if (err)
		return err;
	err = refuse_owner(path, st->st_uid, daemon, why);
	if (err) {
		explicit_bzero(*text, *len);
		free(*text);
	}
	return err;
}

static void say_broken(const char *path, unsigned number, char why[USERS_WHY_MAX])
{
	snprintf(why, USERS_WHY_MAX,
		"%.300s: line %u is not USER:HASH: whom it names is not let in: put it right, or "
		"set a password with `rftpd passwd`",
		path, number);
}

/* As users_find, and of what file. */
static int look(const char *path, const char *user, char hash[USERS_HASH_MAX],
	char why[USERS_WHY_MAX], struct stat *st)
{
	unsigned number;
	size_t len;
	char *text;
	int err = read_as(path, geteuid(), &text, &len, why, st);

	hash[0] = '\0';
	if (err)
		return err;
	number = users_find_in(text, len, user, hash);
	if (number && !*hash)
		say_broken(path, number, why);
	explicit_bzero(text, len);
	free(text);
	return number != 0;
}

int users_find(
	const char *path, const char *user, char hash[USERS_HASH_MAX], char why[USERS_WHY_MAX])
{
	struct stat st;

	return look(path, user, hash, why, &st);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Nobody's time but the kernel's: utimes(2) does not set it. */
static bool is_old(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return st->st_ctim.tv_sec < now.tv_sec - QUIET_S;
}

int users_find_settled(
	const char *path, const char *user, char hash[USERS_HASH_MAX], char why[USERS_WHY_MAX])
{
	struct stat read, now;

	for (unsigned i = 0; i < QUIET_TRIES; i++) {
		const struct timespec pause = {.tv_sec = QUIET_S};
		int found = look(path, user, hash, why, &read);

		if (found || is_old(&read))
			return found;
		nanosleep(&pause, NULL);
		if (!stat(path, &now) && is_same(&read, &now))
			return 0;
	}
	snprintf(why, USERS_WHY_MAX, "%.300s: it is changed again and again", path);
	return -EBUSY;
}

int users_check(const char *path, uid_t daemon, char why[USERS_WHY_MAX])
{
	unsigned number;
	size_t len;
	char *text;
	struct stat st;
	int err = read_as(path, daemon, &text, &len, why, &st);

	if (err)
		return err;
	number = users_find_broken(text, len);
	if (number && !*why)
		say_broken(path, number, why);
	explicit_bzero(text, len);
	free(text);
	return 0;
}

/* ---- writing ---- */

/* All lines but the user's, and then his new one. */
static int write_lines(FILE *out, const char *text, size_t len, const char *user, const char *hash,
	bool *was_there)
{
	const char *end = text + len;
	struct line l;

	*was_there = false;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);

		if (read_line(text, n, &l) && is_of(&l, user)) {
			if (!*was_there && hash)
				fprintf(out, "%s:%s\n", user, hash);
			*was_there = true;
		} else {
			fwrite(text, 1, n, out);
			fputc('\n', out);
		}
		text = newline ? newline + 1 : end;
	}
	if (!*was_there && hash)
		fprintf(out, "%s:%s\n", user, hash);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static int replace_file(const char *path, const char *text, size_t len, const char *user,
	const char *hash, const struct stat *old)
{
	char temporary[PATH_MAX];
	bool was_there;
	FILE *out;
	int fd, err;

	if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return -errno;
	err = old && (fchown(fd, old->st_uid, old->st_gid) || fchmod(fd, old->st_mode & 07777))
		      ? -errno
		      : 0;
	out = err ? NULL : fdopen(fd, "w");
	if (!out && !err)
		err = -ENOMEM;
	if (!err)
		err = write_lines(out, text, len, user, hash, &was_there);
	if (!err && !hash && !was_there)
		err = -ENOENT;
	if (!err && fsync(fd))
		err = -errno;
	if (out)
		fclose(out);
	else
		close(fd);
	if (!err && rename(temporary, path))
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

int users_set(const char *path, const char *user, const char *hash, char why[USERS_WHY_MAX])
{
	char directory[PATH_MAX], *text = NULL;
	struct stat old;
	size_t len = 0;
	int lock, err;

	snprintf(directory, sizeof directory, "%s", path);
	lock = open(dirname(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX)) {
		err = -errno;
		snprintf(why, USERS_WHY_MAX, "%.300s: %s", directory, strerror(-err));
		if (lock >= 0)
			close(lock);
		return err;
	}
	err = stat(path, &old) ? -errno : read_file(path, &text, &len, why, &old);
	if (err == -ENOENT && hash) {
		err = replace_file(path, "", 0, user, hash, NULL);
	} else if (!err) {
		err = replace_file(path, text, len, user, hash, &old);
		explicit_bzero(text, len);
		free(text);
	} else if (err != -ENOENT) {
		close(lock);
		return err;
	}
	if (!err)
		fsync(lock);
	close(lock);
	if (err)
		snprintf(why, USERS_WHY_MAX, "%.300s: %s", path,
			err == -ENOENT ? "there is no such user" : strerror(-err));
	return err;
}

/* ---- hashes ---- */

int users_hash(const char *password, char hash[USERS_HASH_MAX])
{
	char setting[CRYPT_GENSALT_OUTPUT_SIZE];
	struct crypt_data *data = calloc(1, sizeof *data);
	const char *made;
	int err = 0;

	if (!data)
		return -ENOMEM;
	made = crypt_gensalt_rn(HASH_PREFIX, HASH_COST, NULL, 0, setting, sizeof setting)
		       ? crypt_r(password, setting, data)
		       : NULL;
	if (made && *made != '*')
		snprintf(hash, USERS_HASH_MAX, "%s", made);
	else
		err = errno ? -errno : -EINVAL;
	explicit_bzero(data, sizeof *data);
	free(data);
	return err;
}

/* Takes a time that does not depend on where they differ. */
static bool equal(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned char differ = 0;

	if (strlen(b) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

bool users_verify(const char *password, const char *hash)
{
	struct crypt_data *data = calloc(1, sizeof *data);
	const char *made;
	bool right;

	if (!data)
		return false;
	made = crypt_r(password, *hash ? hash : HASH_OF_NOBODY, data);
	right = made && *made != '*' && *hash && equal(made, hash);
	explicit_bzero(data, sizeof *data);
	free(data);
	return right;
}
