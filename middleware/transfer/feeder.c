/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/feeder: see feeder.h.
 *
 * epoll tells once when a stream has something (edge-triggered); it is then read until it has no
 * more.  What epoll does not take (regular files, /dev/zero) has always something.
 *
 * Fairness is that of start-time fair queueing: each stream counts the bytes that it was served,
 * the one with the fewest is next, and one that comes back from a pause begins where the others
 * are, so that it cannot claim what it did not use.
 */
#include "transfer/feeder.h"

#include "base/clock.h"
#include "base/worker.h"
#include "proto/transfer.h"
#include "transfer/io_pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EVENTS 64
#define READS 16u /* between two looks at who else has something */
#define WAKE UINT32_MAX
#define STOP (UINT32_MAX - 1)

struct feed_stream {
	struct io_pool_target *target; /* NULL: the slot is free */
	int fd;
	bool polled; /* epoll tells when it has something */
	bool readable;
	bool limited; /* it ends after `left` more bytes */
	bool ended;   /* only its last block is to come */
	int error;    /* that it ended with */
	uint64_t left;
	uint64_t served;     /* bytes */
	struct block *block; /* that is being filled */
	uint32_t filled;     /* bytes of it */
	uint64_t first_ns;   /* when the first of them came */
};

struct feed_order {
	struct io_pool_target *target;
	bool stop;
};

struct feeder {
	struct feeder_params params;
	struct worker thread;
	int epoll, wake_fd;
	struct feed_stream *streams;
	uint64_t served; /* by the stream that was served last */
	bool stopping;

	pthread_mutex_t lock; /* of what follows */
	struct block **stock; /* empty blocks */
	uint32_t stock_count;
	struct feed_order *orders;
	unsigned order_count;
	bool hungry, closed;
};

static void wake(struct feeder *f)
{
	uint64_t one = 1;

	if (write(f->wake_fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN);
}

/* ---- streams ---- */

/* From now on it gives what lies in its pipe already, and ends. */
static void limit(struct feed_stream *s)
{
	int waiting = 0;

	if (s->limited)
		return;
	s->limited = true;
	s->left = s->polled && !ioctl(s->fd, FIONREAD, &waiting) && waiting > 0 ? (uint64_t)waiting
										: 0;
	s->readable = true;
}

static void add(struct feeder *f, struct io_pool_target *target)
{
	struct feed_stream *s = f->streams;
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
	int flags;

	while (s < f->streams + f->params.streams && s->target)
		s++;
	assert(s < f->streams + f->params.streams);
	*s = (struct feed_stream){
		.target = target, .fd = end_stream_fd(target->end), .served = f->served};
	assert(s->fd >= 0);
	flags = fcntl(s->fd, F_GETFL);
	if (flags >= 0)
		(void)fcntl(s->fd, F_SETFL, flags | O_NONBLOCK);
	event.data.u32 = (uint32_t)(s - f->streams);
	s->polled = !epoll_ctl(f->epoll, EPOLL_CTL_ADD, s->fd, &event);
	if (!s->polled && errno != EPERM) {
		s->error = -errno;
		s->ended = true;
	}
	s->readable = !s->polled;
	if (f->stopping)
		limit(s);
}

static void stop(struct feeder *f, const struct io_pool_target *target)
{
	for (unsigned i = 0; i < f->params.streams; i++) {
		struct feed_stream *s = &f->streams[i];

		if (s->target != target)
			continue;
		s->filled = 0;
		s->ended = true;
	}
}

static void take_orders(struct feeder *f)
{
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < f->order_count; i++) {
		if (f->orders[i].stop)
			stop(f, f->orders[i].target);
		else
			add(f, f->orders[i].target);
	}
	f->order_count = 0;
	pthread_mutex_unlock(&f->lock);
}

static void stop_all(struct feeder *f)
{
	if (f->stopping)
		return;
	f->stopping = true;
	(void)epoll_ctl(f->epoll, EPOLL_CTL_DEL, f->params.stop_fd, NULL);
	for (unsigned i = 0; i < f->params.streams; i++)
		if (f->streams[i].target)
			limit(&f->streams[i]);
}

