/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/conf: see conf.h.
 */
#include "rftpd/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTION "rftpd"

struct span {
	const char *at;
	size_t len;
};

static int is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s)
{
	while (s.len && is_blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

/* A copy with its NUL in `out`; what does not fit or has a NUL of its own is an error. */
static int copy_span(char out[CONF_VALUE_MAX], struct span s, const char *what, char *why)
{
	if (s.len >= CONF_VALUE_MAX) {
		snprintf(why, 256, "the %s is longer than %u bytes", what, CONF_VALUE_MAX - 1);
		return -EINVAL;
	}
	if (memchr(s.at, '\0', s.len)) {
		snprintf(why, 256, "a NUL byte in the %s", what);
		return -EINVAL;
	}
	memcpy(out, s.at, s.len);
	out[s.len] = '\0';
	return 0;
}

static int parse_heading(struct span line, char *why)
{
	const char *end = memchr(line.at, ']', line.len);
	struct span name;

	if (!end || end != line.at + line.len - 1) {
		snprintf(why, 256, end ? "text behind the heading's ]" : "a heading without ]");
		return -EINVAL;
	}
	name = trim((struct span){line.at + 1, line.len - 2});
	if (name.len != strlen(SECTION) || memcmp(name.at, SECTION, name.len)) {
		snprintf(why, 256, "unknown section [%.*s]; there is only [" SECTION "]",
			name.len < 60 ? (int)name.len : 60, name.at);
		return -EINVAL;
	}
	return 0;
}

static int parse_line(struct span line, conf_set *set, void *ctx, char *why)
{
	char name[CONF_VALUE_MAX], value[CONF_VALUE_MAX];
	const char *equals;
	struct span left;
	int err;

	line = trim(line);
	if (!line.len || line.at[0] == '#' || line.at[0] == ';')
		return 0;
	if (line.at[0] == '[')
		return parse_heading(line, why);
	equals = memchr(line.at, '=', line.len);
	if (!equals) {
		snprintf(why, 256, "this is neither `name = value` nor a comment");
		return -EINVAL;
	}
	left = trim((struct span){line.at, (size_t)(equals - line.at)});
	if (!left.len) {
		snprintf(why, 256, "no name before the =");
		return -EINVAL;
	}
	err = copy_span(name, left, "name", why);
	if (err)
		return err;
	err = copy_span(value,
		trim((struct span){equals + 1, line.len - (size_t)(equals + 1 - line.at)}), "value",
		why);
	if (err)
		return err;
	return set(ctx, name, value, why);
}

int conf_parse(const char *text, size_t len, const char *file, conf_set *set, void *ctx,
	char why[CONF_WHY_MAX])
{
	const char *at = text, *end = text + len;
	char reason[256] = "";

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* what some editors put first */
		at += 3;
	for (unsigned line = 1; at < end; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		int err = parse_line((struct span){at, (size_t)(stop - at)}, set, ctx, reason);

		if (err) {
			snprintf(why, CONF_WHY_MAX, "%.200s:%u: %s", file, line, reason);
			return err;
		}
		at = newline ? newline + 1 : end;
	}
	return 0;
}

/* All that is in `fd`, at most `size` bytes: how many, or -errno.  Nobody waits for who writes into
 * a FIFO: when the file is read again, that is the daemon's loop. */
static ssize_t read_all(int fd, char *out, size_t size)
{
	size_t have = 0;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISFIFO(st.st_mode))
		return -ESPIPE;

	do {
		n = read(fd, out + have, size - have);
		if (n > 0)
			have += (size_t)n;
	} while (have < size && (n > 0 || (n < 0 && errno == EINTR)));
	return n < 0 ? -errno : (ssize_t)have;
}

int conf_load(const char *file, conf_set *set, void *ctx, char why[CONF_WHY_MAX])
{
	char *text = malloc(CONF_FILE_MAX + 1);
	ssize_t len;
	int fd, err;

	if (!text) {
		snprintf(why, CONF_WHY_MAX, "%.200s: out of memory", file);
		return -ENOMEM;
	}
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	len = fd < 0 ? -errno : read_all(fd, text, CONF_FILE_MAX + 1);
	if (fd >= 0)
		close(fd);
	if (len < 0) {
		err = (int)len;
		snprintf(why, CONF_WHY_MAX, "%.200s: %s", file,
			err == -ESPIPE ? "it is a pipe: name a file, which can be read again"
				       : strerror(-err));
	} else if (len > (ssize_t)CONF_FILE_MAX) {
		err = -EFBIG;
		snprintf(why, CONF_WHY_MAX, "%.200s: longer than %u bytes", file, CONF_FILE_MAX);
	} else {
		err = conf_parse(text, (size_t)len, file, set, ctx, why);
	}
	free(text);
	return err;
}
