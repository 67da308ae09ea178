/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/admit: whether one more session may begin: limits of all sessions, and of those of
 * one address, so that nobody alone can keep everybody else out, idle ones that give way, and
 * addresses that are not listened to.
 */
#ifndef RFTPD_ADMIT_H
#define RFTPD_ADMIT_H

#include "base/addr.h"
#include "rftpd/serve/daemon.h"

/* Sessions of one address, as far as it tells of a host (addr_host). */
struct admit_source {
	SLIST_ENTRY(admit_source) entry;
	uint8_t host[ADDR_HOST_BYTES];
	unsigned sessions, half_open;
};

void admit_init(struct daemon *);

/* A session begins; is set up, or never will be; has ended.  They are counted here, so that a crowd
 * of them costs those who come no more than one does.  0 or -ENOMEM. */
int admit_begin(struct daemon_session *);
void admit_is_set_up(struct daemon_session *);
void admit_end(struct daemon_session *);

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
