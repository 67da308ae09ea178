/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/demux: see demux.h.
 *
 * Owns the lock that the control channel is used under; session/demux_ports knows whose each frame
 * is.
 */
#include "session/demux.h"

#include "base/clock.h"
#include "proto/transfer.h"
#include "session/demux_ports.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TAKEN_AT_ONCE 64u /* frames, before whoever takes them in has its own turn */

struct demux {
	struct control *control;
	pthread_mutex_t lock;
	struct demux_ports ports;
	int error; /* of control_get, for good */
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
	demux_ports_init(&d->ports, d);
	pthread_mutex_init(&d->lock, NULL);
	*out = d;
	return 0;
}

void demux_free(struct demux *d)
{
	if (!d)
		return;
	demux_ports_fini(&d->ports);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct demux_port *demux_dialogue(struct demux *d)
{
	return &d->ports.dialogue;
}

/* ---- under the lock ---- */

/* After what may have moved queued bytes on. */
static void tell_room(struct demux *d)
{
	if (d->ports.open && !control_pending_bytes(d->control))
		demux_ports_wake_waiting(&d->ports);
}

static bool is_keepalive(const struct message_header *h, const uint8_t *data)
{
	static const uint8_t none[8];

	return h->type == MESSAGE_PING && !memcmp(data, none, sizeof none);
}

/* The frame that is held goes to its port.  false: that is full. */
static bool deliver(struct demux *d, const struct demux_port *self)
{
	struct demux_port *p = demux_ports_of(&d->ports, &d->header);

	if (!p->dropping && (!is_keepalive(&d->header, d->data) || !d->ports.open)) {
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
			demux_ports_wake(&d->ports);
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

int demux_park(struct demux *d, unsigned number)
{
	int err;

	pthread_mutex_lock(&d->lock);
	err = demux_ports_park(&d->ports, number);
	pthread_mutex_unlock(&d->lock);
	return err;
}

int demux_drop(struct demux *d, unsigned number)
{
	int err;

	pthread_mutex_lock(&d->lock);
	err = demux_ports_drop(&d->ports, number);
	pthread_mutex_unlock(&d->lock);
	return err;
}

void demux_unpark(struct demux *d, unsigned number)
{
	pthread_mutex_lock(&d->lock);
	demux_ports_unpark(&d->ports, number);
	pthread_mutex_unlock(&d->lock);
}

int demux_open(struct demux *d, unsigned number, struct demux_port **out)
{
	bool shared;
	int err;

	pthread_mutex_lock(&d->lock);
	shared = d->ports.open;
	err = demux_ports_open(&d->ports, number, out);
	if (!err && !shared)
		control_cork(d->control, true);
	pthread_mutex_unlock(&d->lock);
	return err;
}

void demux_close(struct demux_port *p)
{
	struct demux *d;

	if (!p)
		return;
	d = p->demux;
	pthread_mutex_lock(&d->lock);
	if (demux_ports_close(&d->ports, p))
		d->error = -ENOMEM;
	if (d->ports.open)
		control_push(d->control);
	else
		control_cork(d->control, false);
	pthread_mutex_unlock(&d->lock);
}

bool demux_is_shared(struct demux *d)
{
	bool shared;

	pthread_mutex_lock(&d->lock);
	shared = d->ports.open;
	pthread_mutex_unlock(&d->lock);
	return shared;
}

/* ---- frames ---- */

int demux_put(struct demux_port *p, uint16_t type, uint16_t response, const void *data, size_t len)
{
	struct demux *d = p->demux;
	bool dialogue = p == &d->ports.dialogue;
	int err;

	if (!dialogue && transfer_is_frame(type)) /* and no keep-alive */
		response = (uint16_t)p->number;
	pthread_mutex_lock(&d->lock);
	err = control_put(d->control, type, response, data, len);
	if (!err && dialogue && d->ports.open)
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
		if (!d->ports.open && !d->ports.kept && !d->held &&
			!d->error) { /* nobody else reads */
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
	if (!err && d->ports.open)
		take_in(d, p);
	if (!err)
		err = frame_queue_any(&p->frames) || (d->held && !d->ports.open) || d->error ||
		      (d->ports.open && d->more);
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
		if (!d->ports.open)
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
	alone = !d->ports.open && !d->held && !frame_queue_any(&p->frames);
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
