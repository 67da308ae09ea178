/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_task: a part of a request that may block, such as every operation on names,
 * done beside the event loop.
 *
 * While its task runs the session is in SESSION_TASK: it reads no further frame, has no other task,
 * and is not freed.
 */
#ifndef RFTPD_SESSION_TASK_H
#define RFTPD_SESSION_TASK_H

#include "rftpd/jobs/task_pool.h"
#include "rftpd/serve/daemon_session.h"

struct session_task {
	struct task task; /* first */
	struct daemon_session *session;
	/* In a thread of the pool.  Of the session it may use what does not change: its place. */
	void (*work)(struct session_task *);
	/* In the loop, when the work is done: takes the task over and answers.  0, or -errno, which
	 * ends the session. */
	int (*answer)(struct session_task *);
	/* Instead of the answer, when nobody is there to hear it. */
	void (*forget)(struct session_task *);
};

/* Begins the work; `session` and the three functions are set.  The task is taken over: a request of
 * `type` is refused when no thread can be started.  0 or -errno as of handlers. */
int session_task_start(struct session_task *, uint16_t type);
/* The same; where no thread can be started, or a transfer of the session waits, it is done now, by
 * the loop. */
int session_task_do(struct session_task *);

/* For those that have tasks of their own: SESSION_TASK from now on; or what it was that kept it
 * from its next frame is over, with 0 or -errno, and the session, if it is still there, goes on or
 * ends. */
void session_task_enter(struct daemon_session *);
void session_task_leave(struct daemon_session *, int error);

#endif
