/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_sum: SUM: sums of files, computed where they lie.
 *
 * Several files at a time, each a task after the other of SUM_SLICE_NS, so that sums of any length
 * keep no thread from what others ask for, and end soon when their client goes.  Sums are told as
 * they are found, and twice a second how far it is: who waits knows that it goes on.
 */
#include "proto/message_sum.h"
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_limits.h"
#include "rftpd/serve/session_task.h"

#include "base/clock.h"
#include "base/opener.h"
#include "base/worker.h"
#include "tree/sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUM_LANES_MAX 4u
#define SUM_RUNNING_MAX 4u
#define SUM_SLICE_NS (NS_PER_MS * 10) /* less than a task pool takes for a thread that is stuck */
#define SUM_TELL_NS (NS_PER_S / 2)
#define SUM_FRAME_BYTES 16384u

struct summing;

/* One file at a time. */
struct sum_lane {
	struct task task; /* first */
	TAILQ_ENTRY(sum_lane) turn;
	struct summing *summing;
	uint16_t index;
	int result; /* of the slice: 1, 0, -errno */
	struct sum *sum;
	uint64_t done_bytes;            /* told of this file */
	const struct view_entry *entry; /* where the path leads */
	const char *beneath;
	int found; /* 0 or -errno */
	char path[MESSAGE_PATH_MAX + 1];
};

struct summing {
	struct daemon_session *session;
	struct message_sum_request request;
	struct wire_bytes rest; /* paths that are not begun */
	uint16_t begun;
	uint64_t bytes, told_ns;
	unsigned lanes_count, active;
	int error; /* of the control channel */
	struct message_sum_writer writer;
	uint8_t frame[SUM_FRAME_BYTES];
	struct sum_lane lanes[SUM_LANES_MAX];
	uint8_t paths[]; /* the request's */
};

static bool sum_is_over(const struct summing *m)
{
	const struct daemon_session *s = m->session;

	return m->error || s->lost || daemon_session_is_ending(s);
}

/* In a thread of the pool. */
static void sum_run(struct task *task)
{
	struct sum_lane *l = (struct sum_lane *)task;
	const struct summing *m = l->summing;
	int fd;

	l->result = l->found;
	if (!l->result && !l->sum) {
		opener_use(m->session->opener);
		fd = place_open_file(&l->entry->place, l->beneath);
		opener_use(NULL); /* the thread's next task is somebody else's */
		l->result = fd < 0 ? fd : sum_new(fd, m->request.algorithm, &l->sum);
	}
	if (!l->result)
		l->result = sum_step(l->sum, clock_now_ns() + SUM_SLICE_NS);
}

/* Sends what has been found. */
static void sum_tell(struct summing *m, bool more)
{
	ssize_t len = message_sum_end(&m->writer, more, m->bytes);

	if (!sum_is_over(m))
		m->error = daemon_session_reply(m->session, MESSAGE_SUM, m->frame, len);
	message_sum_begin(&m->writer, m->frame, sizeof m->frame);
	m->told_ns = clock_now_ns();
}

static void sum_record(struct summing *m, const struct sum_lane *l)
{
	const struct daemon_session *s = m->session;
	struct message_sum sum = {.index = l->index, .status = status_from_errno(l->result)};

	if (!l->result) {
		sum.size = sum_done_bytes(l->sum);
		sum.sum = (struct wire_bytes){sum_result(l->sum), sum_bytes(m->request.algorithm)};
	}
	audit_write(&s->daemon->audit, &(struct audit_event){.event = "sum",
					       .session = s->number,
					       .peer = s->peer,
					       .user = daemon_session_user(s),
					       .export_name = l->found ? NULL : l->entry->name,
					       .path = l->found ? l->path : l->beneath,
					       .status = sum.status,
					       .text = ""});
	if (message_sum_add(&m->writer, &sum)) {
		sum_tell(m, true);
		message_sum_add(&m->writer, &sum);
	}
}

