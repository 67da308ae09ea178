/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/demux: see demux.h.
 *
 * Owns the lock that the control channel is used under, and knows whose each frame is.
 */
#include "session/demux.h"

#include "base/clock.h"
#include "proto/transfer.h"
#include "session/frame_queue.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TAKEN_AT_ONCE 64u /* frames, before whoever takes them in has its own turn */

struct demux_port {
	struct demux *demux;
	unsigned number; /* of the transfer */
	/* under the lock */
	bool open;
	/* no transfer reads it: what comes is kept for the one that is about to begin, or dropped
	 */
	bool parked, dropping;
	bool wants_room; /* it waits until all that is queued has left */
	struct frame_queue frames;
	/* its own thread's: the frame that was given last, where it is the control's */
	bool direct;
	struct message_header header;
	const uint8_t *data;
};

struct demux {
	struct control *control;
	pthread_mutex_t lock;
	struct demux_port dialogue;
	struct demux_port *ports[MESSAGE_TRANSFERS_MAX]; /* NULL: it was never open */
	unsigned open, parked;                           /* of them; parked: or dropping */
	int error;                                       /* of control_get, for good */
	/* a frame that the control gave, and whose port was full */
	bool held;
	bool more; /* take_in stopped at its bound: no descriptor tells of what it has left */
	struct message_header header;
	const uint8_t *data;
	_Atomic uint64_t heard_ns;
};

int demux_new(struct control *control, struct demux **out)
{
	struct demux *d = calloc(1, sizeof *d);

	if (!d)
		return -ENOMEM;
	d->control = control;
	d->dialogue = (struct demux_port){.demux = d, .open = true};
	frame_queue_init(&d->dialogue.frames);
	pthread_mutex_init(&d->lock, NULL);
	*out = d;
	return 0;
}

void demux_free(struct demux *d)
{
	if (!d)
		return;
	frame_queue_fini(&d->dialogue.frames);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		if (d->ports[i])
			frame_queue_fini(&d->ports[i]->frames);
		free(d->ports[i]);
	}
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct demux_port *demux_dialogue(struct demux *d)
{
	return &d->dialogue;
}

/* ---- under the lock ---- */

static void wake_all(struct demux *d, bool who_wants_room)
{
	struct demux_port *p = &d->dialogue;

	for (unsigned i = 0;; i++) {
		if (p && p->open && (!who_wants_room || p->wants_room)) {
			p->wants_room = false;
			frame_queue_wake(&p->frames);
		}
		if (i == MESSAGE_TRANSFERS_MAX)
			return;
		p = d->ports[i];
	}
}

/* After what may have moved queued bytes on. */
static void tell_room(struct demux *d)
{
	if (d->open && !control_pending_bytes(d->control))
		wake_all(d, true);
}

/* ABORT of what has not begun is the dialogue's. */
static struct demux_port *port_of(struct demux *d, const struct message_header *h)
{
	struct demux_port *p = transfer_is_frame(h->type) ? d->ports[h->response] : NULL;
	bool kept = p && (p->parked || p->dropping) && h->type != TRANSFER_ABORT;

	return p && (p->open || kept) ? p : &d->dialogue;
}

static bool is_keepalive(const struct message_header *h, const uint8_t *data)
{
	static const uint8_t none[8];

	return h->type == MESSAGE_PING && !memcmp(data, none, sizeof none);
}

/* The frame that is held goes to its port.  false: that is full. */
static bool deliver(struct demux *d, const struct demux_port *self)
{
	struct demux_port *p = port_of(d, &d->header);

	if (!p->dropping && (!is_keepalive(&d->header, d->data) || !d->open)) {
		if (frame_queue_incoming_bytes(&p->frames) >= DEMUX_PORT_BYTES)
			return false;
		if (frame_queue_append(&p->frames, &d->header, d->data))
			d->error = -ENOMEM;
		if (p != self)
			frame_queue_wake(&p->frames);
	}
	d->held = false;
	return true;
}

/* Takes in what has come, for all. */
static void take_in(struct demux *d, const struct demux_port *self)
{
	unsigned frames = 0;

	d->more = false;
	if (d->held && !deliver(d, self))
		return;
	while (!d->error && frames < TAKEN_AT_ONCE) {
		int got = control_get(d->control, &d->header, &d->data);

		if (got < 0) {
			d->error = got;
			wake_all(d, false);
		}
		if (got <= 0)
			break;
		frames++;
		d->held = true;
		if (!deliver(d, self))
			break;
	}
	d->more = frames == TAKEN_AT_ONCE && !d->held && !d->error;
	if (frames)
		atomic_store_explicit(&d->heard_ns, clock_now_ns(), memory_order_relaxed);
	tell_room(d);
}

/* ---- ports ---- */

