/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/password: where a password comes from, but for the terminal (base/secret): a file, a
 * command's output.
 *
 * Never from an argument: everybody on the host may read those of all processes.
 */
#ifndef RFTP_PASSWORD_H
#define RFTP_PASSWORD_H

#include <stddef.h>

#define PASSWORD_MAX 1025u /* with its NUL */
#define PASSWORD_WHY_MAX 512u

/* The first line of a file that belongs to the user and that nobody else may read.  -errno: `why`
 * says it. */
int password_read_file(const char *path, char password[PASSWORD_MAX], char why[PASSWORD_WHY_MAX]);
/* The first line that a command of the shell writes. */
int password_read_command(const char *command, int cancel_fd, char password[PASSWORD_MAX],
	char why[PASSWORD_WHY_MAX]);

/* The same of a program, argv[0], which is looked for as a shell does; `what` names it in `why`.
 * -ECHILD: it did not end with 0. */
int password_read_program(char *const argv[], const char *what, int cancel_fd,
	char password[PASSWORD_MAX], char why[PASSWORD_WHY_MAX]);

/*
 * Opens a file with secrets: a regular one, which nobody but its owner may read or change.  The
 * descriptor, or -errno, of -EPERM: `why` says what to do about it.
 */
int password_open_private(const char *path, char why[PASSWORD_WHY_MAX]);

#endif
