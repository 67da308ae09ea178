/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/authorized_keys: the public keys of a user, in the form of OpenSSH's file
 * (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
 *
 * Only Ed25519 keys count.  A line with an option that would narrow what the key is good for there,
 * such as command="...", is not taken here, where it would mean nothing.
 */
#ifndef RFTPD_AUTHORIZED_KEYS_H
#define RFTPD_AUTHORIZED_KEYS_H

#include "session/tls_key.h"

#include <stdbool.h>

#define AUTHORIZED_WHY_MAX 512u

/* Whether the text names the key; `line` (from 1): where, or where it stands with an option that
 * keeps it from counting; else 0. */
bool authorized_keys_have(const char *text, size_t len, const struct tls_key *, unsigned *line);

/* The user's file: `pattern` with %u for the user and %% for %.  The user's name is one that can be
 * (users_name_ok).  0, -EINVAL (another %), -ENAMETOOLONG. */
int authorized_keys_path(const char *pattern, const char *user, char *path, size_t size);
/*
 * Whether the file at `path` names the key.  If not, `why` says why not, for the log.  A file that
 * others than its owner, root or us, may change counts for nothing.
 */
bool authorized_keys_file_has(
	const char *path, const struct tls_key *, char why[AUTHORIZED_WHY_MAX]);

#endif
