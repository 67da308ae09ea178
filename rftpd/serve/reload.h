/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/reload: new settings in a daemon that serves.
 *
 * Sessions go on as they are: on the export and the channels that they have, and with the limits
 * that their transfer was given.  What they ask for from then on, and who comes, has the new ones.
 * Addresses and fabrics need a new start, which is said.
 */
#ifndef RFTPD_RELOAD_H
#define RFTPD_RELOAD_H

#include "rftpd/configuration.h"
#include "rftpd/serve/daemon.h"

/* Opens the log anew, reads the configuration and uses it.  0, and `why` lists the settings that
 * are others now and need a new start ("": none); or -errno, logged and in `why`, and all is as it
 * was. */
int reload(struct daemon *, char why[CONF_WHY_MAX]);
/* One limit, until the configuration is read again.  As above. */
int reload_limit(struct daemon *, const char *name, const char *value, char why[CONF_WHY_MAX]);
/* Closes exports that were replaced and that no session is on any more. */
void reload_tidy(struct daemon *);

#endif
