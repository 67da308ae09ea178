/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_acks: see window_acks.h.
 */
#include "engine/window/window_acks.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "engine/notice.h"
#include "proto/status.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLL_BATCH 32
/* the thread's sleeps: each twice the one before while the loop comes by, or nothing comes */
#define SLEEP_MIN_NS NS_PER_MS
#define SLEEP_MAX_NS (64 * NS_PER_MS)

struct acks {
	struct fabric_cq *cq;
	uint32_t slots;
	struct worker thread;
	int stop_fd;
	_Atomic uint64_t head; /* written with the lock held */
	_Atomic uint64_t tail; /* the loop's */

	pthread_mutex_t lock; /* who looks has it; also of the queue's order */
	bool stopped;
	uint64_t looks;         /* of the loop */
	bool *acked;            /* by index: has its ACK, and one before it has not */
	struct fabric_wc *ring; /* to be handed on */
	uint32_t ring_head, ring_count, ring_room;
	int error;
	struct verdict verdict; /* why */
};

/* ---- looking: with the lock held ---- */

/* `head`: as of this ACK. */
static int take_ack(struct acks *a, const struct fabric_wc *wc, uint64_t *head)
{
	/* It may already count a slot that is just being posted: a sink that gives that one back
	 * early spoils what it is about to be sent, no more. */
	uint64_t tail = atomic_load_explicit(&a->tail, memory_order_acquire);
	uint32_t index;
	int err = notice_take(wc, false, a->slots, &index, &a->verdict);

	if (err)
		return err;
	/* whether it lies between head and tail, round the ring */
	if ((index + a->slots - *head % a->slots) % a->slots >= tail - *head || a->acked[index]) {
		verdict_set(&a->verdict, VERDICT_SESSION, STATUS_PROTOCOL,
			"the sink gave back slot %u, which it does not have", index);
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
	uint32_t sent;
	int got;

	if (wc->status != FABRIC_OK || (wc->opcode != FABRIC_RECV && wc->opcode != FABRIC_RECV_IMM))
		return 1;
	got = channel_completion(wc, &sent, &a->verdict);
	return got > 0 ? take_ack(a, wc, head) : got;
}

/* Takes completions in: whether there were some. */
static bool look(struct acks *a)
{
	uint64_t head = atomic_load_explicit(&a->head, memory_order_relaxed);
	struct fabric_wc wc[POLL_BATCH];
	int n, kind;

	if (a->error || a->stopped)
		return false;
	n = fabric_cq_poll(a->cq, wc, POLL_BATCH);
	kind = n < 0 ? n : 0;
	for (int i = 0; i < n && kind >= 0; i++) {
		kind = take_one(a, &wc[i], &head);
		if (kind > 0) {
			assert(a->ring_count < a->ring_room);
			a->ring[(a->ring_head + a->ring_count++) % a->ring_room] = wc[i];
		}
		/* its channel is no more: the loop says so, unless the transfer is over by then */
		if (wc[i].status != FABRIC_OK)
			kind = -ECONNRESET;
	}
	atomic_store_explicit(&a->head, head, memory_order_release);
	a->error = kind < 0 ? kind : 0;
	return n > 0;
}

/* ---- the thread ---- */

/* What the loop's sleep waits for may be taken away here: its descriptor is readable all the same.
 */
static bool look_for_loop(struct acks *a, uint64_t *looks)
{
	bool any = false;

	pthread_mutex_lock(&a->lock);
	while (*looks == a->looks && look(a))
		any = true;
	*looks = a->looks;
	pthread_mutex_unlock(&a->lock);
	return any;
}

static void run(void *arg)
{
	struct acks *a = arg;
	struct pollfd fd = {a->stop_fd, POLLIN, 0};
	uint64_t looks = 0, sleep_ns = SLEEP_MIN_NS;

	for (;;) {
		struct timespec ts = {.tv_nsec = (long)sleep_ns};

		if (ppoll(&fd, 1, &ts, NULL) > 0)
			return;
		sleep_ns = look_for_loop(a, &looks)  ? SLEEP_MIN_NS
			   : sleep_ns < SLEEP_MAX_NS ? 2 * sleep_ns
						     : SLEEP_MAX_NS;
	}
}

/* ---- the loop ---- */

/*
 * Most completions that can come to be handed on: one a block, for each is signalled once at most;
 * one to flush each channel; and what an earlier transfer, or the greeting, left.  Each is out
 * until the loop takes it.
 */
static uint32_t ring_room(const struct engine_env *env)
{
	uint32_t room = pool_count(env->pool) + env->channel_count;

	for (unsigned i = 0; i < env->channel_count; i++)
		room += env->channels[i]->queue.span_count;
	/* a channel's end comes for each request that is out: only the first is kept, as it is the
	 * last one looked at
	 */
	return room + 1;
}

int acks_start(const struct engine_env *env, uint32_t slots, struct acks **out)
{
	struct acks *a = calloc(1, sizeof *a);
	int err = 0;

	if (!a)
		return -ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	a->cq = env->cq;
	a->slots = slots;
	a->ring_room = ring_room(env);
	a->ring = calloc(a->ring_room, sizeof *a->ring);
	a->acked = calloc(slots, sizeof *a->acked);
	a->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->stop_fd < 0)
		err = -errno;
	if (!a->ring || !a->acked)
		err = -ENOMEM;
	if (!err)
		err = worker_start(&a->thread, "rftp-ack", run, a);
	if (err) {
		acks_free(a);
		return err;
	}
	*out = a;
	return 0;
}

void acks_stop(struct acks *a)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&a->lock);
	a->stopped = true;
	pthread_mutex_unlock(&a->lock);
	if (a->thread.started && write(a->stop_fd, &one, sizeof one) < 0)
		log_error("eventfd: %d", errno);
	worker_stop(&a->thread);
}

void acks_free(struct acks *a)
{
	if (!a)
		return;
	acks_stop(a);
	if (a->stop_fd >= 0)
		close(a->stop_fd);
	pthread_mutex_destroy(&a->lock);
	free(a->acked);
	free(a->ring);
	free(a);
}

uint64_t acks_head(const struct acks *a)
{
	return atomic_load_explicit(&a->head, memory_order_acquire);
}

void acks_expect(struct acks *a, uint64_t tail)
{
	atomic_store_explicit(&a->tail, tail, memory_order_release);
}

int acks_take(struct acks *a, struct fabric_wc *wc, unsigned max, struct verdict *verdict)
{
	unsigned n = 0;
	int error;

	pthread_mutex_lock(&a->lock);
	a->looks++;
	while (!a->ring_count && look(a))
		;
	for (; n < max && a->ring_count; a->ring_count--) {
		wc[n++] = a->ring[a->ring_head];
		a->ring_head = (a->ring_head + 1) % a->ring_room;
	}
	error = a->error;
	if (!n && error)
		verdict_join(verdict, &a->verdict);
	pthread_mutex_unlock(&a->lock);
	return n ? (int)n : error;
}
