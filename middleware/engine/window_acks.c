/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window_acks: see window_acks.h.
 */
#include "engine/window_acks.h"

#include "base/bell.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "engine/notice.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLL_BATCH 32
#define CACHE_LINE 64

struct acks {
	/* set before the thread is there */
	struct fabric_cq *cq;
	uint32_t slots, spin_ns;
	uint32_t room;         /* of the ring */
	struct fabric_wc *ring; /* handed on */
	struct worker thread;
	int stop_fd;
	bool *acked; /* the thread's, by index: has its ACK, and one before it has not */

	/* Written by the one and read by the other, each in lines of its own: what either writes for each
	 * block must not take the other's from its cache. */
	char line_of_thread[CACHE_LINE];
	_Atomic uint64_t head;
	_Atomic uint64_t put; /* into the ring, ever */
	_Atomic int error;
	char line_of_loop[CACHE_LINE];
	_Atomic uint64_t tail, wanted;
	_Atomic uint64_t taken; /* from the ring, ever */
	_Atomic bool stop;
	char line_of_both[CACHE_LINE];
	struct bell bell; /* the loop's */
};

/* ---- the thread ---- */

/* `head`: as of this ACK, of which the loop does not know yet. */
static int take_ack(struct acks *a, const struct fabric_wc *wc, uint64_t *head)
{
	/* It may already count a slot that is just being posted: a sink that gives that one back early
	 * spoils what it is about to be sent, no more. */
	uint64_t tail = atomic_load_explicit(&a->tail, memory_order_acquire);
	uint32_t index;
	int r = notice_take(wc, false, a->slots, &index);

	if (r)
		return r;
	/* whether it lies between head and tail, round the ring */
	if ((index + a->slots - *head % a->slots) % a->slots >= tail - *head || a->acked[index]) {
		log_error("the sink gave back slot %u, which it does not have", index);
		return -EBADMSG;
	}
	a->acked[index] = true;
	for (; a->acked[*head % a->slots]; (*head)++)
		a->acked[*head % a->slots] = false;
	return 0;
}

/* One completion: 1 it is the loop's, 0, -errno. */
static int take_one(struct acks *a, const struct fabric_wc *wc, uint64_t *head)
{
	int r;

	if (wc->status != FABRIC_OK || (wc->opcode != FABRIC_RECV && wc->opcode != FABRIC_RECV_IMM))
		return 1;
	r = lane_completion(wc);
	return r > 0 ? take_ack(a, wc, head) : r;
}

/* Takes completions in: 1 there were some, 0 none, -errno: the thread is through. */
static int take(struct acks *a)
{
	uint64_t before = atomic_load_explicit(&a->head, memory_order_relaxed), head = before;
	uint64_t had = atomic_load_explicit(&a->put, memory_order_relaxed), put = had;
	struct fabric_wc wc[POLL_BATCH];
	int n = fabric_cq_poll(a->cq, wc, POLL_BATCH), r = n < 0 ? n : 0;

	for (int i = 0; i < n && r >= 0; i++) {
		r = take_one(a, &wc[i], &head);
		if (r > 0) {
			assert(put - atomic_load_explicit(&a->taken, memory_order_acquire) < a->room);
			a->ring[put++ % a->room] = wc[i];
		}
		/* its lane is no more: the loop says so, unless the transfer is over by then */
		if (wc[i].status != FABRIC_OK)
			r = -ECONNRESET;
	}
	if (put != had)
		atomic_store_explicit(&a->put, put, memory_order_release);
	/* here and in acks_want: either we see what the loop wants, or it sees the head */
	if (head != before)
		atomic_store(&a->head, head);
	if (r < 0)
		atomic_store_explicit(&a->error, r, memory_order_release);
	if (put != had || r < 0 || (head != before && head >= atomic_load(&a->wanted)))
		bell_ring(&a->bell);
	return r < 0 ? r : n > 0;
}

/* Looks again and again, for a moment, where that costs less than to sleep. */
static int spin(struct acks *a)
{
	uint64_t end = a->spin_ns ? clock_now_ns() + a->spin_ns : 0;
	int r = 0;

	while (!r && a->spin_ns && clock_now_ns() < end)
		r = take(a);
	return r;
}

