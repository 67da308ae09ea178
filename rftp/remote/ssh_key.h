/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/ssh_key: a private key in OpenSSH's form (openssh-key-v1), as ssh-keygen(1) makes it.
 *
 * Only Ed25519.  Of a key with a passphrase the public half is read without it.
 */
#ifndef RFTP_SSH_KEY_H
#define RFTP_SSH_KEY_H

#include "session/tls_sign.h"

#define SSH_KEY_FILE_MAX 65536u
#define SSH_KEY_WHY_MAX 512u

struct ssh_key {
	struct tls_key public;
	bool encrypted;               /* then there is no seed */
	bool is_strange;              /* in a way that ssh_key_unlock does not know */
	uint8_t seed[TLS_SEED_BYTES]; /* to be wiped */
};

/* 0; -EINVAL: it is not of that form, `why` says in which way; -EOPNOTSUPP: of another kind. */
int ssh_key_parse(const char *text, size_t len, struct ssh_key *, char why[SSH_KEY_WHY_MAX]);
/* The same in a file that nobody else may read.  -EPERM, -ENOENT, ...: `why` names it. */
int ssh_key_load(const char *path, struct ssh_key *, char why[SSH_KEY_WHY_MAX]);
/* The seed, too, of a key with a passphrase, when ssh_unlock_ready.  -EKEYREJECTED: it is not the
 * right one, or the file is damaged; -errno; `why` says it. */
int ssh_key_unlock(
	const char *path, const char *passphrase, struct ssh_key *, char why[SSH_KEY_WHY_MAX]);

#endif
