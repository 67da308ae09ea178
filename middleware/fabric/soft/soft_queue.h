/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_queue.h: event queues and completion queues of the soft fabric.  Included by
 * soft*.c only.
 */
#ifndef FABRIC_SOFT_QUEUE_H
#define FABRIC_SOFT_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "fabric/fabric_impl.h"

struct soft_chan;

struct soft_event {
	TAILQ_ENTRY(soft_event) link;
	struct soft_chan *chan;
	struct fabric_listener *listener;
	enum fabric_event_type type;
	int error;
	bool queued;
};

struct soft_eq {
	struct fabric_eq base;
	pthread_mutex_t lock;
	int fd;
	TAILQ_HEAD(, soft_event) events;
};

int soft_eq_new(struct fabric *, struct fabric_eq **out);
void soft_eq_free(struct fabric_eq *);
int soft_eq_fd(const struct fabric_eq *);
int soft_eq_get(struct fabric_eq *, struct fabric_event *);
void soft_eq_push(struct soft_eq *, struct soft_event *);
/* Takes the channel's events out of its queue. */
void soft_eq_purge(struct soft_eq *, struct soft_chan *);
/* Frees the channels of requests that nobody has seen: all, or those of one listener. */
void soft_eq_drop_requests(struct soft_eq *, const struct fabric_listener *);

struct soft_completion {
	struct fabric_wc wc;
	bool is_send;
};

struct soft_cq {
	struct fabric_cq base;
	atomic_uint refs;
	pthread_mutex_t lock;
	int fd;
	bool armed;
	bool closed; /* the user has freed it; channels still hold it */
	uint32_t depth;
	uint32_t reserved; /* by the depths of channels */
	uint32_t head, count;
	struct soft_completion ring[];
};

int soft_cq_new(struct fabric_pd *, uint32_t depth, struct fabric_cq **out);
void soft_cq_free(struct fabric_cq *);
int soft_cq_poll(struct fabric_cq *, struct fabric_wc *, int max);
int soft_cq_arm(struct fabric_cq *);
int soft_cq_fd(const struct fabric_cq *);
void soft_cq_ack(struct fabric_cq *);
/* Makes an armed queue's fd readable, though nothing has completed. */
void soft_cq_nudge(struct soft_cq *);
void soft_cq_push(struct soft_cq *, const struct fabric_wc *, bool is_send);
int soft_cq_reserve(struct soft_cq *, uint32_t depth);
/* Removes what waits for `chan`, gives back its reservation and reference. */
void soft_cq_leave(struct soft_cq *, struct soft_chan *, uint32_t depth);

#endif
