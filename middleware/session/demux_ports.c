/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/demux_ports: see demux_ports.h.
 */
#include "session/demux_ports.h"

#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void demux_ports_init(struct demux_ports *s, struct demux *demux)
{
	*s = (struct demux_ports){.dialogue = {.demux = demux, .open = true}};
	frame_queue_init(&s->dialogue.frames);
}

void demux_ports_fini(struct demux_ports *s)
{
	frame_queue_fini(&s->dialogue.frames);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		if (s->each[i])
			frame_queue_fini(&s->each[i]->frames);
		free(s->each[i]);
	}
}

static struct demux_port *make_port(struct demux_ports *s, unsigned number)
{
	struct demux_port *p;

	assert(number < MESSAGE_TRANSFERS_MAX);
	p = s->each[number];
	if (p)
		return p;
	p = s->each[number] = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct demux_port){.demux = s->dialogue.demux, .number = number};
	frame_queue_init(&p->frames);
	return p;
}

/* ---- whose it is ---- */

/* ABORT of what has not begun is the dialogue's. */
struct demux_port *demux_ports_of(struct demux_ports *s, const struct message_header *h)
{
	struct demux_port *p = transfer_is_frame(h->type) ? s->each[h->response] : NULL;
	bool kept = p && (p->parked || p->dropping) && h->type != TRANSFER_ABORT;

	return p && (p->open || kept) ? p : &s->dialogue;
}

/* ---- before a transfer begins ---- */

static void unkeep(struct demux_ports *s, struct demux_port *p)
{
	s->kept -= p->parked || p->dropping;
	p->parked = p->dropping = false;
}

struct whose {
	struct demux_ports *ports;
	struct demux_port *port;
};

static bool is_of_port(void *ctx, const struct message_header *h)
{
	const struct whose *w = ctx;

	return demux_ports_of(w->ports, h) == w->port;
}

/* Also what was taken in for the dialogue before it was known that a transfer begins: to its own
 * port, or nowhere. */
static int take_over(struct demux_ports *s, struct demux_port *p, struct frame_queue *to)
{
	struct whose whose = {s, p};

	return frame_queue_sift(&s->dialogue.frames, to, is_of_port, &whose);
}

static int keep(struct demux_ports *s, unsigned number, bool drop)
{
	struct demux_port *p = make_port(s, number);

	if (!p)
		return -ENOMEM;
	if (p->open)
		return 0;
	unkeep(s, p);
	s->kept++;
	p->parked = !drop;
	p->dropping = drop;
	if (drop)
		frame_queue_clear(&p->frames);
	return take_over(s, p, drop ? NULL : &p->frames);
}

int demux_ports_park(struct demux_ports *s, unsigned number)
{
	return keep(s, number, false);
}

int demux_ports_drop(struct demux_ports *s, unsigned number)
{
	return keep(s, number, true);
}

void demux_ports_unpark(struct demux_ports *s, unsigned number)
{
	struct demux_port *p = s->each[number];

	if (p && !p->open) {
		unkeep(s, p);
		frame_queue_clear(&p->frames);
	}
}

/* ---- while it runs ---- */

int demux_ports_open(struct demux_ports *s, unsigned number, struct demux_port **out)
{
	struct demux_port *p = make_port(s, number);
	int err = p ? frame_queue_make_fd(&p->frames) : -ENOMEM;

	if (!err)
		err = frame_queue_make_fd(&s->dialogue.frames);
	if (!err && !p->open) {
		unkeep(s, p);
		p->open = true;
		s->open++;
	}
	*out = err ? NULL : p;
	return err;
}

int demux_ports_close(struct demux_ports *s, struct demux_port *p)
{
	int err;

	assert(p->open);
	p->open = p->wants_room = false;
	s->open--;
	err = frame_queue_move(&p->frames, &s->dialogue.frames);
	frame_queue_unwake(&p->frames);
	frame_queue_wake(&s->dialogue.frames);
	return err;
}

/* ---- waking ---- */

static void wake(struct demux_port *p, bool waiting_only)
{
	if (!p || !p->open || (waiting_only && !p->wants_room))
		return;
	p->wants_room = false;
	frame_queue_wake(&p->frames);
}

static void wake_all(struct demux_ports *s, bool waiting_only)
{
	wake(&s->dialogue, waiting_only);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		wake(s->each[i], waiting_only);
}

void demux_ports_wake(struct demux_ports *s)
{
	wake_all(s, false);
}

void demux_ports_wake_waiting(struct demux_ports *s)
{
	wake_all(s, true);
}
