/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_memory: protection domains and memory regions of the soft fabric.
 *
 * A key is [random 18 bits][slot 14 bits] and is looked up in the domain of the channel, so that a
 * key of another domain is as good as none.  Every movement of bytes holds the domain's lock for
 * reading while it checks and moves; that is why soft_mr_free may return as soon as it has had the
 * lock for writing.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "fabric/soft/soft_impl.h"

#define SLOT_BITS 14
#define SLOT_MAX (1u << SLOT_BITS)
#define SLOT_MASK (SLOT_MAX - 1)
#define SLOTS_FIRST 8u

int soft_pd_new(struct fabric_chan *chan, struct fabric_pd **out)
{
	pthread_rwlockattr_t attr;
	struct soft_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->base.fabric = chan->fabric;
	atomic_init(&pd->refs, 1);
	/* Or progress threads that take turns could keep soft_mr_free out for ever. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&pd->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	*out = &pd->base;
	return 0;
}

void soft_pd_put(struct soft_pd *pd)
{
	if (!pd || atomic_fetch_sub(&pd->refs, 1) != 1)
		return;
	pthread_rwlock_destroy(&pd->lock);
	free(pd->slots);
	free(pd);
}

void soft_pd_free(struct fabric_pd *pd)
{
	soft_pd_put((struct soft_pd *)pd);
}

/* A free slot, growing the table if there is none.  Under the lock for writing. */
static int slot_find(struct soft_pd *pd, uint32_t *out)
{
	uint32_t count = pd->slot_count ? pd->slot_count * 2 : SLOTS_FIRST;
	struct soft_mr **slots;

	for (uint32_t i = 0; i < pd->slot_count; i++) {
		uint32_t slot = (pd->slot_hint + i) % pd->slot_count;

		if (!pd->slots[slot]) {
			*out = slot;
			return 0;
		}
	}
	if (count > SLOT_MAX)
		return -ENOMEM;
	slots = realloc(pd->slots, count * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = pd->slot_count; i < count; i++)
		slots[i] = NULL;
	*out = pd->slot_count;
	pd->slots = slots;
	pd->slot_count = count;
	return 0;
}

/* What of a key nobody can guess. */
static int make_noise(uint32_t *out)
{
	do {
		if (getrandom(out, sizeof(*out), 0) != sizeof(*out))
			return -EIO;
	} while (!(*out >> SLOT_BITS)); /* no key is SOFT_KEY_NONE */
	return 0;
}

int soft_mr_new(struct fabric_pd *fabric_pd, void *addr, size_t bytes, unsigned access,
	struct fabric_mr **out)
{
	struct soft_pd *pd = (struct soft_pd *)fabric_pd;
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	uint32_t slot, noise;
	int err;

	if (!mr)
		return -ENOMEM;
	err = make_noise(&noise);
	if (err)
		goto err_mr;
	mr->base.fabric = pd->base.fabric;
	mr->base.base = (uintptr_t)addr;
	mr->pd = pd;
	mr->addr = addr;
	mr->bytes = bytes;
	mr->access = access;
	pthread_rwlock_wrlock(&pd->lock);
	err = slot_find(pd, &slot);
	if (!err) {
		mr->base.key = (noise & ~SLOT_MASK) | slot;
		pd->slots[slot] = mr;
		pd->slot_hint = slot + 1;
	}
	pthread_rwlock_unlock(&pd->lock);
	if (err)
		goto err_mr;
	atomic_fetch_add(&pd->refs, 1);
	*out = &mr->base;
	return 0;

err_mr:
	free(mr);
	return err;
}

void soft_mr_free(struct fabric_mr *fabric_mr)
{
	struct soft_mr *mr = (struct soft_mr *)fabric_mr;
	struct soft_pd *pd = mr->pd;

	pthread_rwlock_wrlock(&pd->lock);
	pd->slots[mr->base.key & SLOT_MASK] = NULL;
	pthread_rwlock_unlock(&pd->lock);
	free(mr);
	soft_pd_put(pd);
}

int soft_mr_rekey(struct fabric_mr *fabric_mr)
{
	struct soft_mr *mr = (struct soft_mr *)fabric_mr;
	uint32_t old = mr->base.key, noise;

	do {
		int err = make_noise(&noise);

		if (err)
			return err;
	} while (!((noise ^ old) >> SLOT_BITS));
	pthread_rwlock_wrlock(&mr->pd->lock);
	mr->base.key = (noise & ~SLOT_MASK) | (old & SLOT_MASK);
	pthread_rwlock_unlock(&mr->pd->lock);
	return 0;
}

int soft_mr_watch(struct fabric_mr *fabric_mr, struct fabric_cq *cq)
{
	struct soft_mr *mr = (struct soft_mr *)fabric_mr;

	pthread_rwlock_wrlock(&mr->pd->lock);
	mr->watch = cq;
	pthread_rwlock_unlock(&mr->pd->lock);
	return 0;
}

static const struct soft_mr *find(const struct soft_pd *pd, uint32_t key)
{
	const uint32_t slot = key & SLOT_MASK;
	const struct soft_mr *mr = slot < pd->slot_count ? pd->slots[slot] : NULL;

	return mr && mr->base.key == key ? mr : NULL;
}

struct fabric_cq *soft_pd_watch(const struct soft_pd *pd, uint32_t key)
{
	const struct soft_mr *mr = find(pd, key);

	return mr ? mr->watch : NULL;
}

enum soft_access soft_pd_check(
	const struct soft_pd *pd, uint32_t key, uint64_t addr, uint64_t bytes, unsigned access)
{
	const struct soft_mr *mr = find(pd, key);

	if (!mr)
		return SOFT_ACCESS_KEY;
	if (addr < mr->base.base || bytes > mr->bytes || addr - mr->base.base > mr->bytes - bytes)
		return SOFT_ACCESS_BOUNDS;
	return (mr->access & access) == access ? SOFT_ACCESS_OK : SOFT_ACCESS_RIGHTS;
}
