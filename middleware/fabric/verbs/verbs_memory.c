/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_memory: protection domains and registered memory.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

#define REVOKE_WAIT_MS 5000
#define REVOKE_PAUSE_NS 1000000

/* ---- protection domains ---- */

int verbs_pd_new(struct fabric_chan *base, struct fabric_pd **out)
{
	struct verbs_chan *chan = (struct verbs_chan *)base;
	struct verbs *verbs = VERBS_OF(chan);
	struct verbs_pd *pd = calloc(1, sizeof *pd);

	if (!pd)
		return -ENOMEM;
	pd->base.fabric = base->fabric;
	pd->device = chan->device;
	pd->pd = ibv_alloc_pd(chan->device->context);
	if (!pd->pd) {
		int err = -errno;

		free(pd);
		return err;
	}
	pthread_mutex_lock(&verbs->lock);
	pd->device->users++;
	pthread_mutex_unlock(&verbs->lock);
	*out = &pd->base;
	return 0;
}

void verbs_pd_free(struct fabric_pd *base)
{
	struct verbs_pd *pd = (struct verbs_pd *)base;
	struct verbs *verbs = VERBS_OF(pd);
	int err = ibv_dealloc_pd(pd->pd);

	if (err)
		log_error("verbs: protection domain: not freed: error %d", err);
	pthread_mutex_lock(&verbs->lock);
	verbs_device_put(verbs, pd->device);
	pthread_mutex_unlock(&verbs->lock);
	free(pd);
}

/* ---- memory ---- */

static int reg(struct verbs_pd *pd, void *addr, size_t bytes, int flags, struct ibv_mr **out)
{
	*out = ibv_reg_mr(pd->pd, addr, bytes, flags);
	if (*out)
		return 0;
	/* RLIMIT_MEMLOCK: drivers do not agree on the word */
	return errno == EPERM || errno == EAGAIN ? -ENOMEM : -errno;
}

int verbs_mr_new(
	struct fabric_pd *base, void *addr, size_t bytes, unsigned access, struct fabric_mr **out)
{
	struct verbs_pd *pd = (struct verbs_pd *)base;
	struct verbs_mr *mr = calloc(1, sizeof *mr);
	int flags = IBV_ACCESS_LOCAL_WRITE;
	int err;

	if (!mr)
		return -ENOMEM;
	if (pd->device->reads_into_exposed && (access & FABRIC_READ_INTO))
		access |= FABRIC_REMOTE_WRITE;
	if (access & FABRIC_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & FABRIC_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	err = reg(pd, addr, bytes, flags, &mr->mr);
	if (err) {
		free(mr);
		return err;
	}
	mr->base.fabric = base->fabric;
	mr->base.key = mr->mr->rkey;
	mr->base.base = (uintptr_t)addr;
	mr->pd = pd;
	mr->access = access;
	*out = &mr->base;
	return 0;
}

/* A device that is still placing a peer's data may ask to be asked again. */
static void deregister(struct ibv_mr *mr)
{
	const struct timespec pause = {.tv_nsec = REVOKE_PAUSE_NS};
	const uint64_t deadline = clock_now_ns() + REVOKE_WAIT_MS * NS_PER_MS;
	int err;

	while ((err = ibv_dereg_mr(mr)) && clock_now_ns() < deadline)
		nanosleep(&pause, NULL);
	if (err)
		log_error("verbs: memory at %p, %zu bytes: not deregistered: error %d", mr->addr,
			mr->length, err);
}

void verbs_mr_free(struct fabric_mr *base)
{
	struct verbs_mr *mr = (struct verbs_mr *)base;

	if (mr->sink)
		deregister(mr->sink);
	deregister(mr->mr);
	/* siw looks at a key once for each packet, so a processor may be placing one just now.  It
	 * does so in one go, for which this call waits (as a side effect, but one that the kernel
	 * keeps). */
	if (mr->pd->device->siw && mr->access & FABRIC_REMOTE_WRITE)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	free(mr);
}

bool verbs_mr_covers(
	const struct verbs_mr *mr, const struct verbs_pd *pd, const void *addr, uint32_t bytes)
{
	const uintptr_t from = (uintptr_t)mr->mr->addr, at = (uintptr_t)addr;

	return mr->pd == pd && at >= from && at - from <= mr->mr->length &&
	       bytes <= mr->mr->length - (at - from);
}

int verbs_mr_sink_key(struct verbs_mr *mr, uint32_t *out)
{
	if (mr->pd->device->reads_into_exposed && !(mr->access & FABRIC_REMOTE_WRITE)) {
		int err = 0;

		/* iWARP's answers to a READ are writes to us.  The peer learns this key, and no
		 * other; memory that is never read into is never exposed. */
		if (!mr->sink)
			err = reg(mr->pd, mr->mr->addr, mr->mr->length,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr->sink);
		if (err)
			return err;
		*out = mr->sink->lkey;
		return 0;
	}
	*out = mr->mr->lkey;
	return 0;
}