/* ---- blocks ---- */

static struct block *take_stock(struct feeder *f)
{
	struct block *b = NULL;
	bool tell = false;

	pthread_mutex_lock(&f->lock);
	if (f->stock_count) {
		b = f->stock[--f->stock_count];
	} else {
		tell = !f->hungry && f->params.tell_hungry;
		f->hungry = true;
	}
	pthread_mutex_unlock(&f->lock);
	if (tell)
		f->params.hungry(f->params.ctx);
	return b;
}

static void hand_out(struct feeder *f, struct feed_stream *s, bool last)
{
	struct block *b = s->block;

	b->owner = s->target;
	b->length = s->filled;
	b->flags = last ? TRANSFER_BLOCK_LAST : 0;
	b->error = last ? s->error : 0;
	s->block = NULL;
	s->filled = 0;
	if (last) {
		if (s->polled)
			(void)epoll_ctl(f->epoll, EPOLL_CTL_DEL, s->fd, NULL);
		s->target = NULL;
	}
	f->params.out(f->params.ctx, b);
}

/* Reads what fits into the block, once. */
static void read_some(struct feed_stream *s)
{
	size_t room = s->block->length - s->filled;
	ssize_t n;

	if (s->limited && room > s->left)
		room = s->left;
	n = room ? read(s->fd, s->block->payload + s->filled, room) : 0;
	if (n < 0 && errno == EINTR)
		return;
	if (n < 0 && errno == EAGAIN) {
		s->readable = false;
		/* somebody else reads it, too: it does not have what it had */
		s->ended = s->limited;
		return;
	}
	if (n <= 0) {
		s->error = n < 0 ? -errno : 0;
		s->ended = true;
		return;
	}
	if (!s->filled)
		s->first_ns = clock_now_ns();
	s->filled += (uint32_t)n;
	s->served += (uint64_t)n;
	if (s->limited)
		s->left -= (uint64_t)n;
}

/* One step of a stream that has something to do. */
static void serve(struct feeder *f, struct feed_stream *s)
{
	f->served = s->served;
	if (!s->ended)
		read_some(s);
	/* what was read before an error is good, and goes first */
	if (s->ended && s->error && s->filled)
		hand_out(f, s, false);
	else if (s->ended)
		hand_out(f, s, true);
	else if (s->filled == s->block->length)
		hand_out(f, s, false);
}

/* Who is next, and has a block: NULL when there is none, or no block for it. */
static struct feed_stream *choose(struct feeder *f)
{
	struct feed_stream *with = NULL, *without = NULL;

	for (unsigned i = 0; i < f->params.streams; i++) {
		struct feed_stream *s = &f->streams[i], **best = s->block ? &with : &without;

		if (s->target && (s->readable || s->ended) &&
			(!*best || s->served < (*best)->served))
			*best = s;
	}
	if (without && (!with || without->served < with->served)) {
		without->block = take_stock(f);
		if (without->block)
			return without;
	}
	return with;
}

static void flush_due(struct feeder *f, uint64_t now)
{
	for (unsigned i = 0; i < f->params.streams; i++) {
		struct feed_stream *s = &f->streams[i];

		if (s->target && s->filled && now - s->first_ns >= f->params.flush_ns)
			hand_out(f, s, false);
	}
}

/* A block that was taken for a stream that then had nothing.  Whether another one waits for it. */
static bool give_back(struct feeder *f)
{
	bool waited = false;

	for (unsigned i = 0; i < f->params.streams; i++) {
		struct feed_stream *s = &f->streams[i];

		if (!s->target || !s->block || s->filled || s->readable || s->ended)
			continue;
		pthread_mutex_lock(&f->lock);
		f->stock[f->stock_count++] = s->block;
		waited |= f->hungry;
		f->hungry = false;
		pthread_mutex_unlock(&f->lock);
		s->block = NULL;
	}
	return waited;
}

/* ---- the thread ---- */

