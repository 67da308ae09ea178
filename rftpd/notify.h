/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/notify: tells the service manager how we are, as sd_notify(3) describes: one datagram to
 * the socket that NOTIFY_SOCKET names.
 */
#ifndef RFTPD_NOTIFY_H
#define RFTPD_NOTIFY_H

/*
 * `state` is one or more lines such as "READY=1".  0, also where nobody listens (no NOTIFY_SOCKET);
 * -errno, logged as a warning: it was not told.  Never blocks.
 */
int notify_send(const char *state);

#endif