static struct demux_port *make_port(struct demux *d, unsigned number)
{
	struct demux_port *p = d->ports[number];

	assert(number < MESSAGE_TRANSFERS_MAX);
	if (p)
		return p;
	p = d->ports[number] = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct demux_port){.demux = d, .number = number};
	frame_queue_init(&p->frames);
	return p;
}

static void unpark(struct demux *d, struct demux_port *p)
{
	d->parked -= p->parked || p->dropping;
	p->parked = p->dropping = false;
}

static bool is_of_port(void *port, const struct message_header *h)
{
	struct demux_port *p = port;

	return port_of(p->demux, h) == p;
}

static int keep_or_drop(struct demux *d, unsigned number, bool drop)
{
	struct demux_port *p;
	int err = 0;

	pthread_mutex_lock(&d->lock);
	p = make_port(d, number);
	if (!p) {
		err = -ENOMEM;
	} else if (!p->open) {
		d->parked += !p->parked && !p->dropping;
		p->parked = !drop;
		p->dropping = drop;
		if (drop)
			frame_queue_clear(&p->frames);
		/* what was taken in for the dialogue before it was known that a transfer begins */
		err = frame_queue_sift(
			&d->dialogue.frames, drop ? NULL : &p->frames, is_of_port, p);
	}
	pthread_mutex_unlock(&d->lock);
	return err;
}

int demux_park(struct demux *d, unsigned number)
{
	return keep_or_drop(d, number, false);
}

int demux_drop(struct demux *d, unsigned number)
{
	return keep_or_drop(d, number, true);
}

void demux_unpark(struct demux *d, unsigned number)
{
	struct demux_port *p;

	pthread_mutex_lock(&d->lock);
	p = d->ports[number];
	if (p && !p->open) {
		unpark(d, p);
		frame_queue_clear(&p->frames);
	}
	pthread_mutex_unlock(&d->lock);
}

int demux_open(struct demux *d, unsigned number, struct demux_port **out)
{
	struct demux_port *p;
	int err;

	pthread_mutex_lock(&d->lock);
	p = make_port(d, number);
	err = p ? frame_queue_make_fd(&p->frames) : -ENOMEM;
	if (!err)
		err = frame_queue_make_fd(&d->dialogue.frames);
	if (!err && !p->open) {
		unpark(d, p);
		p->open = true;
		if (!d->open++)
			control_cork(d->control, true);
	}
	pthread_mutex_unlock(&d->lock);
	*out = err ? NULL : p;
	return err;
}

void demux_close(struct demux_port *p)
{
	struct demux *d;

	if (!p)
		return;
	d = p->demux;
	pthread_mutex_lock(&d->lock);
	assert(p->open);
	p->open = p->wants_room = false;
	if (frame_queue_move(&p->frames, &d->dialogue.frames))
		d->error = -ENOMEM;
	frame_queue_unwake(&p->frames);
	if (--d->open)
		control_push(d->control);
	else
		control_cork(d->control, false);
	frame_queue_wake(&d->dialogue.frames);
	pthread_mutex_unlock(&d->lock);
}

bool demux_is_shared(struct demux *d)
{
	bool shared;

	pthread_mutex_lock(&d->lock);
	shared = d->open;
	pthread_mutex_unlock(&d->lock);
	return shared;
}

/* ---- frames ---- */

int demux_put(struct demux_port *p, uint16_t type, uint16_t response, const void *data, size_t len)
{
	struct demux *d = p->demux;
	bool dialogue = p == &d->dialogue;
	int err;

	if (!dialogue && transfer_is_frame(type)) /* and no keep-alive */
		response = (uint16_t)p->number;
	pthread_mutex_lock(&d->lock);
	err = control_put(d->control, type, response, data, len);
	if (!err && dialogue && d->open)
		control_push(d->control);
	pthread_mutex_unlock(&d->lock);
	return err;
}

int demux_get(struct demux_port *p, struct message_header *h, const uint8_t **data)
{
	struct demux *d = p->demux;
	int got;

	frame_queue_consume(&p->frames);
	p->direct = false;
	if (frame_queue_give(&p->frames, h, data))
		return 1;
	pthread_mutex_lock(&d->lock);
	if (!frame_queue_turn(&p->frames)) {
		if (!d->open && !d->parked && !d->held && !d->error) { /* nobody else reads */
			got = control_get(d->control, h, data);
			p->direct = got == 1;
			p->header = *h;
			p->data = *data;
			pthread_mutex_unlock(&d->lock);
			return got;
		}
		take_in(d, p);
		frame_queue_turn(&p->frames);
	}
	got = d->error;
	pthread_mutex_unlock(&d->lock);
	return frame_queue_give(&p->frames, h, data) ? 1 : got;
}

