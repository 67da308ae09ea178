/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop: the in-process fabric itself: opening and closing, protection domains,
 * registered memory, completion queues.
 */
#include "fabric/loop/loop_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* odd: walks through all 2^32 keys, and no two near ones are alike */
#define KEY_STEP 0x9e3779b1u
#define PAGE_MASK 4095u

/* ---- readiness of a descriptor ---- */

void loop_fd_raise(int fd)
{
	const uint64_t one = 1;

	/* Cannot fail: the counter is 0 or 1. */
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void loop_fd_clear(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
		;
}

/* ---- protection domains and memory ---- */

static int loop_pd_new(struct fabric_chan *chan, struct fabric_pd **out)
{
	struct loop *loop = (struct loop *)chan->fabric;
	struct loop_pd *pd = calloc(1, sizeof *pd);

	if (!pd)
		return -ENOMEM;
	pd->base.fabric = chan->fabric;
	pthread_mutex_lock(&loop->lock);
	pd->id = ++loop->next_pd;
	pthread_mutex_unlock(&loop->lock);
	*out = &pd->base;
	return 0;
}

static void loop_pd_free(struct fabric_pd *pd)
{
	free(pd);
}

struct loop_mr *loop_mr_find(struct loop *loop, uint32_t key)
{
	struct loop_mr *mr;

	LIST_FOREACH(mr, &loop->mrs[key % LOOP_MR_BUCKETS], link)
	{
		if (mr->base.key == key)
			return mr;
	}
	return NULL;
}

/* A key that no other has, and what it names.  The lock is held. */
static void name_mr(struct loop *loop, struct loop_mr *mr)
{
	do
		loop->next_key += KEY_STEP;
	while (!loop->next_key || loop_mr_find(loop, loop->next_key));
	mr->base.key = loop->next_key;
	/* Not the address itself: whoever confuses the two must not get away with it.  Aligned as
	 * it is, and far from the end of 64 bits. */
	mr->base.base = (uint64_t)(mr->base.key >> 2) << 32 | ((uintptr_t)mr->addr & PAGE_MASK);
	LIST_INSERT_HEAD(&loop->mrs[mr->base.key % LOOP_MR_BUCKETS], mr, link);
}

/* From here on nobody finds it.  The lock is held, and dropped to wait for who has found it. */
static void unname_mr(struct loop *loop, struct loop_mr *mr)
{
	LIST_REMOVE(mr, link);
	while (mr->pins)
		pthread_cond_wait(&loop->unpinned, &loop->lock);
}

static int loop_mr_new(
	struct fabric_pd *base, void *addr, size_t bytes, unsigned access, struct fabric_mr **out)
{
	struct loop_pd *pd = (struct loop_pd *)base;
	struct loop *loop = LOOP_OF(pd);
	struct loop_mr *mr = calloc(1, sizeof *mr);

	if (!mr)
		return -ENOMEM;
	mr->base.fabric = base->fabric;
	mr->pd = pd->id;
	mr->addr = addr;
	mr->bytes = bytes;
	mr->access = access;

	pthread_mutex_lock(&loop->lock);
	name_mr(loop, mr);
	pthread_mutex_unlock(&loop->lock);
	*out = &mr->base;
	return 0;
}

static void loop_mr_free(struct fabric_mr *base)
{
	struct loop_mr *mr = (struct loop_mr *)base;
	struct loop *loop = LOOP_OF(mr);

	pthread_mutex_lock(&loop->lock);
	unname_mr(loop, mr);
	pthread_mutex_unlock(&loop->lock);
	free(mr);
}

static int loop_mr_rekey(struct fabric_mr *base)
{
	struct loop_mr *mr = (struct loop_mr *)base;
	struct loop *loop = LOOP_OF(mr);

	pthread_mutex_lock(&loop->lock);
	unname_mr(loop, mr);
	name_mr(loop, mr);
	pthread_mutex_unlock(&loop->lock);
	return 0;
}

static int loop_mr_watch(struct fabric_mr *base, struct fabric_cq *cq)
{
	struct loop_mr *mr = (struct loop_mr *)base;
	struct loop *loop = LOOP_OF(mr);

	if (loop->faults.no_watch)
		return -ENOTSUP;
	pthread_mutex_lock(&loop->lock);
	mr->watch = (struct loop_cq *)cq;
	pthread_mutex_unlock(&loop->lock);
	return 0;
}

/* ---- completion queues ---- */

static int loop_cq_new(struct fabric_pd *pd, uint32_t depth, struct fabric_cq **out)
{
	struct loop_cq *cq = calloc(1, sizeof *cq);
	int err;

	if (!cq)
		return -ENOMEM;
	cq->base.fabric = pd->fabric;
	cq->depth = depth;
	cq->ring = malloc(depth * sizeof *cq->ring);
	if (!cq->ring) {
		err = -ENOMEM;
		goto err_cq;
	}
	cq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->fd < 0) {
		err = -errno;
		goto err_ring;
	}
	*out = &cq->base;
	return 0;

err_ring:
	free(cq->ring);
err_cq:
	free(cq);
	return err;
}

static void loop_cq_free(struct fabric_cq *base)
{
	struct loop_cq *cq = (struct loop_cq *)base;

	assert(!cq->reserved); /* its channels go first */
	close(cq->fd);
	free(cq->ring);
	free(cq);
}

void loop_cq_nudge(struct loop_cq *cq)
{
	if (!cq->armed)
		return;
	cq->armed = false;
	cq->readable = true;
	loop_fd_raise(cq->fd);
}

