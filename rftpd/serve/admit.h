/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/admit: whether one more session may begin: limits of all sessions, and of those of
 * one address, so that nobody alone can keep everybody else out, idle ones that give way, and
 * addresses that are not listened to.
 */
#ifndef RFTPD_ADMIT_H
#define RFTPD_ADMIT_H

#include "rftpd/serve/daemon.h"

void admit_init(struct daemon *);

/* NULL: one from `peer` may begin; else why not, for the log. */
const char *admit_refusal(const struct daemon *, const struct sockaddr *peer);
/* Where there are as many sessions as may be, or few descriptors are left, ends the one that has
 * asked for nothing for longest, if that is long enough; where as many are being set up, the one
 * that has been for longest. */
void admit_make_room(struct daemon *);
/* How many data channels a session may open that would like so many, 1 or more: one where few
 * descriptors are left, as others want to connect, too. */
unsigned admit_channels(const struct daemon *, unsigned wanted);

/* Whether a user has as many sessions as one may have. */
bool admit_user_is_full(const struct daemon *, const char *user);

/* Notes what somebody from `peer` did; and whether it has become too much, so that nobody from
 * there is to be listened to for now. */
void admit_blame(struct daemon *, const struct sockaddr *peer, enum penalty);
bool admit_shuns(struct daemon *, const struct sockaddr *peer);

#endif
