/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/authorized_keys: see authorized_keys.h.
 */
#include "rftpd/auth/authorized_keys.h"

#include "session/tls_sign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1u << 20)
#define TYPE "ssh-ed25519"

struct span {
	const char *at, *end;
};

static void skip_blanks(struct span *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
		s->at++;
}

/* Up to the next blank; of options blanks within quotes do not count. */
static struct span take_word(struct span *s, bool quotes)
{
	struct span word = {s->at, s->at};
	bool within = false;

	for (; s->at < s->end; s->at++) {
		if (quotes && *s->at == '"')
			within = !within;
		else if (quotes && *s->at == '\\' && s->at + 1 < s->end && s->at[1] == '"')
			s->at++;
		else if (!within && (*s->at == ' ' || *s->at == '\t'))
			break;
	}
	word.end = s->at;
	skip_blanks(s);
	return word;
}

static bool is(struct span word, const char *text)
{
	size_t len = (size_t)(word.end - word.at);

	return len == strlen(text) && !strncasecmp(word.at, text, len);
}

/* Options that have nothing to do with what rftp does with a key. */
static bool are_harmless(struct span options)
{
	static const char *const harmless[] = {"agent-forwarding", "no-agent-forwarding",
		"port-forwarding", "no-port-forwarding", "pty", "no-pty", "user-rc", "no-user-rc",
		"X11-forwarding", "no-X11-forwarding", "restrict"};
	const char *at = options.at;

	while (at <= options.end) {
		const char *comma = memchr(at, ',', (size_t)(options.end - at));
		struct span one = {at, comma ? comma : options.end};
		bool known = false;

		for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
			known = known || is(one, harmless[i]);
		if (!known)
			return false;
		at = one.end + 1;
	}
	return true;
}

/* 1: the line names the key; -1: it does, with an option that keeps it from counting; 0: not. */
static int line_has(struct span line, const struct tls_key *key)
{
	struct span type, base64;
	struct tls_key there;
	bool counts = true;

	skip_blanks(&line);
	if (line.at == line.end || *line.at == '#')
		return 0;
	type = take_word(&line, true);
	if (!is(type, TYPE)) {
		counts = are_harmless(type);
		type = take_word(&line, false);
	}
	if (!is(type, TYPE))
		return 0;
	base64 = take_word(&line, false);
	if (base64.end > base64.at && base64.end[-1] == '\r')
		base64.end--;
	if (tls_key_from_base64(&there, base64.at, (size_t)(base64.end - base64.at)) ||
		!tls_key_equal(&there, key))
		return 0;
	return counts ? 1 : -1;
}

bool authorized_keys_have(const char *text, size_t len, const struct tls_key *key, unsigned *line)
{
	const char *end = text + len;

	*line = 0;
	for (unsigned number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		int has = line_has((struct span){text, newline ? newline : end}, key);

		if (has)
			*line = number;
		if (has > 0)
			return true;
		text = newline ? newline + 1 : end;
	}
	return false;
}

int authorized_keys_path(const char *pattern, const char *user, char *path, size_t size)
{
	size_t len = 0;

	for (; *pattern; pattern++) {
		const char *piece = pattern;
		size_t n = 1;

		if (*pattern == '%') {
			pattern++;
			piece = *pattern == 'u' ? user : "%";
			n = strlen(piece);
			if (*pattern != 'u' && *pattern != '%')
				return -EINVAL;
		}
		if (len + n >= size)
			return -ENAMETOOLONG;
		memcpy(path + len, piece, n);
		len += n;
	}
	path[len] = '\0';
	return 0;
}

static int refuse_file(const char *path, const struct stat *st, char why[AUTHORIZED_WHY_MAX])
{
	if (!S_ISREG(st->st_mode) || st->st_mode & 022 || (st->st_uid && st->st_uid != geteuid())) {
		snprintf(why, AUTHORIZED_WHY_MAX,
			"%.300s: others may change it (mode %04o, owner %u): chmod 644 it", path,
			(unsigned)st->st_mode & 07777, (unsigned)st->st_uid);
		return -EPERM;
	}
	if (st->st_size > (off_t)FILE_BYTES_MAX) {
		snprintf(why, AUTHORIZED_WHY_MAX, "%.300s: longer than %u bytes", path,
			FILE_BYTES_MAX);
		return -EFBIG;
	}
	return 0;
}

bool authorized_keys_file_has(
	const char *path, const struct tls_key *key, char why[AUTHORIZED_WHY_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t len = 0;
	ssize_t n = 1;
	struct stat st;
	unsigned line;
	char *text;
	bool has;

	if (fd < 0 || fstat(fd, &st)) {
		snprintf(why, AUTHORIZED_WHY_MAX, "%.300s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (refuse_file(path, &st, why)) {
		close(fd);
		return false;
	}
	text = malloc((size_t)st.st_size + 1);
	while (text && len < (size_t)st.st_size &&
		(n = read(fd, text + len, (size_t)st.st_size - len)) > 0)
		len += (size_t)n;
	close(fd);
	if (!text || n < 0) {
		snprintf(why, AUTHORIZED_WHY_MAX, "%.300s: %s", path,
			strerror(text ? errno : ENOMEM));
		free(text);
		return false;
	}
	has = authorized_keys_have(text, len, key, &line);
	free(text);
	if (has)
		return true;
	if (line)
		snprintf(why, AUTHORIZED_WHY_MAX,
			"%.300s:%u: the key has an option there that rftpd cannot keep", path,
			line);
	else
		snprintf(why, AUTHORIZED_WHY_MAX, "%.300s: the key is not in it", path);
	return false;
}
