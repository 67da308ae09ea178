/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/xferlog: events of the audit log as lines of xferlog(5), for programs that count what FTP
 * servers did.
 */
#ifndef RFTPD_XFERLOG_H
#define RFTPD_XFERLOG_H

#include "rftpd/audit.h"

#include <stdio.h>
#include <time.h>

/* Whether the form has a line for it: files that came, went, or were removed. */
bool xferlog_has(const struct audit_event *);
/* One line; `now_ns` is what since_ns is of, `when` the time of day.  Blanks and control characters
 * of a name become `_`, as is usual, so that each line has the same fields. */
void xferlog_put(FILE *, const struct audit_event *, uint64_t now_ns, time_t when);

#endif
