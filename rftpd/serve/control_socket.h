/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/control_socket: what an administrator may ask of a daemon that runs (rftpctl), and
 * what Prometheus may.
 */
#ifndef RFTPD_CONTROL_SOCKET_H
#define RFTPD_CONTROL_SOCKET_H

#include "rftpd/serve/daemon.h"

/* Whether the settings' socket and address can be had.  0 or -EINVAL, logged. */
int control_socket_check(const struct daemon_settings *);
/* Opens what the settings name.  0; -EINVAL as above; -errno; logged. */
int control_socket_open(struct daemon *);
/* And removes the socket. */
void control_socket_close(struct daemon *);

#endif
