/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/known_hosts.c: owns the form of a line.  Who is asked, and what is trusted, is
 * decided in rftp/remote/trust.
 */
#include "rftp/remote/known_hosts.h"

#include "base/addr.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLANKS " \t\r\n"
#define HASHED "|1|"
#define HASH_BYTES 20u /* of SHA-1 */
#define BASE64_MAX (4 * ((TLS_KEY_MAX + 2) / 3) + 1)

void known_hosts_name(const char *host, uint16_t port, char name[KNOWN_HOSTS_NAME_MAX])
{
	if (port == ADDR_DEFAULT_PORT)
		snprintf(name, KNOWN_HOSTS_NAME_MAX, "%s", host);
	else
		snprintf(name, KNOWN_HOSTS_NAME_MAX, "[%s]:%u", host, port);
	for (char *at = name; *at; at++)
		*at = (char)tolower((unsigned char)*at);
}

/* Whether so many bytes are what this base64 says. */
static bool base64_is(const char *text, size_t text_len, const uint8_t *bytes, unsigned len)
{
	char ours[4 * ((HASH_BYTES + 2) / 3) + 1];
	int n = EVP_EncodeBlock((unsigned char *)ours, bytes, (int)len);

	return n == (int)text_len && !memcmp(text, ours, text_len);
}

/* A name that is hashed, as `ssh-keygen -H` leaves it: |1|salt|HMAC-SHA1 of the name by the salt,
 * both in base64. */
static bool hash_matches(const char *hashed, const char *name)
{
	const char *salt_text = hashed + strlen(HASHED), *end = strchr(salt_text, '|');
	uint8_t salt[3 * BASE64_MAX / 4], hash[EVP_MAX_MD_SIZE];
	char padded[BASE64_MAX];
	unsigned len = 0;
	size_t n;
	int got;

	if (!end || end == salt_text || (n = (size_t)(end - salt_text)) % 4 || n >= sizeof padded)
		return false;
	memcpy(padded, salt_text, n);
	got = EVP_DecodeBlock(salt, (unsigned char *)padded, (int)n);
	if (got < 0)
		return false;
	for (size_t i = n; i && padded[i - 1] == '=' && got; i--)
		got--; /* it counts what pads, too */
	if (!HMAC(EVP_sha1(), salt, got, (const unsigned char *)name, strlen(name), hash, &len))
		return false;
	return base64_is(end + 1, strlen(end + 1), hash, len);
}

/* Of small and capital letters the name has small ones. */
static bool name_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL; /* behind the last '*', and what that is tried on */

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			from = name;
		} else if (*pattern == '?' ||
			   tolower((unsigned char)*pattern) == (unsigned char)*name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++from;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}

/* Whether `name` is among the names of a line, which are taken apart. */
static bool names_match(char *names, const char *name)
{
	bool found = false;
	char *rest = names, *one;

	if (!strncmp(names, HASHED, strlen(HASHED)))
		return hash_matches(names, name);
	while ((one = strsep(&rest, ","))) {
		bool negated = *one == '!';

		if (!name_matches(one + negated, name))
			continue;
		if (negated)
			return false;
		found = true;
	}
	return found;
}

static bool key_matches(const char *type, const char *base64, const struct tls_key *key)
{
	char ours[BASE64_MAX];

	EVP_EncodeBlock((unsigned char *)ours, key->blob, (int)key->len);
	return !strcmp(type, key->type) && !strcmp(base64, ours);
}

/* What one line says; KNOWN_HOSTS_NEW: nothing of this host. */
static enum known_hosts_answer line_says(char *line, const char *name, const struct tls_key *key)
{
	char *rest = NULL, *word = strtok_r(line, BLANKS, &rest), *names, *type, *base64;
	bool revoked = word && !strcmp(word, "@revoked");

	if (!word || *word == '#' || (*word == '@' && !revoked))
		return KNOWN_HOSTS_NEW;
	names = revoked ? strtok_r(NULL, BLANKS, &rest) : word;
	type = strtok_r(NULL, BLANKS, &rest);
	base64 = strtok_r(NULL, BLANKS, &rest);
	if (!base64 || !names_match(names, name))
		return KNOWN_HOSTS_NEW;
	if (key_matches(type, base64, key))
		return revoked ? KNOWN_HOSTS_REVOKED : KNOWN_HOSTS_SAME;
	return revoked ? KNOWN_HOSTS_NEW : KNOWN_HOSTS_CHANGED;
}

/* Of two lines the one that counts. */
static bool outweighs(enum known_hosts_answer a, enum known_hosts_answer b)
{
	static const int weight[] = {
		[KNOWN_HOSTS_NEW] = 0,
		[KNOWN_HOSTS_CHANGED] = 1,
		[KNOWN_HOSTS_SAME] = 2,
		[KNOWN_HOSTS_REVOKED] = 3,
	};

	return weight[a] > weight[b];
}

int known_hosts_find(const char *path, const char *name, const struct tls_key *key,
	enum known_hosts_answer *answer, unsigned *line)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	unsigned number = 0;
	int err = 0;

	*answer = KNOWN_HOSTS_NEW;
	*line = 0;
	if (!file)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	errno = 0;
	while (getline(&text, &room, file) >= 0) {
		enum known_hosts_answer said = line_says(text, name, key);

		number++;
		if (!outweighs(said, *answer))
			continue;
		*answer = said;
		*line = number;
	}
	if (!feof(file))
		err = errno ? -errno : -EIO;
	free(text);
	fclose(file);
	return err;
}

static int make_directory(const char *path)
{
	char directory[PATH_MAX];
	char *slash;

	if (snprintf(directory, sizeof directory, "%s", path) >= (int)sizeof directory)
		return -ENAMETOOLONG;
	for (slash = strchr(directory + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(directory, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* Whether the last line of the file has no end. */
static bool ends_within_line(int fd)
{
	char last = '\n';
	off_t end = lseek(fd, 0, SEEK_END);

	return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

int known_hosts_add(const char *path, const char *name, const struct tls_key *key)
{
	char line[KNOWN_HOSTS_NAME_MAX + TLS_KEY_TYPE_MAX + BASE64_MAX + 8], base64[BASE64_MAX];
	int err = make_directory(path), fd, len;

	if (err)
		return err;
	fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX)) {
		err = -errno;
		goto out;
	}
	EVP_EncodeBlock((unsigned char *)base64, key->blob, (int)key->len);
	len = snprintf(line, sizeof line, "%s%s %s %s\n", ends_within_line(fd) ? "\n" : "", name,
		key->type, base64);
	if (write(fd, line, (size_t)len) != len)
		err = errno ? -errno : -EIO;
	else if (fsync(fd))
		err = -errno;
out:
	close(fd);
	return err;
}
