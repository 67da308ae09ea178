/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_task: see session_task.h.
 */
#include "rftpd/serve/session_task.h"

#include "base/clock.h"
#include "base/opener.h"
#include "proto/status.h"
#include "rftpd/serve/session_turns.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static void task_run(struct task *task)
{
	struct session_task *t = (struct session_task *)task;

	opener_use(t->session->opener);
	t->work(t);
	opener_use(NULL); /* the thread's next task is somebody else's */
}

void session_task_enter(struct daemon_session *s)
{
	assert(s->state & (SESSION_READY | SESSION_RUNNING));
	s->state = SESSION_TASK;
	deadline_stop(&s->deadline);
}

static void task_left(struct daemon_session *s)
{
	assert(s->state == SESSION_TASK);
	s->state = s->transfers.running ? SESSION_RUNNING : SESSION_READY;
}

/* What it asked for was answered, or could not be. */
static void task_answered(struct daemon_session *s, int err)
{
	if (s->dead)
		return;
	if (err)
		daemon_session_break(s, err);
	else if (daemon_session_is_ending(s))
		daemon_session_stop(s);
	else if (s->state & (SESSION_READY | SESSION_RUNNING))
		daemon_session_ready(s);
	else if (s->state == SESSION_WAITING)
		session_turns_look(s);
}

void session_task_leave(struct daemon_session *s, int error)
{
	task_left(s);
	if (s->lost)
		daemon_session_over(s);
	else
		task_answered(s, error);
}

static void task_ended(struct daemon_session *s, struct session_task *t)
{
	task_left(s);
	if (s->lost) {
		t->forget(t);
		daemon_session_over(s);
		return;
	}
	task_answered(s, t->answer(t));
}

static void task_done(struct task *task)
{
	struct session_task *t = (struct session_task *)task;

	task_ended(t->session, t);
}

static int start(struct session_task *t)
{
	int err;

	t->task.run = task_run;
	t->task.done = task_done;
	err = task_pool_start(t->session->daemon->tasks, &t->task, clock_now_ns());
	if (!err)
		session_task_enter(t->session);
	return err;
}

int session_task_do(struct session_task *t)
{
	bool may_start = t->session->state & (SESSION_READY | SESSION_RUNNING);

	if (may_start && !start(t))
		return 0;
	t->work(t);
	return t->answer(t);
}

int session_task_start(struct session_task *t, uint16_t type)
{
	struct daemon_session *s = t->session;
	int err = start(t);

	if (!err)
		return 0;
	t->forget(t);
	return daemon_session_refuse(
		s, type, status_from_errno(err), "no thread can be started: %s", strerror(-err));
}
