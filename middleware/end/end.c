/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/end.c: the I/O queue of a worker, and the calls that go on to the kind of end.
 *
 * Owns the libaio context, the batch of requests not yet given to the kernel, and the order of what
 * is done.  A kind of end does the work at once, or prepares one request for the kernel
 * (end_impl.h).  Where the kernel gives no context (fs.aio-max-nr is used up, or a sandbox without
 * the call) a prepared request is done here, by pread and pwrite.
 */
#include "end/end_impl.h"

#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define END_BATCH 16u /* requests that are collected for one io_submit */
#define END_FLYING                                                                                 \
	128u /* most in the kernel: no device is faster with more, and all processes of a          \
		host share fs.aio-max-nr */

struct end_slot {
	struct iocb iocb;
	struct end *end;
	struct block *block;
};

struct end_queue {
	unsigned depth;
	unsigned outstanding; /* submitted and not reaped */
	int cancel_fd;        /* eventfd; readable for good once cancelled */

	io_context_t aio;
	bool aio_tried, aio_ready;
	struct end_slot *slots; /* one a block */
	struct end_slot **idle; /* stack of unused slots */
	unsigned idle_count;
	struct iocb **waiting; /* ring of `depth`: prepared, not given to the kernel */
	unsigned waiting_head, waiting_count;
	unsigned flying; /* in the kernel */

	struct block **done; /* ring of `depth` */
	unsigned done_head, done_count;
};

int end_queue_new(unsigned depth, struct end_queue **out)
{
	struct end_queue *q;
	int err = -ENOMEM;

	*out = NULL;
	if (!depth)
		return -EINVAL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->depth = depth;
	q->slots = calloc(depth, sizeof(*q->slots));
	q->idle = calloc(depth, sizeof(struct end_slot *));
	q->waiting = calloc(depth, sizeof(struct iocb *));
	q->done = calloc(depth, sizeof(struct block *));
	if (!q->slots || !q->idle || !q->waiting || !q->done)
		goto err_free;
	for (unsigned i = 0; i < depth; i++)
		q->idle[q->idle_count++] = &q->slots[depth - 1 - i];
	q->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->cancel_fd < 0) {
		err = -errno;
		goto err_free;
	}
	*out = q;
	return 0;

err_free:
	free(q->slots);
	free(q->idle);
	free(q->waiting);
	free(q->done);
	free(q);
	return err;
}

void end_queue_free(struct end_queue *q)
{
	if (!q)
		return;
	assert(!q->outstanding);
	if (q->aio_ready)
		io_destroy(q->aio);
	close(q->cancel_fd);
	free(q->slots);
	free(q->idle);
	free(q->waiting);
	free(q->done);
	free(q);
}

void end_queue_cancel(struct end_queue *q)
{
	uint64_t one = 1;
	ssize_t n;

	/* EAGAIN would mean a counter that is full, and so readable: good as well */
	do
		n = write(q->cancel_fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

unsigned end_outstanding(const struct end_queue *q)
{
	return q->outstanding;
}

static void end_done(struct end_queue *q, struct block *block)
{
	assert(q->done_count < q->depth);
	q->done[(q->done_head + q->done_count++) % q->depth] = block;
}

static void end_slot_finish(struct end_queue *q, struct end_slot *slot, long result)
{
	slot->end->ops->finish(slot->end, slot->block, result);
	end_done(q, slot->block);
	q->idle[q->idle_count++] = slot;
}

/* What the kernel would have done, in this thread. */
static long end_perform(const struct iocb *iocb)
{
	ssize_t n;

	do {
		if (iocb->aio_lio_opcode == IO_CMD_PREAD)
			n = pread(iocb->aio_fildes, iocb->u.c.buf, iocb->u.c.nbytes,
				iocb->u.c.offset);
		else
			n = pwrite(iocb->aio_fildes, iocb->u.c.buf, iocb->u.c.nbytes,
				iocb->u.c.offset);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static unsigned end_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Gives what waits to the kernel, as much of it as it takes now. */
static void end_flush(struct end_queue *q)
{
	struct iocb *batch[END_BATCH];

	while (q->waiting_count && q->flying < END_FLYING) {
		unsigned count =
			end_min(end_min(q->waiting_count, END_FLYING - q->flying), END_BATCH);
		int n;

		for (unsigned i = 0; i < count; i++)
			batch[i] = q->waiting[(q->waiting_head + i) % q->depth];
		n = io_submit(q->aio, (long)count, batch);
		if (n == -EINTR)
			continue;
		if ((n == -EAGAIN || n == 0) && q->flying)
			return; /* the next reap makes room */
		if (n > 0) {
			count = (unsigned)n;
			q->flying += count;
		} else {
			/* short of resources with nothing in flight: do it here; else it is bad */
			count = 1;
			end_slot_finish(q, batch[0]->data,
				n == -EAGAIN || n == 0 ? end_perform(batch[0]) : n);
		}
		q->waiting_head = (q->waiting_head + count) % q->depth;
		q->waiting_count -= count;
	}
}

static bool end_aio_ready(struct end_queue *q)
{
	if (!q->aio_tried) {
		unsigned events = end_min(q->depth, END_FLYING);
		int err = io_setup((int)events, &q->aio);

		q->aio_tried = true;
		q->aio_ready = !err;
		if (err)
			log_warning(
				"no asynchronous I/O for %u requests: %s", events, strerror(-err));
	}
	return q->aio_ready;
}

void end_submit(struct end_queue *q, struct end *end, struct block *block)
{
	struct end_slot *slot;

	assert(q->outstanding < q->depth);
	q->outstanding++;
	block->error = 0;

	slot = q->idle[--q->idle_count];
	if (!end->ops->start(end, block, &slot->iocb, q->cancel_fd)) {
		q->idle[q->idle_count++] = slot;
		end_done(q, block);
		return;
	}
	slot->end = end;
	slot->block = block;
	slot->iocb.data = slot;
	if (!end_aio_ready(q)) {
		end_slot_finish(q, slot, end_perform(&slot->iocb));
		return;
	}
	q->waiting[(q->waiting_head + q->waiting_count++) % q->depth] = &slot->iocb;
	if (q->waiting_count >= END_BATCH)
		end_flush(q);
}

/* Takes in what the kernel has done; blocks for at least one if `wait`. */
static void end_collect(struct end_queue *q, bool wait)
{
	struct io_event events[END_BATCH];
	struct timespec now = {0, 0};
	int n;

	do {
		n = io_getevents(q->aio, wait, END_BATCH, events, wait ? NULL : &now);
	} while (n == -EINTR && wait);
	for (int i = 0; i < n; i++) {
		q->flying--;
		end_slot_finish(q, events[i].data, (long)events[i].res);
	}
}

unsigned end_reap(struct end_queue *q, struct block **done, unsigned max, bool wait)
{
	unsigned n;

	end_flush(q);
	if (q->flying && q->done_count < max)
		end_collect(q, wait && !q->done_count);
	end_flush(q); /* into the room that is there now */

	for (n = 0; n < max && q->done_count; n++) {
		done[n] = q->done[q->done_head];
		q->done_head = (q->done_head + 1) % q->depth;
		q->done_count--;
	}
	q->outstanding -= n;
	return n;
}

bool end_is_stream(const struct end *end)
{
	return end->ops->is_stream;
}

bool end_is_direct(const struct end *end)
{
	return end->direct;
}

int end_sync(struct end *end)
{
	return end->ops->sync ? end->ops->sync(end) : 0;
}

int end_free(struct end *end)
{
	return end ? end->ops->free(end) : 0;
}
