/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_limits: how many sessions a user, a network, an export may have, by the rules
 * of the setting `limit`.
 *
 * A session counts from its login on, and for an export from the first request about a name in it;
 * until its end.  All is called in the loop's thread.
 */
#ifndef RFTPD_SESSION_LIMITS_H
#define RFTPD_SESSION_LIMITS_H

#include "rftpd/serve/daemon_session.h"

/* Whether one more of this user (NULL: anonymous) may log in from there: NULL; or the rule that
 * says no. */
const struct limit_rule *session_limits_login(
	const struct daemon *, const char *user, const struct sockaddr *from);
/* As view_find of the session's view; -EUSERS: the export has as many sessions as it may have. */
int session_limits_find(struct daemon_session *, const char *path, const struct view_entry **out,
	const char **beneath);

#endif
