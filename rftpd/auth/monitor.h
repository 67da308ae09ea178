/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/monitor: users of the system: a process that stays root while the daemon does not.
 *
 * It is forked before a device is opened, a client served or a thread started.  It reads nothing:
 * for each login it forks a process, which is all that the daemon talks to:
 *
 *     state      what it grants, over a connection of its own
 *     asked      one user name and password, to PAM; ends if it is not taken
 *     granted    it has become that user, for good, confined to the exports (Landlock): the calls
 * of base/opener, with that user's rights
 *
 * Nothing leads back.  It ends with the connection, so with the session, or with the daemon.
 */
#ifndef RFTPD_MONITOR_H
#define RFTPD_MONITOR_H

#include "rftpd/auth/monitor_user.h"
#include "rftpd/daemon_settings.h"

#include <stddef.h>
#include <sys/types.h>

struct opener;

struct monitor_login {
	const char *user, *password;
	const char *address; /* from where: PAM is told */
};

/*
 * If the settings ask for it: starts the monitor, and this process becomes the user whom the
 * settings name (`user`).  In main, first of all.  0 or -errno, logged.
 */
int monitor_start(const struct daemon_settings *);
/* As whom this process then goes on. */
const char *monitor_user(const struct daemon_settings *);
/* What can be said of it without starting it.  0 or -EINVAL, logged. */
int monitor_check(const struct daemon_settings *);

/*
 * Any thread; takes its time.  0, an opener, which is the caller's, and the name as the host writes
 * it, which may be another than the one that was asked for; -EACCES: not taken; or -errno of what
 * else went wrong; `why` is for the log.
 */
int monitor_login(const struct monitor_login *, struct opener **out, char name[MONITOR_NAME_MAX],
	char *why, size_t size);

#endif