void loop_cq_push(struct loop_cq *cq, const struct loop_completion *completion)
{
	unsigned count = atomic_load_explicit(&cq->count, memory_order_relaxed);

	assert(count < cq->depth); /* chan_setup reserved the room */
	cq->ring[(cq->head + count) % cq->depth] = *completion;
	atomic_store_explicit(&cq->count, count + 1, memory_order_release);
	loop_cq_nudge(cq);
}

/* Drops what waits there for a channel that goes away. */
void loop_cq_forget(struct loop_cq *cq, const struct loop_chan *chan)
{
	unsigned count = atomic_load_explicit(&cq->count, memory_order_relaxed), kept = 0;

	for (unsigned i = 0; i < count; i++) {
		struct loop_completion *from = &cq->ring[(cq->head + i) % cq->depth];

		if (from->wc.chan != &chan->base)
			cq->ring[(cq->head + kept++) % cq->depth] = *from;
	}
	atomic_store_explicit(&cq->count, kept, memory_order_release);
}

static int loop_cq_poll(struct fabric_cq *base, struct fabric_wc *wc, int max)
{
	struct loop_cq *cq = (struct loop_cq *)base;
	struct loop *loop = LOOP_OF(cq);
	unsigned count;
	int taken = 0;

	if (!atomic_load_explicit(&cq->count, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&loop->lock);
	count = atomic_load_explicit(&cq->count, memory_order_relaxed);
	for (; taken < max && count; taken++, count--) {
		struct loop_completion *done = &cq->ring[cq->head];
		struct loop_chan *chan = (struct loop_chan *)done->wc.chan;

		wc[taken] = done->wc;
		chan->send_used -= done->send_slots;
		chan->recv_used -= done->recv_slots;
		cq->head = (cq->head + 1) % cq->depth;
	}
	atomic_store_explicit(&cq->count, count, memory_order_release);
	pthread_mutex_unlock(&loop->lock);
	return taken;
}

static void cq_quiet(struct loop_cq *cq, bool arm)
{
	struct loop *loop = LOOP_OF(cq);

	pthread_mutex_lock(&loop->lock);
	if (cq->readable)
		loop_fd_clear(cq->fd);
	cq->readable = false;
	if (arm)
		cq->armed = true;
	pthread_mutex_unlock(&loop->lock);
}

static int loop_cq_arm(struct fabric_cq *base)
{
	cq_quiet((struct loop_cq *)base, true);
	return 0;
}

static void loop_cq_ack(struct fabric_cq *base)
{
	cq_quiet((struct loop_cq *)base, false);
}

static int loop_cq_fd(const struct fabric_cq *base)
{
	return ((const struct loop_cq *)base)->fd;
}

/* ---- the fabric ---- */

static void loop_close(struct fabric *base)
{
	struct loop *loop = (struct loop *)base;

	assert(LIST_EMPTY(&loop->chans) && LIST_EMPTY(&loop->listeners));
	pthread_mutex_lock(&loop->lock);
	loop->stop = true;
	pthread_cond_signal(&loop->work);
	pthread_mutex_unlock(&loop->lock);
	worker_stop(&loop->wire);
	pthread_cond_destroy(&loop->unpinned);
	pthread_cond_destroy(&loop->work);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

static const struct fabric_ops loop_ops = {
	.name = "loop",
	.close = loop_close,
	.eq_new = loop_eq_new,
	.eq_free = loop_eq_free,
	.eq_fd = loop_eq_fd,
	.eq_get = loop_eq_get,
	.listen = loop_listen,
	.listener_addr = loop_listener_addr,
	.listener_free = loop_listener_free,
	.dial = loop_dial,
	.chan_setup = loop_chan_setup,
	.chan_connect = loop_chan_connect,
	.chan_accept = loop_chan_accept,
	.chan_reject = loop_chan_reject,
	.chan_disconnect = loop_chan_disconnect,
	.chan_free = loop_chan_free,
	.chan_describe = loop_chan_describe,
	.pd_new = loop_pd_new,
	.pd_free = loop_pd_free,
	.mr_new = loop_mr_new,
	.mr_free = loop_mr_free,
	.mr_watch = loop_mr_watch,
	.mr_rekey = loop_mr_rekey,
	.cq_new = loop_cq_new,
	.cq_free = loop_cq_free,
	.cq_poll = loop_cq_poll,
	.cq_arm = loop_cq_arm,
	.cq_fd = loop_cq_fd,
	.cq_ack = loop_cq_ack,
	.post_send = loop_post_send,
	.post_recv = loop_post_recv,
};

void loop_flip(struct fabric *fabric, uint64_t after, uint32_t bit)
{
	struct loop *loop = (struct loop *)fabric;

	pthread_mutex_lock(&loop->lock);
	loop->flip_after = after;
	loop->flip_bit = bit;
	pthread_mutex_unlock(&loop->lock);
}

int loop_open(const struct loop_faults *faults, struct fabric **out)
{
	struct loop *loop = calloc(1, sizeof *loop);
	pthread_condattr_t monotonic;
	int err;

	if (!loop)
		return -ENOMEM;
	loop->base.ops = &loop_ops;
	if (faults)
		loop->faults = *faults;
	TAILQ_INIT(&loop->run);
	loop->next_port = 49152; /* the first of the dynamic ones */
	/* None of these can fail with these attributes on Linux. */
	pthread_mutex_init(&loop->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&loop->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&loop->unpinned, NULL);

	err = loop->faults.at_once ? 0
				   : worker_start(&loop->wire, "loop-wire", loop_wire_run, loop);
	if (err)
		goto err_locks;
	*out = &loop->base;
	return 0;

err_locks:
	pthread_cond_destroy(&loop->unpinned);
	pthread_cond_destroy(&loop->work);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
	return err;
}
