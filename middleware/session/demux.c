/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/demux: see demux.h.
 *
 * Owns the lock that the control channel is used under, and the bytes of frames between it and who
 * reads them.
 */
#include "session/demux.h"

#include "base/clock.h"
#include "proto/transfer.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TAKEN_AT_ONCE 64u /* frames, before whoever takes them in has its own turn */

struct demux_port {
	struct demux *demux;
	unsigned number; /* of the transfer */
	/* under the lock */
	bool open;
	/* no transfer reads it: what comes is kept for the one that is about to begin, or dropped
	 */
	bool parked, dropping;
	bool signalled;         /* its descriptor is readable */
	bool wants_room;        /* it waits until all that is queued has left */
	struct buffer incoming; /* frames as on the wire */
	int fd;                 /* eventfd; -1: not made yet */
	/* its own thread's */
	struct buffer reading;
	size_t consumed; /* of `reading`, by the frame that was given last */
	/* the frame that was given last, where it is the control's */
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
	d->dialogue = (struct demux_port){.demux = d, .open = true, .fd = -1};
	pthread_mutex_init(&d->lock, NULL);
	*out = d;
	return 0;
}

static void port_fini(struct demux_port *p)
{
	if (p->fd >= 0)
		close(p->fd);
	buffer_fini(&p->incoming);
	buffer_fini(&p->reading);
}

