/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_ready: when a completion queue's descriptor is readable: arming, the device's
 * events, and what we say ourselves.  Sleeping is what small blocks pay for, so nothing here asks
 * the kernel what is known.
 */
#include "fabric/verbs/verbs_impl.h"

#define ACK_BATCH 64 /* acknowledging takes a lock; destroying waits for it */

void verbs_cq_raise(struct verbs_cq *cq)
{
	if (!cq->woken)
		verbs_fd_raise(cq->wake);
	cq->woken = true;
}

/* An armed bank has one event to come; of others there is none, and no need to ask the kernel. */
static void take_events(struct verbs_cq *cq)
{
	unsigned armed = 0;
	struct ibv_cq *ready;
	void *context;

	for (unsigned i = 0; i < cq->bank_count; i++)
		armed += cq->banks[i].armed;
	for (; armed && !ibv_get_cq_event(cq->channel, &ready, &context); armed--) {
		for (unsigned i = 0; i < cq->bank_count; i++) {
			struct verbs_bank *bank = &cq->banks[i];

			if (bank->cq != ready)
				continue;
			bank->armed = false;
			if (++bank->unacked == ACK_BATCH) {
				ibv_ack_cq_events(ready, bank->unacked);
				bank->unacked = 0;
			}
		}
	}
}

static void lower(struct verbs_cq *cq)
{
	if (cq->woken)
		verbs_fd_clear(cq->wake);
	cq->woken = false;
	take_events(cq);
}

int verbs_cq_arm(struct fabric_cq *base)
{
	struct verbs_cq *cq = (struct verbs_cq *)base;
	int err = 0;

	pthread_mutex_lock(&cq->lock);
	lower(cq);
	for (unsigned i = 0; i < cq->bank_count && !err; i++) {
		struct verbs_bank *bank = &cq->banks[i];

		/* one that is still armed tells of what comes: arming is a call into the kernel,
		 * too */
		if (!bank->armed)
			err = -ibv_req_notify_cq(bank->cq, 0);
		bank->armed |= !err;
	}
	pthread_mutex_unlock(&cq->lock);
	return err;
}

int verbs_cq_fd(const struct fabric_cq *base)
{
	return ((const struct verbs_cq *)base)->fd;
}

void verbs_cq_ack(struct fabric_cq *base)
{
	struct verbs_cq *cq = (struct verbs_cq *)base;

	pthread_mutex_lock(&cq->lock);
	lower(cq);
	pthread_mutex_unlock(&cq->lock);
}
