/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/activation: sockets that the service manager listens on for us, as sd_listen_fds(3)
 * describes: the daemon starts when the first client comes, and loses none while it starts again.
 */
#ifndef RFTPD_ACTIVATION_H
#define RFTPD_ACTIVATION_H

#include "rftpd/daemon_settings.h"

struct activation {
	int fds[DAEMON_LISTEN_MAX];
	unsigned count;
};

/* Takes those that were handed over, once; what is no TCP socket that listens is closed, and that
 * is logged.  Closes none of the others: they are ours for good. */
void activation_take(struct activation *);
/* Their addresses are listened on, too; without other addresses they alone.  0 or -errno: `why`
 * says so. */
int activation_use(const struct activation *, struct daemon_settings *, char why[DAEMON_WHY_MAX]);

#endif
