/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/pipe_ring: see pipe_ring.h.
 *
 * Owns the ring's memory, or where READs of it land, and what the two sides say of it in the heads
 * of SENDs.
 */
#include "session/pipe_ring.h"

#include "base/clock.h"
#include "base/log.h"
#include "block/arena.h"
#include "session/pipe_impl.h"
#include "session/reply_ring.h"
#include "session/reply_wait.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct pipe_ring {
	struct arena memory;
	struct fabric_mr *mr;
	bool reads; /* the client's half */
	bool asked; /* the client waits for a SEND, and reads nothing until it comes */
	_Atomic uint64_t pieces, asks, sends, tries; /* counts; tries: READs */
	/* the daemon's: */
	struct reply_writer writer;
	bool begun, heard; /* heard: the client has said how far it has read */
	size_t before;     /* bytes of the output that leave by SEND all the same */
	bool bell;         /* what the client asks for is in the ring */
	bool farewell, farewell_said;
	/* the client's: */
	struct reply_reader reader;
	struct reply_wait wait;
	struct message_ring_reply place;
	bool reading, asking; /* asking: the next SEND does */
	uint64_t posted_ns;   /* the READ */
	bool said;            /* how far it has read, at all; and when last: */
	uint32_t told;
	bool to_tell; /* when it has read this: */
	uint32_t tell_at;
	int epoll, timer;  /* -1: not made */
	uint64_t timer_ns; /* that it is set to; 0: it is not */
	bool armed;        /* who looks next may sleep after it */
};

static int make(struct pipe *p, uint32_t bytes, unsigned access)
{
	struct pipe_ring *r;
	int err;

	if (p->ring)
		return -EEXIST;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	r->epoll = r->timer = -1;
	err = arena_init(&r->memory, bytes, false);
	if (!err)
		err = fabric_mr_new(p->pd, r->memory.base, r->memory.bytes, access, &r->mr);
	if (err) {
		arena_fini(&r->memory);
		free(r);
		return err;
	}
	p->ring = r;
	return 0;
}

void pipe_ring_free(struct pipe *p)
{
	struct pipe_ring *r = p->ring;

	if (!r)
		return;
	fabric_mr_free(r->mr);
	arena_fini(&r->memory);
	if (r->epoll >= 0)
		close(r->epoll);
	if (r->timer >= 0)
		close(r->timer);
	free(r);
	p->ring = NULL;
}

bool pipe_ring_count(const struct pipe *p, struct pipe_ring_counts *out)
{
	const struct pipe_ring *r = p->ring;

	*out = (struct pipe_ring_counts){0};
	if (!r)
		return false;
	out->sends = atomic_load(&r->sends); /* first: each comes after what asked for it */
	out->asks = atomic_load(&r->asks);
	out->pieces = atomic_load(&r->pieces);
	out->reads = atomic_load(&r->tries);
	return true;
}

static void add_one(_Atomic uint64_t *count)
{
	atomic_fetch_add(count, 1);
}

/* ---- the daemon's half ---- */

int pipe_ring_serve(struct pipe *p, struct message_ring_reply *place)
{
	int err = make(p, PIPE_RING_BYTES, FABRIC_REMOTE_READ);

	if (err)
		return err;
	reply_writer_init(&p->ring->writer, p->ring->memory.base, PIPE_RING_BYTES);
	*place = (struct message_ring_reply){
		.bytes = PIPE_RING_BYTES,
		.key = fabric_mr_key(p->ring->mr),
		.base = fabric_mr_base(p->ring->mr),
	};
	return 0;
}

void pipe_ring_begin(struct pipe *p)
{
	p->ring->before = buffer_bytes(&p->out);
	p->ring->begun = true;
}

bool pipe_ring_is_served(const struct pipe *p)
{
	return p->ring;
}

bool pipe_ring_is_read(struct pipe *p)
{
	struct pipe_ring *r = p->ring;

	if (!r || !r->begun || !r->heard || p->error || r->writer.read == r->writer.written)
		return true;
	if (!r->farewell_said) {
		r->farewell = r->farewell_said = true;
		pipe_push(p);
	}
	return false;
}

static bool owes_many(const struct pipe *p)
{
	return p->owed >= PIPE_CREDITS / 2;
}

bool pipe_ring_fill(struct pipe *p)
{
	struct pipe_ring *r = p->ring;
	bool any = false;

	while (r->begun && !r->before && !r->asked && !p->error) {
		int32_t room = reply_writer_room(&r->writer);
		size_t len = buffer_bytes(&p->out);

		if (room < 0 || (!(len && room) && !owes_many(p)))
			break;
		if (len > (uint32_t)room)
			len = (uint32_t)room;
		reply_writer_put(
			&r->writer, buffer_front(&p->out), (uint32_t)len, (uint16_t)p->owed);
		p->owed = 0;
		buffer_consume(&p->out, len);
		add_one(&r->pieces);
		any = true;
	}
	return any;
}

