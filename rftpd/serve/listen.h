/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen: fabrics, the addresses listened on, and who connects: which session a new
 * channel begins or belongs to.
 */
#ifndef RFTPD_LISTEN_H
#define RFTPD_LISTEN_H

#include "base/addr.h"
#include "rftpd/serve/daemon.h"

/* Whether the addresses are this host's and may be listened on, and all fabrics can be had.  Takes
 * no port: a daemon that runs may have them.  0 or -EINVAL, logged. */
int listen_trial(const struct daemon_settings *);
/* For it: the same but for whose the addresses are.  0; -EINVAL; -errno; logged. */
int listen_open_fabrics(struct daemon *);
/* What the settings say: at most LISTEN_RESOLVED_MAX addresses for the text of number `i` (NULL: no
 * more), checked.  How many, or -EINVAL, logged. */
#define LISTEN_RESOLVED_MAX 8u
const char *listen_text(const struct daemon_settings *, unsigned i);
int listen_resolve(
	const struct daemon_settings *, const char *text, struct addr out[LISTEN_RESOLVED_MAX]);
/* Opens the fabrics and listens.  As above. */
int listen_open(struct daemon *);
/* "ready ADDR:PORT FABRIC[,FABRIC...]", a line for each address; flushed.  0 or -errno. */
int listen_announce(const struct daemon *, FILE *);
/* Takes no more connections. */
void listen_close(struct daemon *);
/* Closes the fabrics too; no session is left. */
void listen_fini(struct daemon *);

/* For rftpd/serve/listen_devices: whether a fabric is to be served; opens one that has a device
 * now.  0 or -errno, not logged. */
bool listen_wants(const struct daemon *, const char *fabric);
int listen_open_transport(struct daemon *, const char *fabric);

#endif
