/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/grants: the right to store once, which a session gives to another server.
 *
 * A grant is a number that nobody can guess and the second when it expires, signed with a key that
 * this process alone has (HMAC-SHA256).  What it is for is kept here: whose it is, the path, how it
 * may be stored.  It is good for one login, until it expires, and no longer than the session that
 * asked for it.  One thread.
 */
#ifndef RFTPD_GRANTS_H
#define RFTPD_GRANTS_H

#include "rftpd/auth/identity.h"
#include "session/tls_sign.h"

#include <stdbool.h>
#include <sys/queue.h>

#define GRANTS_NUMBER_BYTES 16u
#define GRANTS_BYTES (GRANTS_NUMBER_BYTES + 8u + TLS_MAC_BYTES)
#define GRANTS_OF_SESSION 64u /* that nobody has used yet */

struct opener;

struct grant {
	TAILQ_ENTRY(grant) entry;
	uint8_t number[GRANTS_NUMBER_BYTES];
	uint64_t expires_s; /* seconds since 1970 */
	uint32_t session;   /* that asked for it */
	struct identity who;
	struct opener *opener; /* a reference; or NULL */
	uint32_t flags;        /* of the STORE: MESSAGE_COPY_BOUND */
	bool used;             /* the STORE has been asked for */
	char path[];
};

struct grants {
	bool has_key;
	uint8_t key[TLS_MAC_KEY_BYTES];
	TAILQ_HEAD(, grant) list; /* that may be taken */
};

void grants_init(struct grants *);
void grants_fini(struct grants *);

/* Makes one: `bytes` are what may be shown.  -EUSERS: the session has too many; -ENOMEM, -EIO. */
int grants_give(struct grants *, uint32_t session, const struct identity *, struct opener *,
	const char *path, uint32_t flags, uint64_t expires_s, uint8_t bytes[GRANTS_BYTES]);
/*
 * Takes the one that is shown, which is the caller's then.  -EKEYREJECTED: it was not made here, or
 * changed; -ETIME: it has expired; -EALREADY: it was taken, or its session has gone.
 */
int grants_take(
	struct grants *, const uint8_t *bytes, size_t len, uint64_t now_s, struct grant **out);
/* The session has gone, and what it gave with it. */
void grants_forget(struct grants *, uint32_t session);
void grant_free(struct grant *); /* takes NULL */

#endif
