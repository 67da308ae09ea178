/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/url: rftp://[USER@]HOST[:PORT][/PATH], and ssh:// in its place
 *
 * HOST is a name, an IPv4 address or an IPv6 address in brackets.  %NN in PATH and USER is any byte
 * but NUL; all else, also '?' and '#', stands for itself.
 */
#ifndef RFTP_URL_H
#define RFTP_URL_H

#include <stdbool.h>
#include <stdint.h>

struct url {
	bool ssh;       /* a server is started there through ssh */
	char user[256]; /* "": none */
	char host[256];
	uint16_t port; /* 0: ssh's own */
	char *path;    /* decoded, begins with '/' */
	char *pattern; /* the same for fnmatch(3): what came as %NN or is a backslash is escaped */
};

/* Whether the text begins with "rftp://" or "ssh://" (in any case): then it names the remote side.
 */
bool url_is(const char *text);
/* Whether it begins with another scheme, as in "sftp://". */
bool url_is_foreign(const char *text);
/* 0; -EINVAL (*why says what is wrong; it is not to be freed); -ENOMEM. */
int url_parse(const char *text, struct url *out, const char **why);
void url_fini(struct url *);

#endif
