/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/close_task: the data channels of a transfer that does not run are closed beside the
 * event loop: a device may take its time for it.
 */
#ifndef RFTPD_CLOSE_TASK_H
#define RFTPD_CLOSE_TASK_H

#include "rftpd/serve/daemon_session.h"

/* Calls `then` when they are closed, with what is given here: at once where there are none, else
 * by a task of the session (session_task_do).  0 or -errno, which ends the session. */
int close_task_do(struct daemon_session *, unsigned transfer,
	int (*then)(struct daemon_session *, unsigned transfer, unsigned wanted), unsigned wanted);

#endif
