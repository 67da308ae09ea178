/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/credentials: see credentials.h.
 */
#include "rftp/remote/credentials.h"

#include "base/addr.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1u << 20)

struct reader {
	const char *at, *end;
	unsigned line;
};

/* The next word: its length; -ENOENT: there is none; -EINVAL.  A value may begin with '#', which
 * begins a comment elsewhere. */
static int next_word(struct reader *r, char word[PASSWORD_MAX], bool value)
{
	size_t len = 0;
	bool quoted = false;

	for (; r->at < r->end; r->at++) {
		if (*r->at == '#' && !value)
			while (r->at + 1 < r->end && r->at[1] != '\n')
				r->at++;
		else if (*r->at == '\n')
			r->line++;
		else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
			break;
	}
	if (r->at == r->end)
		return -ENOENT;
	quoted = *r->at == '"';
	for (r->at += quoted; r->at < r->end; r->at++) {
		char c = *r->at;

		if (quoted ? c == '"' : strchr(" \t\r\n", c) && c)
			break;
		if (c == '\\' && quoted && r->at + 1 < r->end)
			c = *++r->at;
		if (!c || c == '\n' || len == PASSWORD_MAX - 1)
			return -EINVAL;
		word[len++] = c;
	}
	if (quoted && r->at == r->end)
		return -EINVAL;
	r->at += quoted;
	word[len] = '\0';
	return (int)len;
}

static bool is_host(const char *word, const char *host, uint16_t port)
{
	char name[256];
	uint16_t named;

	if (addr_split(word, name, sizeof name, ADDR_DEFAULT_PORT, &named))
		return false;
	return named == port && !strcasecmp(name, host);
}

int credentials_find(const char *text, size_t len, const char *host, uint16_t port,
	const char *user, struct credentials *out, unsigned *line)
{
	struct reader r = {text, text + len, 1};
	char word[PASSWORD_MAX], value[PASSWORD_MAX];
	bool within = false, fits = false, complete = false;
	struct credentials found = {.user = ""};
	int n;

	while ((n = next_word(&r, word, false)) > 0) {
		bool machine = !strcmp(word, "machine"),
		     start = machine || !strcmp(word, "default");

		if (start) {
			/* what came before is an entry, if it is for whom we look */
			if (fits && (!*user || !strcmp(found.user, user)))
				break;
			explicit_bzero(&found, sizeof found);
			within = fits = true;
		}
		if (start && !machine)
			continue;
		if (!within || next_word(&r, value, true) <= 0) {
			n = -EINVAL;
			break;
		}
		if (machine) {
			fits = is_host(value, host, port);
		} else if (!strcmp(word, "login") && strlen(value) < sizeof found.user) {
			strcpy(found.user, value);
		} else if (!strcmp(word, "password")) {
			strcpy(found.password, value);
		} else {
			n = -EINVAL;
			break;
		}
	}
	explicit_bzero(value, sizeof value);
	explicit_bzero(word, sizeof word);
	complete = fits && *found.user && (!*user || !strcmp(found.user, user));
	*line = r.line;
	if (n == -EINVAL || n == 0 || !complete)
		explicit_bzero(&found, sizeof found);
	*out = found;
	explicit_bzero(&found, sizeof found);
	if (n == -EINVAL || n == 0)
		return -EINVAL;
	return complete ? 0 : -ENOENT;
}

int credentials_load(const char *path, const char *host, uint16_t port, const char *user,
	struct credentials *out, char why[PASSWORD_WHY_MAX])
{
	int fd, err;
	unsigned line;
	size_t len = 0;
	ssize_t n = 0;
	char *text;

	if (access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR))
		return -ENOENT;
	fd = password_open_private(path, why);
	if (fd < 0)
		return fd == -ENOENT ? -EIO : fd;
	text = malloc(FILE_BYTES_MAX);
	while (text && len < FILE_BYTES_MAX &&
		((n = read(fd, text + len, FILE_BYTES_MAX - len)) > 0 || (n < 0 && errno == EINTR)))
		len += n > 0 ? (size_t)n : 0;
	err = !text ? -ENOMEM : n < 0 ? -errno : len == FILE_BYTES_MAX ? -EFBIG : 0;
	close(fd);
	if (err)
		snprintf(why, PASSWORD_WHY_MAX, "%.300s: %s", path, strerror(-err));
	else
		err = credentials_find(text, len, host, port, user, out, &line);
	if (err == -EINVAL)
		snprintf(why, PASSWORD_WHY_MAX,
			"%.300s:%u: not of the form machine HOST login USER password WORD", path,
			line);
	if (text)
		explicit_bzero(text, len);
	free(text);
	return err;
}

int credentials_path(char *path, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (config && *config == '/')
		n = snprintf(path, size, "%s/rftp/credentials", config);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.config/rftp/credentials", home);
	else
		return -ENOENT;
	return n < (int)size ? 0 : -ENAMETOOLONG;
}