int demux_unget(struct demux_port *p)
{
	frame_queue_unget(&p->frames);
	if (!p->direct)
		return 0;
	p->direct = false;
	return frame_queue_put_first(&p->frames, &p->header, p->data);
}

/* ---- waiting ---- */

int demux_arm(struct demux_port *p)
{
	struct demux *d = p->demux;
	int err;

	pthread_mutex_lock(&d->lock);
	frame_queue_unwake(&p->frames);
	err = control_arm(d->control);
	/* who makes the descriptor unreadable takes in what it told of */
	if (!err && d->open)
		take_in(d, p);
	if (!err)
		err = frame_queue_any(&p->frames) || (d->held && !d->open) || d->error ||
		      (d->open && d->more);
	pthread_mutex_unlock(&d->lock);
	return err;
}

bool demux_more(struct demux *d)
{
	bool more;

	pthread_mutex_lock(&d->lock);
	more = d->more;
	d->more = false;
	pthread_mutex_unlock(&d->lock);
	return more;
}

int demux_control_fd(const struct demux *d)
{
	return control_fd(d->control);
}

int demux_port_fd(const struct demux_port *p)
{
	return p->frames.fd;
}

/* Blocks until a frame is there (if `frames`), or until all that was queued has left (if `room`).
 */
static int wait_until(struct demux_port *p, bool frames, bool room, int timeout_ms, int cancel_fd)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct pollfd fds[3] = {{demux_control_fd(p->demux), POLLIN, 0},
		{demux_port_fd(p), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
	struct demux *d = p->demux;

	for (;;) {
		int err = demux_arm(p);
		bool met;

		if (err < 0)
			return err;
		pthread_mutex_lock(&d->lock);
		/* the last transfer has closed its port meanwhile: nobody else takes in what the
		 * control's descriptor tells of */
		if (!d->open)
			take_in(d, p);
		err = err || frame_queue_any(&p->frames) || d->more;
		met = (frames && err) || d->error || (room && !control_pending_bytes(d->control));
		p->wants_room = room && !met;
		pthread_mutex_unlock(&d->lock);
		if (met)
			return 0;
		err = poll(fds, 3, timeout_ms < 0 ? -1 : clock_until_ms(deadline));
		if (fds[2].revents)
			return -ECANCELED;
		if (!err)
			return -ETIMEDOUT;
		if (err < 0 && errno != EINTR)
			return -errno;
	}
}

/* No transfer has a port, and nothing is left of one that had: the dialogue has the control. */
static bool is_alone(struct demux_port *p)
{
	struct demux *d = p->demux;
	bool alone;

	pthread_mutex_lock(&d->lock);
	alone = !d->open && !d->held && !frame_queue_any(&p->frames);
	pthread_mutex_unlock(&d->lock);
	return alone;
}

int demux_wait(struct demux_port *p, int timeout_ms, int cancel_fd)
{
	struct demux *d = p->demux;

	if (is_alone(p))
		return control_wait(d->control, timeout_ms, cancel_fd);
	return wait_until(p, true, demux_pending_bytes(d), timeout_ms, cancel_fd);
}

int demux_flush(struct demux_port *p, int timeout_ms)
{
	struct demux *d = p->demux;
	int err;

	if (is_alone(p))
		return control_flush(d->control, timeout_ms);
	err = wait_until(p, false, true, timeout_ms, -1);
	/* a peer that closes the connection when it has all does nothing wrong */
	return err ? err : demux_pending_bytes(d) ? d->error : 0;
}

size_t demux_pending_bytes(struct demux *d)
{
	size_t bytes;

	pthread_mutex_lock(&d->lock);
	bytes = control_pending_bytes(d->control);
	pthread_mutex_unlock(&d->lock);
	return bytes;
}

void demux_push(struct demux *d)
{
	pthread_mutex_lock(&d->lock);
	control_push(d->control);
	tell_room(d);
	pthread_mutex_unlock(&d->lock);
}

void demux_hear(struct demux *d)
{
	pthread_mutex_lock(&d->lock);
	control_hear(d->control);
	tell_room(d);
	pthread_mutex_unlock(&d->lock);
}

void demux_probe(struct demux *d)
{
	pthread_mutex_lock(&d->lock);
	control_probe(d->control);
	pthread_mutex_unlock(&d->lock);
}

uint64_t demux_heard_ns(const struct demux *d)
{
	return atomic_load_explicit(&d->heard_ns, memory_order_relaxed);
}

int demux_export(struct demux *d, const char *label, const void *context, size_t context_len,
	void *secret, size_t len)
{
	int err;

	pthread_mutex_lock(&d->lock);
	err = tls_export(control_tls(d->control), label, context, context_len, secret, len);
	pthread_mutex_unlock(&d->lock);
	return err;
}
