/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/host_key: the key by which clients know this daemon.
 *
 * Its file is made at the first start, and stays.
 */
#ifndef RFTPD_HOST_KEY_H
#define RFTPD_HOST_KEY_H

#include "rftpd/daemon_settings.h"
#include "session/tls.h"

/*
 * The file: as configured; else host_key in $STATE_DIRECTORY (systemd.exec(5)); else, for root, in
 * /var/lib/rftpd; else in $XDG_STATE_HOME/rftpd or ~/.local/state/rftpd.  -ENOENT: there is no
 * home.
 */
int host_key_path(const struct daemon_settings *, char *path, size_t size);

/* Reads the key, making it first where there is none, and the certificate if one is configured.
 * Logs the fingerprint.  -errno: logged. */
int host_key_open(const struct daemon_settings *, struct tls_context **out);

/* Whether they can be used; where there is no key yet nothing is made.  0 or -EINVAL, logged. */
int host_key_check(const struct daemon_settings *);

#endif
