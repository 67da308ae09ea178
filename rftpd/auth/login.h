/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/login: whether what a client shows at its login is somebody's.
 *
 * It knows neither sessions nor the loop: an attempt has copies of all that a check needs, so that
 * a thread may do it while its session ends, or the configuration is read again.
 */
#ifndef RFTPD_LOGIN_H
#define RFTPD_LOGIN_H

#include "proto/message_login.h"
#include "rftpd/auth/identity.h"
#include "rftpd/daemon_settings.h"
#include "session/tls.h"

#include <stdbool.h>

struct login_attempt {
	struct identity shown; /* method and user, as the client says */
	uint8_t *data;         /* as LOGIN has it */
	size_t len;
	bool anonymous;                               /* is let in */
	char *users;                                  /* a file; NULL: none */
	char *authorized_keys, *certificate_users;    /* the same */
	uint8_t exported[MESSAGE_LOGIN_EXPORT_BYTES]; /* of the session's TLS, for a signature */
	char *names; /* of the certificate; NULL: none that counts */
	char names_why[TLS_WHY_MAX];
	const uint8_t *once_key; /* with whom it is of; the settings' */
	const char *once_user;
	bool system_users;
	bool asks;        /* set by login_attempt_check: see there */
	char address[64]; /* from where; the caller may set it, for PAM */
	/* out */
	struct identity identity; /* whose it is */
	struct opener *opener;    /* of a user of the system: the caller may take it */
	char why[512];            /* not taken: for the log alone */
};

/* Bit n: method n of LOGIN is known here. */
unsigned login_methods(const struct daemon_settings *);
/* Whether the files that the settings name can be used, by this process, or, `trial`, by the daemon
 * that this one is not: root may try what another user will do.  0 or -EINVAL, logged. */
int login_check_settings(const struct daemon_settings *, bool trial);

/* Copies what a check will need.  `tls` is the session's, and is not used later.  NULL: no memory.
 */
struct login_attempt *login_attempt_new(
	const struct message_login *, const struct daemon_settings *, const struct tls *tls);
void login_attempt_free(struct login_attempt *); /* wipes it; takes NULL */
/* Whether the check takes a while: it is then for a thread. */
bool login_attempt_is_slow(const struct login_attempt *);
/* Whether guessing would help against what was shown, so that a refusal should take its time. */
bool login_attempt_is_guess(const struct login_attempt *);

/* true: taken, `identity` is set.  false: `why`, or, with `asks`, login_attempt_ask is to say it.
 * An error of this side's is no login either. */
bool login_attempt_check(struct login_attempt *);
/* The rest of it, which takes no CPU here, but waits for another process, and perhaps another host.
 */
bool login_attempt_ask(struct login_attempt *);

#endif
