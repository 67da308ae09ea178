/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/certificate_users: which user a client's certificate stands for: a line `USER NAME`
 * for each, where NAME is the rest of the line: the certificate's subject as RFC 2253 writes it
 * (CN=Alice,O=Example), or one of its other names (email:alice@example.org, dns:..., uri:...).
 */
#ifndef RFTPD_CERTIFICATE_USERS_H
#define RFTPD_CERTIFICATE_USERS_H

#include <stddef.h>
#include <sys/types.h>

#define CERTIFICATE_USER_MAX 256u
#define CERTIFICATE_WHY_MAX 512u

/*
 * `names`: a certificate's, a line each (tls_peer_names).  `wanted`: the user that it is to be, or
 * "" for the first that has one of the names.  The user in `user`: 0, or -ENOENT.
 */
int certificate_users_find(const char *text, size_t len, const char *names, const char *wanted,
	char user[CERTIFICATE_USER_MAX]);
/* The same in a file, which nobody but its owner, root or `daemon`, may change; (uid_t)-1: whoever
 * that is.  Of errors other than -ENOENT, and of that too, `why` says it. */
int certificate_users_lookup(const char *path, uid_t daemon, const char *names, const char *wanted,
	char user[CERTIFICATE_USER_MAX], char why[CERTIFICATE_WHY_MAX]);

#endif
