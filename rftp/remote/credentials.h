/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/credentials: users and passwords that are kept for servers, in a file of the form of
 * .netrc:
 *
 *     # a comment
 *     machine HOST[:PORT] login USER password WORD
 *     default login USER password WORD
 *
 * Words stand in any number of lines; one with blanks is quoted ("..."), where \ takes the meaning
 * of the next character.  The first entry that fits counts.
 */
#ifndef RFTP_CREDENTIALS_H
#define RFTP_CREDENTIALS_H

#include "rftp/remote/password.h"

#include <stddef.h>
#include <stdint.h>

struct credentials {
	char user[256];              /* "": none */
	char password[PASSWORD_MAX]; /* "": none */
};

/* What a text says of a server, and of a user there ("": any).  0; -ENOENT: nothing; -EINVAL: it is
 * not of this form, in the line *line. */
int credentials_find(const char *text, size_t len, const char *host, uint16_t port,
	const char *user, struct credentials *out, unsigned *line);
/* The same in a file: also -ENOENT where there is no file; of others `why` says it. */
int credentials_load(const char *path, const char *host, uint16_t port, const char *user,
	struct credentials *out, char why[PASSWORD_WHY_MAX]);
/* The user's own file: beside known_hosts.  0 or -ENOENT, -ENAMETOOLONG. */
int credentials_path(char *path, size_t size);

#endif
