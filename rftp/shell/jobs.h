/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/jobs: commands that run in the background, behind '&': each in a thread of its own, as
 * one more transfer of the session.
 *
 * A job has a client of its own (client_clone): it speaks when nobody else does, and stays where
 * the shell was in both file systems when it began.  All functions belong to the shell's thread.
 */
#ifndef RFTP_JOBS_H
#define RFTP_JOBS_H

#include "rftp/remote/client.h"
#include "rftp/shell/lexer.h"

struct jobs;

/* NULL: no memory. */
struct jobs *jobs_new(void);
/* Waits for all; an interrupt cancels them.  Takes NULL. */
void jobs_free(struct jobs *, struct client *);

/* Starts a command, which is taken over on success.  0 or -errno, reported. */
int jobs_start(struct jobs *, struct client *, struct lexer_command *);
/* Tells of those that have ended; their errors count as the client's.  The first of their errors.
 */
int jobs_collect(struct jobs *, struct client *);
/* Tells of those that run. */
void jobs_list(struct jobs *, struct client *);
/* Waits for one, or for all (0): 0 or its error; -ECANCELED: an interrupt came first; -ENOENT,
 * reported. */
int jobs_wait(struct jobs *, struct client *, unsigned number);
/* Cancels one: 0, or -ENOENT, reported. */
int jobs_kill(struct jobs *, struct client *, unsigned number);

#endif
