/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/admit: whether one more session may begin: limits of all sessions, and of those of
 * one address, so that nobody alone can keep everybody else out, and idle ones that give way.
 */
#ifndef RFTPD_ADMIT_H
#define RFTPD_ADMIT_H

#include "rftpd/serve/daemon.h"

/* NULL: one from `peer` may begin; else why not, for the log. */
const char *admit_refusal(const struct daemon *, const struct sockaddr *peer);
/* Where there are as many sessions as may be, ends the one that has asked for nothing for longest,
 * if that is long enough. */
void admit_make_room(struct daemon *);

#endif
