/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen: fabrics, the addresses listened on, and who connects: which session a new
 * channel begins or belongs to.
 */
#ifndef RFTPD_LISTEN_H
#define RFTPD_LISTEN_H

#include "rftpd/serve/daemon.h"

/* Whether all fabrics and ports can be had: listens for a moment, serves nobody.  0 or -EINVAL,
 * logged. */
int listen_trial(const struct daemon_settings *);
/* Opens the fabrics and listens.  -EINVAL as above; -errno; logged. */
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
