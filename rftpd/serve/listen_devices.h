/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen_devices: fabrics whose devices come and go while the daemon runs: it listens
 * on those that come, and lets go of listeners whose device went.  On a host with iWARP the fabric
 * that has the TCP port keeps it: soft and an iWARP device serve each other's clients.
 */
#ifndef RFTPD_LISTEN_DEVICES_H
#define RFTPD_LISTEN_DEVICES_H

#include "rftpd/serve/daemon.h"

/* Looks from now on, if a fabric that is to be served has devices.  0 or -errno, logged. */
int listen_devices_start(struct daemon *);
void listen_devices_stop(struct daemon *);

#endif
