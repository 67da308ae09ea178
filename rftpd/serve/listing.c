/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listing: see listing.h.
 */
#include "rftpd/serve/listing.h"

#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_limits.h"

static void listing_work(struct session_task *task)
{
	struct listing *l = (struct listing *)task;

	if (l->found < 0)
		l->result = l->found;
	else
		l->ops->fill(l);
}

static int listing_answer(struct session_task *task)
{
	struct listing *l = (struct listing *)task;
	struct daemon_session *s = task->session;
	int err;

	if (l->result < 0) /* what was sent before it is void: a refusal ends the listing as `more`
			      0 does */
		err = handle_refuse_path(s, l->ops->type, l->result, l->path);
	else
		err = daemon_session_reply(s, l->ops->type, l->frame, l->frame_bytes);
	if (l->result != 1) {
		s->listing = NULL;
		listing_free(l);
	}
	return err;
}

static void listing_forget(struct session_task *task)
{
	task->session->listing = NULL;
	listing_free((struct listing *)task);
}

int listing_start(struct daemon_session *s, struct listing *l, const struct listing_ops *ops)
{
	const struct view_entry *entry;

	l->ops = ops;
	l->task = (struct session_task){.session = s,
		.work = listing_work,
		.answer = listing_answer,
		.forget = listing_forget};
	l->found = session_limits_find(s, l->path, &entry, &l->beneath);
	l->place = l->found ? NULL : &entry->place;
	l->export_name = l->found ? NULL : entry->name;
	s->listing = l;
	return listing_more(s);
}

int listing_more(struct daemon_session *s)
{
	return session_task_start(&s->listing->task, s->listing->ops->type);
}

void listing_free(struct listing *l)
{
	if (l)
		l->ops->free(l);
}
