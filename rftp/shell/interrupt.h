/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/interrupt: Ctrl-C and the like, made into something that poll(2) sees.
 *
 * The first SIGINT, SIGTERM or SIGHUP makes interrupt_fd readable: a transfer stops and discards
 * the file that it was writing.  The second one ends the program the hard way, unless it follows
 * within half a second: timeout(1) signals a process twice, and means it once.
 */
#ifndef RFTP_INTERRUPT_H
#define RFTP_INTERRUPT_H

/* Installs the handlers, ignores SIGPIPE.  0 or -errno. */
int interrupt_init(void);
int interrupt_fd(void);
/* The signal that came since the last clear; 0: none. */
int interrupt_signal(void);
/* Forgets it: the user has been told. */
void interrupt_clear(void);
/* The same, but a copy of it that still comes counts for nothing: what it asked for is done. */
void interrupt_answered(void);

#endif
