/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/control_path: where rftpctl looks for a daemon unless it is told otherwise.
 *
 * What is said there: one line, "COMMAND ARGUMENT...", or "json COMMAND ..."; then the answer,
 * whose first line is "ok" or "error: TEXT", up to the end of the connection.
 */
#ifndef RFTPD_CONTROL_PATH_H
#define RFTPD_CONTROL_PATH_H

#define CONTROL_PATH "/run/rftpd/control"

#endif
