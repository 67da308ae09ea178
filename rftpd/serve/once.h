/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/once: `rftpd --serve-once`: one session, for who started it through ssh, with the
 * rights that this user has here.
 *
 * It listens on the address that ssh came to, on a free port, with a host key made for it, and says
 * on standard output where, by which key it is known, and a key that is good for one login.  It
 * ends with that session, with its standard input, or when nobody has come in time.
 */
#ifndef RFTPD_ONCE_H
#define RFTPD_ONCE_H

#include "proto/message.h"
#include "proto/message_login.h"
#include "rftpd/daemon_settings.h"
#include "rftpd/serve/poller.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ONCE_GREETING "rftp-once" /* the line: this, 1, port, fingerprint, key, address */
#define ONCE_WAIT_S 60u           /* for the login */

struct daemon;

struct once {
	bool active, over;
	bool taken; /* somebody has logged in */
	uint64_t by_ns;
	struct watch input;
};

/* What is served so: the settings that the command line leaves to it.  Goes to the user's home.  0
 * or -errno, logged.  `key` lives as long as the settings. */
int once_prepare(struct daemon_settings *, uint8_t key[MESSAGE_LOGIN_ONCE_BYTES]);
/* The user's home, where paths begin: absolute. */
const char *once_home(void);

/* When the daemon listens: says so, and watches standard input. */
int once_begin(struct daemon *, const uint8_t key[MESSAGE_LOGIN_ONCE_BYTES], FILE *out);
/* Somebody has logged in: the key is no good any more. */
void once_taken(struct daemon *);
/* That session has ended. */
void once_ended(struct daemon *);
/* Whether the daemon is to end now; UINT64_MAX of once_next_ns: nothing to wait for. */
bool once_is_over(const struct daemon *, uint64_t now_ns);
uint64_t once_next_ns(const struct daemon *);

#endif