static int until_flush_ms(const struct feeder *f)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < f->params.streams; i++) {
		const struct feed_stream *s = &f->streams[i];

		if (s->target && s->filled && s->first_ns + f->params.flush_ns < due)
			due = s->first_ns + f->params.flush_ns;
	}
	return due == UINT64_MAX ? -1 : clock_until_ms(due);
}

static void take_events(struct feeder *f, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	uint64_t count;
	int n = epoll_wait(f->epoll, events, EVENTS, timeout_ms);

	for (int i = 0; i < n; i++) {
		uint32_t which = events[i].data.u32;
		struct feed_stream *s;

		if (which == WAKE) {
			while (read(f->wake_fd, &count, sizeof count) > 0)
				;
			continue;
		}
		if (which == STOP) {
			stop_all(f);
			continue;
		}
		s = &f->streams[which];
		if (!s->readable && s->served < f->served)
			s->served = f->served;
		s->readable = true;
	}
}

static bool closed(struct feeder *f)
{
	bool is;

	pthread_mutex_lock(&f->lock);
	is = f->closed;
	pthread_mutex_unlock(&f->lock);
	return is;
}

static void run(void *arg)
{
	struct feeder *f = arg;

	while (!closed(f)) {
		struct feed_stream *s = NULL;
		bool again;

		take_orders(f);
		for (unsigned i = 0; i < READS && (s = choose(f)); i++)
			serve(f, s);
		again = give_back(f) || s;
		flush_due(f, clock_now_ns());
		take_events(f, again ? 0 : until_flush_ms(f));
	}
}

static int watch(struct feeder *f, int fd, uint32_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};

	return epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int feeder_new(const struct feeder_params *params, struct feeder **out)
{
	struct feeder *f = calloc(1, sizeof *f);
	int err = -ENOMEM;

	if (!f)
		return err;
	f->params = *params;
	f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->streams = calloc(params->streams, sizeof *f->streams);
	f->orders = calloc(2 * (size_t)params->streams, sizeof *f->orders);
	f->stock = calloc(params->blocks, sizeof(struct block *));
	pthread_mutex_init(&f->lock, NULL);
	if (f->wake_fd < 0 || f->epoll < 0)
		err = -EMFILE;
	else if (f->streams && f->orders && f->stock)
		err = watch(f, f->wake_fd, WAKE);
	if (!err && params->stop_fd >= 0)
		err = watch(f, params->stop_fd, STOP);
	if (!err)
		err = worker_start(&f->thread, "rftp-feed", run, f);
	if (err) {
		feeder_free(f);
		return err;
	}
	*out = f;
	return 0;
}

void feeder_free(struct feeder *f)
{
	if (!f)
		return;
	if (f->thread.started) {
		pthread_mutex_lock(&f->lock);
		f->closed = true;
		pthread_mutex_unlock(&f->lock);
		wake(f);
		worker_stop(&f->thread);
	}
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	if (f->epoll >= 0)
		close(f->epoll);
	pthread_mutex_destroy(&f->lock);
	free(f->streams);
	free(f->orders);
	free(f->stock);
	free(f);
}

static void order(struct feeder *f, struct io_pool_target *target, bool stop_it)
{
	pthread_mutex_lock(&f->lock);
	assert(f->order_count < 2 * f->params.streams);
	f->orders[f->order_count++] = (struct feed_order){target, stop_it};
	pthread_mutex_unlock(&f->lock);
	wake(f);
}

void feeder_add(struct feeder *f, struct io_pool_target *target)
{
	order(f, target, false);
}

void feeder_stop(struct feeder *f, struct io_pool_target *target)
{
	order(f, target, true);
}

void feeder_submit(struct feeder *f, struct block *b)
{
	bool waited;

	pthread_mutex_lock(&f->lock);
	assert(f->stock_count < f->params.blocks);
	f->stock[f->stock_count++] = b;
	waited = f->hungry;
	f->hungry = false;
	pthread_mutex_unlock(&f->lock);
	if (waited)
		wake(f);
}

bool feeder_hungry(struct feeder *f)
{
	bool is;

	pthread_mutex_lock(&f->lock);
	is = f->hungry;
	pthread_mutex_unlock(&f->lock);
	return is;
}
