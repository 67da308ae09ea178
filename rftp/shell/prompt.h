/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/prompt: one line from the person at the terminal, with history; meanwhile it watches
 * the connection and Ctrl-C.  Around readline(3), which lives once a process.
 */
#ifndef RFTP_PROMPT_H
#define RFTP_PROMPT_H

#include "rftp/remote/client.h"

/* Loads the history. */
void prompt_start(struct client *);
/* Saves it. */
void prompt_stop(struct client *);
/* 1: *line is to be freed; 0: the end (Ctrl-D, or a signal that ends the program). */
int prompt_read(struct client *, char **line);

#endif
