/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/close_task: see close_task.h.
 */
#include "rftpd/serve/close_task.h"

#include "rftpd/serve/session_task.h"

#include <errno.h>
#include <stdlib.h>

struct close_task {
	struct session_task base; /* first */
	unsigned transfer, wanted;
	int (*then)(struct daemon_session *, unsigned transfer, unsigned wanted);
};

static void work(struct session_task *task)
{
	link_close_channels(task->session->link, ((struct close_task *)task)->transfer);
}

static void forget(struct session_task *task)
{
	free(task);
}

static int answer(struct session_task *task)
{
	struct close_task t = *(struct close_task *)task;

	free(task);
	return t.then(t.base.session, t.transfer, t.wanted);
}

int close_task_do(struct daemon_session *s, unsigned transfer,
	int (*then)(struct daemon_session *, unsigned transfer, unsigned wanted), unsigned wanted)
{
	struct close_task *t;

	if (!link_has_channels(s->link, transfer))
		return then(s, transfer, wanted);
	t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->base = (struct session_task){
		.session = s, .work = work, .answer = answer, .forget = forget};
	t->transfer = transfer;
	t->wanted = wanted;
	t->then = then;
	return session_task_do(&t->base);
}
