/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/control_command: the commands of rftpctl, as the daemon understands them.
 */
#ifndef RFTPD_CONTROL_COMMAND_H
#define RFTPD_CONTROL_COMMAND_H

#include "rftpd/serve/daemon.h"

#include <stdio.h>

/* One line, which is cut into words; the answer's first line is "ok" or "error: TEXT". */
void control_command_run(struct daemon *, char *line, FILE *out);

#endif
