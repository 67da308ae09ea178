/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/url.c: owns the decoded path.
 */
#include "rftp/remote/url.h"

#include "base/addr.h"
#include "rftp/ui/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define URL_SCHEME "rftp://"
#define URL_SSH "ssh://"
#define URL_BAD_PORT "the port must be a number from 1 to 65535"
#define URL_AUTHORITY_MAX 1100 /* user, %NN each, "@[" host "]:65535" and the NUL */

static bool url_begins(const char *text, const char *scheme)
{
	return !strncasecmp(text, scheme, strlen(scheme));
}

bool url_is(const char *text)
{
	return url_begins(text, URL_SCHEME) || url_begins(text, URL_SSH);
}

bool url_is_foreign(const char *text)
{
	size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

	return n && !strncmp(text + n, "://", 3) && !url_is(text);
}

static int url_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* USER, which may be empty.  NULL, or what is wrong with it. */
static const char *url_user(const char *s, size_t len, char user[256])
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == ':')
			return "a password does not belong into a URL, where everybody may read "
			       "it: "
			       "leave it out, and give --password-file FILE or wait to be asked";
		if (c == '%') {
			int high = i + 2 < len ? url_hex(s[i + 1]) : -1,
			    low = high < 0 ? -1 : url_hex(s[i + 2]);

			c = low < 0 ? '\0' : (char)(high << 4 | low);
			i += 2;
		}
		if (!c || n == 255)
			return "the user's name is too long, or has a wrong %NN";
		user[n++] = c;
	}
	user[n] = '\0';
	return n ? NULL : "the user's name before the @ is missing";
}

static int url_decode(const char *s, struct url *out, const char **why)
{
	struct text path = {0}, pattern = {0};

	if (*s != '/') {
		text_putc(&path, '/');
		text_putc(&pattern, '/');
	}
	for (; *s; s++) {
		char c = *s;
		bool coded = c == '%';

		if (coded) {
			int high = url_hex(s[1]), low = high < 0 ? -1 : url_hex(s[2]);

			if (low < 0) {
				*why = "'%' is not followed by two hexadecimal digits (write %25 "
				       "for '%')";
				goto err_free;
			}
			c = (char)(high << 4 | low);
			if (!c) {
				*why = "%00 cannot be part of a name";
				goto err_free;
			}
			s += 2;
		}
		text_putc(&path, c);
		if (c == '\\' || (coded && strchr("*?[]", c)))
			text_putc(&pattern, '\\');
		text_putc(&pattern, c);
	}
	out->path = text_take(&path);
	out->pattern = text_take(&pattern);
	if (out->path && out->pattern)
		return 0;
	url_fini(out);
	return -ENOMEM;

err_free:
	text_fini(&path);
	text_fini(&pattern);
	return -EINVAL;
}

/* Whether a port is named, be it 0. */
static bool has_port(const char *authority)
{
	const char *colon = strrchr(authority, ':');

	return colon && !strchr(colon, ']');
}

/* Why addr_split did not take HOST:PORT, which may be changed. */
static const char *url_why(char *authority)
{
	char host[URL_AUTHORITY_MAX];
	uint16_t port;
	char *end;

	if (*authority == '[') {
		end = strchr(authority, ']');
		if (!end || (end[1] && end[1] != ':'))
			return "an IPv6 address is written rftp://[ADDRESS]:PORT/";
		end[1] = '\0';
		if (addr_split(authority, host, sizeof host, ADDR_DEFAULT_PORT, &port))
			return "there is no IPv6 address within the brackets";
	} else if (strchr(strchrnul(authority, ':') + 1, ':')) {
		return "an IPv6 address stands in brackets: rftp://[ADDRESS]:PORT/";
	}
	return URL_BAD_PORT;
}

/* The zone of a link-local address, "[fe80::1%25eth0]" in a URL, as the system has it: "%eth0". */
static void url_zone(char *authority)
{
	char *zone = *authority == '[' ? strchr(authority, '%') : NULL;

	if (zone && zone < strchrnul(authority, ']') && !strncmp(zone, "%25", 3) && zone[3] != ']')
		memmove(zone + 1, zone + 3, strlen(zone + 3) + 1);
}

int url_parse(const char *text, struct url *out, const char **why)
{
	char authority[URL_AUTHORITY_MAX];
	const char *slash;
	char *at;
	size_t len;
	int err;

	*out = (struct url){0};
	*why = "";
	if (!url_is(text)) {
		*why = url_is_foreign(text) ? "only rftp:// and ssh:// are supported"
					    : "a URL begins with rftp://";
		return -EINVAL;
	}
	out->ssh = url_begins(text, URL_SSH);
	text += strlen(out->ssh ? URL_SSH : URL_SCHEME);
	slash = strchrnul(text, '/');
	len = (size_t)(slash - text);
	if (len >= sizeof authority) {
		*why = "the host is too long";
		return -EINVAL;
	}
	memcpy(authority, text, len);
	authority[len] = '\0';
	at = strrchr(authority, '@');
	if (at) {
		*why = url_user(authority, (size_t)(at - authority), out->user);
		if (*why)
			return -EINVAL;
		*why = "";
		memmove(authority, at + 1, strlen(at + 1) + 1);
	}
	url_zone(authority);
	err = addr_split(authority, out->host, sizeof out->host, out->ssh ? 0 : ADDR_DEFAULT_PORT,
		&out->port);
	if (err) {
		*why = !*authority            ? "the host is missing"
		       : err == -ENAMETOOLONG ? "the host is too long"
					      : url_why(authority);
		return -EINVAL;
	}
	if (!out->host[0] || (!out->port && (!out->ssh || has_port(authority)))) {
		*why = out->host[0] ? URL_BAD_PORT : "the host is missing";
		return -EINVAL;
	}
	return url_decode(slash, out, why);
}

void url_fini(struct url *url)
{
	free(url->path);
	free(url->pattern);
	url->path = url->pattern = NULL;
}
