/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/queue: owns a ring of pointers, its mutex and its condition.  What is left in the ring is
 * not freed with it.
 */
#include "base/queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t came; /* items, or the close */
	size_t waiting;      /* threads in queue_pop's wait */
	size_t bound, head, count;
	bool closed;
	void *ring[];
};

int queue_new(size_t bound, struct queue **out)
{
	struct queue *q;

	if (bound > (SIZE_MAX - sizeof *q) / sizeof q->ring[0])
		return -ENOMEM;
	q = malloc(sizeof *q + bound * sizeof q->ring[0]);
	if (!q)
		return -ENOMEM;
	/* default attributes: glibc's initializers cannot fail */
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->came, NULL);
	q->waiting = 0;
	q->bound = bound;
	q->head = q->count = 0;
	q->closed = false;
	*out = q;
	return 0;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->came);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

int queue_push(struct queue *q, void *const *items, size_t count)
{
	int err = 0;

	pthread_mutex_lock(&q->lock);
	if (q->closed) {
		err = -EPIPE;
		goto out;
	}
	assert(count <= q->bound - q->count);
	for (size_t i = 0; i < count; i++) {
		size_t at = q->head + q->count++;

		q->ring[at < q->bound ? at : at - q->bound] = items[i];
	}
	/* Under the lock: once a popper can see the last item it may also free the queue. */
	if (count > 1 && q->waiting > 1)
		pthread_cond_broadcast(&q->came);
	else if (count && q->waiting)
		pthread_cond_signal(&q->came);
out:
	pthread_mutex_unlock(&q->lock);
	return err;
}

size_t queue_pop(struct queue *q, void **items, size_t max, bool wait)
{
	size_t taken = 0;

	pthread_mutex_lock(&q->lock);
	while (wait && !q->count && !q->closed) {
		q->waiting++;
		pthread_cond_wait(&q->came, &q->lock);
		q->waiting--;
	}
	while (taken < max && q->count) {
		items[taken++] = q->ring[q->head];
		if (++q->head == q->bound)
			q->head = 0;
		q->count--;
	}
	pthread_mutex_unlock(&q->lock);
	return taken;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->came);
	pthread_mutex_unlock(&q->lock);
}
