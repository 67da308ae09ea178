/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/ssh_unlock: a private key of OpenSSH without its passphrase, by libssh, which knows
 * the ciphers that ssh-keygen(1) has for it, and bcrypt.
 *
 * It is loaded when the first such key is opened: who has none does not wait for it at the start,
 * and does without it.
 */
#ifndef RFTP_SSH_UNLOCK_H
#define RFTP_SSH_UNLOCK_H

#include <stdbool.h>

/* Whether there is a libssh, which is loaded. */
bool ssh_unlock_ready(void);
/*
 * When it is ready.  `text`: the file.  0 and the same key without a passphrase, for
 * ssh_unlock_free; -EKEYREJECTED: the passphrase is wrong, or the key is damaged; -ENOMEM.  Takes
 * its time, some tenths of a second: that is what the passphrase is protected by.
 */
int ssh_unlock(const char *text, const char *passphrase, char **plain);
void ssh_unlock_free(char *plain); /* wipes it; takes NULL */

#endif
