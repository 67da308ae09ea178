/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/shell: commands from a person, a string, a file or stdin.
 */
#ifndef RFTP_SHELL_H
#define RFTP_SHELL_H

#include "rftp/remote/client.h"

/* Commands until the end, quit, or the first error: 0 or -errno, reported. */
int shell_run_text(struct client *, const char *text);
/* Whether the first of them is ls of the directory that it begins in. */
bool shell_lists_first(const char *text);
/* "-" is stdin. */
int shell_run_file(struct client *, const char *path);
/* A person at the terminal; errors do not end it. */
void shell_run_terminal(struct client *);

#endif
