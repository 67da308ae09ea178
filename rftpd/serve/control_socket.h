/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/control_socket: what an administrator may ask of a daemon that runs (rftpctl), and
 * what Prometheus may.
 */
#ifndef RFTPD_CONTROL_SOCKET_H
#define RFTPD_CONTROL_SOCKET_H

#include "rftpd/serve/daemon.h"

/* As the settings say; else where the service manager says that it may be.  false: nowhere. */
bool control_socket_path(const struct daemon_settings *, char *out, size_t size);
/* Whether the settings' socket and address could be had, were no other daemon there.  Takes
 * neither. 0 or -EINVAL, logged. */
int control_socket_check(const struct daemon_settings *);
/* Opens what the settings name.  0; -EINVAL as above; -errno; logged. */
int control_socket_open(struct daemon *);
/* And removes the socket. */
void control_socket_close(struct daemon *);

#endif
