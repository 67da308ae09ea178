/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/login_keys: the Ed25519 keys that a user can log in with, and LOGIN messages that
 * they sign: the one of --identity, or those of ssh-agent(1) and then ~/.ssh/id_ed25519.  One with
 * a passphrase comes when somebody has said that.
 */
#ifndef RFTP_LOGIN_KEYS_H
#define RFTP_LOGIN_KEYS_H

#include "proto/message.h"
#include "rftp/remote/ssh_agent.h"
#include "rftp/remote/ssh_key.h"
#include "session/tls.h"

#include <limits.h>

#define LOGIN_KEYS_MAX 6u /* that are shown: a server ends a session that shows many */

struct login_keys {
	int agent;                    /* -errno: none */
	int agent_keys;               /* that it has; -errno: it does not say, or there is none */
	char unused[SSH_KEY_WHY_MAX]; /* why the usual file is not used; "": it is, or is not asked
				       */
	struct tls_key keys[SSH_AGENT_KEYS_MAX + 1];
	unsigned count, at;
	bool has_file;         /* the last one is of a file: */
	struct ssh_key file;   /* with its seed, if there is one */
	char locked[PATH_MAX]; /* a file whose key has a passphrase, and no agent has it; "": none
				*/
	uint8_t data[TLS_KEY_MAX + 2 + 2 +
		     TLS_SIGNATURE_BYTES]; /* of LOGIN, as it was shown last */
};

/* `identity`: a file, or "" for the usual ones.  0; -errno and `why`: the one that is named cannot
 * be used.  login_keys_close in any case. */
int login_keys_open(
	struct login_keys *, const char *identity, int cancel_fd, char why[SSH_KEY_WHY_MAX]);
void login_keys_close(struct login_keys *); /* wipes it */
/* From the first one again. */
void login_keys_again(struct login_keys *);

/* Opens the key of `locked`, which login_keys_next then gives.  As ssh_key_unlock. */
int login_keys_unlock(struct login_keys *, const char *passphrase, char why[SSH_KEY_WHY_MAX]);

/*
 * The next key's login for the user: 1 and its data, which stay until the next call; 0: there is no
 * other.  -errno: of this one, `why` says what; the next call goes on.  `shown` is the fingerprint.
 */
int login_keys_next(struct login_keys *, const struct tls *, const char *user, int cancel_fd,
	struct wire_bytes *data, char shown[TLS_FINGERPRINT_MAX], char why[SSH_KEY_WHY_MAX]);

#endif