static struct pipe_word daemon_says(struct pipe_ring *r, size_t len)
{
	struct pipe_word word = {.has = r->farewell, .position = r->writer.written};

	if (!r->begun)
		return word;
	if (r->before) {
		r->before -= len;
		return (struct pipe_word){0};
	}
	r->asked = r->bell = r->farewell = false;
	add_one(&r->sends);
	return word;
}

static int daemon_hears(struct pipe_ring *r, const struct pipe_word *word)
{
	int err = r->begun ? reply_writer_confirm(&r->writer, word->position) : -EBADMSG;

	if (!err && word->asks && r->asked)
		err = -EBADMSG;
	if (err) {
		log_error("control channel: %s %u of the replies read, of %u to %u",
			word->asks ? "asked for a SEND with" : "said to have", word->position,
			r->writer.read, r->writer.written);
		return err;
	}
	r->heard = true;
	if (word->asks) {
		r->asked = true;
		r->bell = r->writer.read != r->writer.written;
		add_one(&r->asks);
	}
	return 0;
}

/* ---- both ---- */

size_t pipe_ring_sendable(const struct pipe *p)
{
	const struct pipe_ring *r = p->ring;

	if (r->reads || !r->begun)
		return buffer_bytes(&p->out);
	if (r->before)
		return r->before;
	return r->asked && !r->bell ? buffer_bytes(&p->out) : 0;
}

bool pipe_ring_wants_send(const struct pipe *p)
{
	const struct pipe_ring *r = p->ring;
	uint32_t unsaid = r->reader.read - r->told;

	if (r->reads)
		return owes_many(p) || (r->asking && !r->reading) || unsaid >= r->place.bytes / 2 ||
		       (r->to_tell && (int32_t)(r->reader.read - r->tell_at) >= 0);
	if (!r->begun)
		return owes_many(p);
	return !r->before && (r->bell || r->farewell || (r->asked && owes_many(p)));
}

struct pipe_word pipe_ring_say(struct pipe *p, size_t len)
{
	struct pipe_ring *r = p->ring;
	struct pipe_word word = {.position = r->reader.read};

	if (!r->reads)
		return daemon_says(r, len);
	if (len)
		reply_wait_begin(&r->wait, clock_now_ns());
	word.asks = r->asking && !r->reading; /* what is read by then was written before */
	word.has = word.asks || !r->said || r->told != word.position || r->to_tell;
	if (r->to_tell && (int32_t)(word.position - r->tell_at) >= 0)
		r->to_tell = false;
	if (word.asks) {
		r->asked = true;
		r->asking = false;
		add_one(&r->asks);
	}
	r->said = true;
	r->told = word.position;
	return word;
}

static int client_hears(struct pipe_ring *r, const struct pipe_word *word, size_t len)
{
	uint64_t now = clock_now_ns();

	if (word->asks || (!word->has && !r->asked) ||
		(word->has && (word->position % REPLY_ALIGN ||
				      word->position - r->reader.read > r->place.bytes))) {
		log_error("control channel: a SEND that was not asked for, or of position %u where "
			  "%u is read",
			word->position, r->reader.read);
		return -EBADMSG;
	}
	r->asked = r->asking = false;
	add_one(&r->sends);
	if (word->has) {
		r->to_tell = true;
		r->tell_at = word->position;
	}
	if (len)
		reply_wait_came(&r->wait, now);
	else
		reply_wait_hurry(&r->wait, now);
	return 0;
}

int pipe_ring_heard(struct pipe *p, const struct pipe_word *word, size_t len)
{
	struct pipe_ring *r = p->ring;

	if (r->reads)
		return client_hears(r, word, len);
	return word->has ? daemon_hears(r, word) : word->asks ? -EBADMSG : 0;
}

/* ---- the client's half ---- */

bool pipe_ring_is_possible(const struct pipe *p)
{
	const struct fabric_caps *caps = fabric_chan_caps(p->chan);

	return caps->has_read && caps->max_reads;
}

static int watch(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* A descriptor that a completion makes readable, or the time of the next READ. */
static int make_fds(struct pipe *p)
{
	struct pipe_ring *r = p->ring;
	int err;

	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0)
		return -errno;
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (r->timer < 0)
		return -errno;
	err = watch(r->epoll, fabric_cq_fd(p->cq));
	return err ? err : watch(r->epoll, r->timer);
}