void demux_free(struct demux *d)
{
	if (!d)
		return;
	port_fini(&d->dialogue);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		if (d->ports[i])
			port_fini(d->ports[i]);
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

static void wake(struct demux_port *p)
{
	const uint64_t one = 1;

	if (p->signalled || p->fd < 0)
		return;
	/* full would mean that it is readable anyway */
	p->signalled = write(p->fd, &one, sizeof one) == sizeof one || errno == EAGAIN;
}

static void unwake(struct demux_port *p)
{
	uint64_t count;

	if (p->signalled && read(p->fd, &count, sizeof count) < 0 && errno != EAGAIN)
		return;
	p->signalled = false;
}

static void wake_all(struct demux *d, bool who_wants_room)
{
	struct demux_port *p = &d->dialogue;

	for (unsigned i = 0;; i++) {
		if (p && p->open && (!who_wants_room || p->wants_room)) {
			p->wants_room = false;
			wake(p);
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

static int append(struct buffer *to, const struct message_header *h, const uint8_t *data)
{
	uint8_t *bytes = buffer_reserve(to, MESSAGE_HEADER_BYTES + h->length);

	if (!bytes)
		return -ENOMEM;
	message_put_header(h, bytes);
	if (h->length)
		memcpy(bytes + MESSAGE_HEADER_BYTES, data, h->length);
	buffer_added(to, MESSAGE_HEADER_BYTES + h->length);
	return 0;
}

/* The frame that is held goes to its port.  false: that is full. */
static bool deliver(struct demux *d, const struct demux_port *self)
{
	struct demux_port *p = port_of(d, &d->header);

	if (!p->dropping && (!is_keepalive(&d->header, d->data) || !d->open)) {
		if (buffer_bytes(&p->incoming) >= DEMUX_PORT_BYTES)
			return false;
		if (append(&p->incoming, &d->header, d->data))
			d->error = -ENOMEM;
		if (p != self)
			wake(p);
	}
	d->held = false;
	return true;
}

/* Takes in what has come, for all. */
static void take_in(struct demux *d, const struct demux_port *self)
{
	unsigned frames = 0;

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
	if (frames)
		atomic_store_explicit(&d->heard_ns, clock_now_ns(), memory_order_relaxed);
	tell_room(d);
}

/* What came for it is its thread's to read. */
static void turn_over(struct demux_port *p)
{
	struct buffer empty = p->reading;

	if (buffer_bytes(&p->reading))
		return;
	p->reading = p->incoming;
	p->incoming = empty;
}

/* ---- ports ---- */

static int make_fd(struct demux_port *p)
{
	if (p->fd < 0)
		p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return p->fd < 0 ? -errno : 0;
}

static struct demux_port *make_port(struct demux *d, unsigned number)
{
	struct demux_port *p = d->ports[number];

	assert(number < MESSAGE_TRANSFERS_MAX);
	if (p)
		return p;
	p = d->ports[number] = calloc(1, sizeof *p);
	if (p)
		*p = (struct demux_port){.demux = d, .number = number, .fd = -1};
	return p;
}

static void unpark(struct demux *d, struct demux_port *p)
{
	d->parked -= p->parked || p->dropping;
	p->parked = p->dropping = false;
}

/* What was taken in for the dialogue before it was known that a transfer begins.  What lies before
 * `at` stays where it is: it may be in use. */
static int sift(struct demux *d, struct demux_port *p, struct buffer *from, size_t at)
{
	uint8_t *front = buffer_front(from);
	size_t all = buffer_bytes(from), kept = at;
	int err = 0;

	while (at < all) {
		struct message_header h;
		size_t bytes;

		(void)message_get_header(&h, front + at); /* as it was written */
		bytes = MESSAGE_HEADER_BYTES + h.length;
		if (!err && port_of(d, &h) == p) {
			err = p->dropping ? 0 : buffer_append(&p->incoming, front + at, bytes);
		} else {
			memmove(front + kept, front + at, bytes);
			kept += bytes;
		}
		at += bytes;
	}
	from->tail -= all - kept;
	return err;
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
			buffer_fini(&p->incoming);
		err = sift(d, p, &d->dialogue.reading, d->dialogue.consumed);
		if (!err)
			err = sift(d, p, &d->dialogue.incoming, 0);
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
		buffer_fini(&p->incoming);
	}
	pthread_mutex_unlock(&d->lock);
}

int demux_open(struct demux *d, unsigned number, struct demux_port **out)
{
	struct demux_port *p;
	int err;

	pthread_mutex_lock(&d->lock);
	p = make_port(d, number);
	err = p ? make_fd(p) : -ENOMEM;
	if (!err)
		err = make_fd(&d->dialogue);
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
	if (p->consumed)
		buffer_consume(&p->reading, p->consumed);
	p->consumed = 0;
	for (struct buffer *b = &p->reading;; b = &p->incoming) {
		if (buffer_bytes(b) &&
			buffer_append(&d->dialogue.incoming, buffer_front(b), buffer_bytes(b)))
			d->error = -ENOMEM;
		buffer_fini(b);
		if (b == &p->incoming)
			break;
	}
	unwake(p);
	if (--d->open)
		control_push(d->control);
	else
		control_cork(d->control, false);
	wake(&d->dialogue);
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

/* The frame at the front of what is being read: 1, or 0. */
static int give(struct demux_port *p, struct message_header *h, const uint8_t **data)
{
	if (!buffer_bytes(&p->reading))
		return 0;
	(void)message_get_header(h, buffer_front(&p->reading)); /* as it was written */
	*data = buffer_front(&p->reading) + MESSAGE_HEADER_BYTES;
	p->consumed = MESSAGE_HEADER_BYTES + h->length;
	return 1;
}

int demux_get(struct demux_port *p, struct message_header *h, const uint8_t **data)
{
	struct demux *d = p->demux;
	int got;

	if (p->consumed)
		buffer_consume(&p->reading, p->consumed);
	p->consumed = 0;
	p->direct = false;
	if (give(p, h, data))
		return 1;
	pthread_mutex_lock(&d->lock);
	turn_over(p);
	if (!buffer_bytes(&p->reading)) {
		if (!d->open && !d->parked && !d->held && !d->error) { /* nobody else reads */
			got = control_get(d->control, h, data);
			p->direct = got == 1;
			p->header = *h;
			p->data = *data;
			pthread_mutex_unlock(&d->lock);
			return got;
		}
		take_in(d, p);
		turn_over(p);
	}
	got = d->error;
	pthread_mutex_unlock(&d->lock);
	return give(p, h, data) ? 1 : got;
}

int demux_unget(struct demux_port *p)
{
	p->consumed = 0;
	if (!p->direct)
		return 0;
	p->direct = false;
	return append(&p->reading, &p->header, p->data);
}

/* ---- waiting ---- */

static bool has_frame(const struct demux_port *p)
{
	return buffer_bytes(&p->reading) > p->consumed || buffer_bytes(&p->incoming);
}

int demux_arm(struct demux_port *p)
{
	struct demux *d = p->demux;
	int err;

	pthread_mutex_lock(&d->lock);
	unwake(p);
	err = control_arm(d->control);
	/* who makes the descriptor unreadable takes in what it told of */
	if (!err && d->open)
		take_in(d, p);
	if (!err)
		err = has_frame(p) || (d->held && !d->open) || d->error;
	pthread_mutex_unlock(&d->lock);
	return err;
}

int demux_control_fd(const struct demux *d)
{
	return control_fd(d->control);
}

int demux_port_fd(const struct demux_port *p)
{
	return p->fd;
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
		err = err || has_frame(p);
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
	alone = !d->open && !d->held && !has_frame(p);
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