static void sum_end(struct summing *m)
{
	struct daemon_session *s = m->session;
	int error;

	if (!s->lost && daemon_session_is_ending(s) && !m->error)
		m->error =
			daemon_session_refuse(s, MESSAGE_SUM, STATUS_SHUTDOWN, "the daemon ends");
	else
		sum_tell(m, false);
	error = m->error;
	free(m);
	session_task_leave(s, error);
}

/* The next file of a lane, or the next slice of its file, in its turn; or it has ended, and the
 * last of them ends it all. */
static void sum_next(struct sum_lane *l)
{
	struct summing *m = l->summing;
	struct wire_bytes path;

	if (!sum_is_over(m) && (l->sum || message_next_path(&m->rest, &path))) {
		if (!l->sum) {
			handle_path(l->path, path);
			l->found = session_limits_find(m->session, l->path, &l->entry, &l->beneath);
			if (l->found == VIEW_TOP)
				l->found = -EACCES;
			l->index = m->begun++;
			l->done_bytes = 0;
		}
		TAILQ_INSERT_TAIL(&m->session->daemon->sums_waiting, l, turn);
		return;
	}
	sum_free(l->sum);
	l->sum = NULL;
	if (!--m->active)
		sum_end(m);
}

/* The file has a sum, or none. */
static void sum_finish(struct sum_lane *l)
{
	if (!sum_is_over(l->summing))
		sum_record(l->summing, l);
	sum_free(l->sum);
	l->sum = NULL;
}

static void sum_give_turns(struct daemon *d)
{
	const unsigned cpus = worker_cpus(), most = cpus < SUM_RUNNING_MAX ? cpus : SUM_RUNNING_MAX;
	struct sum_lane *l;
	int err;

	while (d->sums_running < most && (l = TAILQ_FIRST(&d->sums_waiting))) {
		TAILQ_REMOVE(&d->sums_waiting, l, turn);
		/* from here on its thread writes the result */
		err = sum_is_over(l->summing) ? -ECANCELED
					      : task_pool_start(d->tasks, &l->task, clock_now_ns());
		if (!err) {
			d->sums_running++;
			continue;
		}
		l->result = err;
		sum_finish(l); /* there is no thread for it, or nobody waits for it */
		sum_next(l);
	}
}

/* In the loop, behind each slice. */
static void sum_done(struct task *task)
{
	struct sum_lane *l = (struct sum_lane *)task;
	struct summing *m = l->summing;
	struct daemon *d = m->session->daemon;

	d->sums_running--;
	if (l->sum) {
		m->bytes += sum_done_bytes(l->sum) - l->done_bytes;
		l->done_bytes = sum_done_bytes(l->sum);
	}
	if (l->result <= 0)
		sum_finish(l);
	if (clock_now_ns() - m->told_ns >= SUM_TELL_NS)
		sum_tell(m, true);
	sum_next(l);
	sum_give_turns(d);
}

int handle_sum(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_sum_request request;
	struct summing *m;
	int err = message_get_sum_request(&request, data, len);

	if (err)
		return err;
	m = malloc(sizeof *m + request.paths.len);
	if (!m)
		return -ENOMEM;
	memset(m, 0, sizeof *m);
	m->session = s;
	m->request = request;
	memcpy(m->paths, request.paths.data, request.paths.len);
	m->rest = (struct wire_bytes){m->paths, request.paths.len};
	m->told_ns = clock_now_ns();
	message_sum_begin(&m->writer, m->frame, sizeof m->frame);
	m->lanes_count = request.count < SUM_LANES_MAX ? request.count : SUM_LANES_MAX;
	session_task_enter(s);
	m->active = m->lanes_count;
	for (unsigned i = 0, lanes = m->lanes_count; i < lanes; i++) {
		m->lanes[i].summing = m;
		m->lanes[i].task.run = sum_run;
		m->lanes[i].task.done = sum_done;
	}
	for (unsigned i = 0, lanes = m->lanes_count; i < lanes; i++)
		sum_next(&m->lanes[i]);
	sum_give_turns(s->daemon);
	return 0;
}