static int sleep_on(struct acks *a)
{
	struct pollfd fds[2] = {{fabric_cq_fd(a->cq), POLLIN, 0}, {a->stop_fd, POLLIN, 0}};
	int r = fabric_cq_arm(a->cq);

	if (!r)
		r = take(a);
	if (!r && poll(fds, 2, -1) < 0 && errno != EINTR)
		r = -errno;
	return r;
}

static void run(void *arg)
{
	struct acks *a = arg;
	int r = 0;

	while (r >= 0 && !atomic_load_explicit(&a->stop, memory_order_relaxed)) {
		r = take(a);
		if (!r)
			r = spin(a);
		if (!r)
			r = sleep_on(a);
	}
	if (r < 0 && !atomic_load_explicit(&a->error, memory_order_relaxed)) {
		atomic_store_explicit(&a->error, r, memory_order_release);
		bell_ring(&a->bell);
	}
}

/* ---- the loop ---- */

/*
 * Most completions that can come to be handed on: one a block, for each is signalled once at most; one to
 * flush each lane; and what an earlier transfer, or the greeting, left.  Each is out until the loop takes it.
 */
static uint32_t ring_room(const struct engine_env *env)
{
	uint32_t room = pool_count(env->pool) + env->lane_count;

	for (unsigned i = 0; i < env->lane_count; i++)
		room += env->lanes[i]->span_count;
	/* a lane's end comes for each request that is out: the first will do, the thread ends with it */
	return room + 1;
}

int acks_start(const struct engine_env *env, uint32_t slots, struct acks **out)
{
	struct acks *a = calloc(1, sizeof *a);
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->cq = env->cq;
	a->slots = slots;
	a->spin_ns = fabric_chan_caps(env->lanes[0]->chan)->spin_ns;
	a->room = ring_room(env);
	a->wanted = ACKS_NONE;
	a->ring = calloc(a->room, sizeof *a->ring);
	a->acked = calloc(slots, sizeof *a->acked);
	a->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = bell_init(&a->bell);
	if (a->stop_fd < 0 && !r)
		r = -EMFILE;
	if (!a->ring || !a->acked)
		r = -ENOMEM;
	if (!r)
		r = worker_start(&a->thread, "rftp-ack", run, a);
	if (r) {
		acks_free(a);
		return r;
	}
	*out = a;
	return 0;
}

void acks_stop(struct acks *a)
{
	const uint64_t one = 1;

	atomic_store(&a->stop, true);
	if (a->thread.started && write(a->stop_fd, &one, sizeof one) < 0)
		log_error("eventfd: %d", errno);
	worker_stop(&a->thread);
}

void acks_free(struct acks *a)
{
	if (!a)
		return;
	acks_stop(a);
	bell_fini(&a->bell);
	if (a->stop_fd >= 0)
		close(a->stop_fd);
	free(a->acked);
	free(a->ring);
	free(a);
}

uint64_t acks_head(const struct acks *a)
{
	return atomic_load(&a->head);
}

void acks_expect(struct acks *a, uint64_t tail)
{
	atomic_store_explicit(&a->tail, tail, memory_order_release);
}

void acks_want(struct acks *a, uint64_t head)
{
	if (atomic_load_explicit(&a->wanted, memory_order_relaxed) == head)
		return;
	atomic_store(&a->wanted, head);
	/* it is there: who armed already must not sleep */
	if (acks_head(a) >= head)
		bell_ring(&a->bell);
}

int acks_take(struct acks *a, struct fabric_wc *wc, unsigned max)
{
	/* before the ring: what came before the error is in it then */
	int error = atomic_load_explicit(&a->error, memory_order_acquire);
	uint64_t put = atomic_load_explicit(&a->put, memory_order_acquire);
	uint64_t at = atomic_load_explicit(&a->taken, memory_order_relaxed);
	unsigned n = 0;

	while (n < max && at != put)
		wc[n++] = a->ring[at++ % a->room];
	if (n)
		atomic_store_explicit(&a->taken, at, memory_order_release);
	return n ? (int)n : error;
}

int acks_fd(const struct acks *a)
{
	return a->bell.fd;
}

void acks_arm(struct acks *a)
{
	bell_arm(&a->bell);
}

void acks_disarm(struct acks *a)
{
	bell_disarm(&a->bell);
}