int pipe_ring_follow(struct pipe *p, const struct message_ring_reply *place)
{
	int err = make(p, REPLY_READ_MAX, FABRIC_READ_INTO);

	if (err)
		return err;
	p->ring->reads = true;
	p->ring->place = *place;
	reply_reader_init(&p->ring->reader, p->ring->memory.base, place->bytes);
	reply_wait_init(&p->ring->wait, clock_now_ns());
	err = make_fds(p);
	if (err)
		pipe_ring_free(p);
	return err;
}

void pipe_ring_expect(struct pipe *p, uint16_t type)
{
	if (p->ring && p->ring->reads)
		reply_reader_expect(&p->ring->reader, type);
}

static int post_read(struct pipe *p)
{
	struct pipe_ring *r = p->ring;
	uint32_t offset, bytes = reply_reader_want(&r->reader, &offset);
	struct fabric_sge sge = {r->reader.land, bytes, r->mr};
	struct fabric_wr wr = {
		.id = PIPE_ID_READ,
		.opcode = FABRIC_READ,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1,
		.remote_addr = r->place.base + offset,
		.remote_key = r->place.key,
	};

	r->reading = !fabric_post_send(p->chan, &wr);
	add_one(&r->tries);
	return r->reading ? 0 : -ENOTCONN;
}

/* Whether it has nothing under way, and something to wait for.  Who does not look at what it has
 * gets no more. */
static bool is_looking(const struct pipe *p)
{
	const struct pipe_ring *r = p->ring;

	return r->reads && !r->reading && !r->asked && !p->error &&
	       buffer_bytes(&p->in) <= PIPE_INPUT_MAX / 2;
}

int pipe_ring_look(struct pipe *p)
{
	struct pipe_ring *r = p->ring;
	uint64_t now;

	if (!is_looking(p))
		return 0;
	now = clock_now_ns();
	if (now < r->wait.due_ns)
		return 0;
	/* the next pipe_push asks; without a credit, of which there may be one in the ring, it
	 * cannot
	 */
	r->asking = reply_wait_is_over(&r->wait, now);
	if (r->asking && p->credits)
		return 0;
	r->posted_ns = now;
	return post_read(p);
}

/* A piece of the stream.  0 or -errno. */
static int take_piece(struct pipe *p, const struct reply_piece *piece)
{
	if (p->credits + piece->credits > UINT16_MAX)
		return -EBADMSG;
	p->credits += piece->credits;
	add_one(&p->ring->pieces);
	return buffer_append(&p->in, piece->data, piece->len);
}

int pipe_ring_take(struct pipe *p)
{
	struct pipe_ring *r = p->ring;
	uint64_t now = clock_now_ns();
	struct reply_piece piece;
	bool came = false;
	int got = 0;

	r->reading = false;
	reply_wait_measured(&r->wait, now - r->posted_ns);
	while (got >= 0 && (got = reply_reader_next(&r->reader, &piece)) == 1) {
		came = true;
		got = take_piece(p, &piece);
	}
	if (got < 0 && got != -EAGAIN) {
		log_error("control channel: what was read of the replies is wrong, at %u",
			r->reader.read);
		return got;
	}
	r->asking = r->asking && !came;
	if (came)
		reply_wait_came(&r->wait, now);
	else if (!got)
		reply_wait_missed(&r->wait, now);
	if (got == -EAGAIN)
		reply_wait_hurry(&r->wait, now);
	return 0;
}

int pipe_ring_fd(const struct pipe *p)
{
	return p->ring->epoll;
}

/* 0: never.  0 or -errno. */
static int set_timer(struct pipe_ring *r, uint64_t ns)
{
	const struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)}};

	if (ns == r->timer_ns)
		return 0;
	r->timer_ns = ns;
	return timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &when, NULL) ? -errno : 0;
}

int pipe_ring_arm(struct pipe *p)
{
	struct pipe_ring *r = p->ring;
	int err;

	if (!r->reads)
		return 0;
	err = pipe_ring_look(p);
	if (err)
		p->error = err; /* which pipe_progress tells */
	pipe_push(p);
	r->armed = true;
	return set_timer(r, is_looking(p) ? r->wait.due_ns : 0);
}

int pipe_ring_went_on(struct pipe *p)
{
	struct pipe_ring *r = p->ring;

	if (!r->armed || !is_looking(p))
		return 0;
	r->armed = !buffer_bytes(&p->in); /* with what there is nobody sleeps */
	return set_timer(r, r->wait.due_ns);
}
