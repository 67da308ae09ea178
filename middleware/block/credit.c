/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/credit: owns the two ledgers: which indices were granted (source), how many are due
 * (sink).
 */
#include "block/credit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define CREDIT_PER_LANDED 2 /* the window doubles each round trip until the pool is all granted */

/* ---- source ---- */

struct credit_book {
	uint32_t blocks, head, count;
	bool *granted;   /* by index */
	uint32_t ring[]; /* granted indices, oldest at head */
};

int credit_book_new(uint32_t blocks, struct credit_book **out)
{
	struct credit_book *book = malloc(sizeof *book + (size_t)blocks * sizeof book->ring[0]);

	if (!book)
		return -ENOMEM;
	book->blocks = blocks;
	book->head = book->count = 0;
	book->granted = calloc(blocks ? blocks : 1, sizeof *book->granted);
	if (!book->granted) {
		free(book);
		return -ENOMEM;
	}
	*out = book;
	return 0;
}

void credit_book_free(struct credit_book *book)
{
	if (!book)
		return;
	free(book->granted);
	free(book);
}

int credit_book_add(struct credit_book *book, const uint32_t *indices, uint32_t count)
{
	uint32_t done;
	int err = 0;

	for (done = 0; done < count; done++) {
		uint32_t index = indices[done];
		uint64_t at = (uint64_t)book->head + book->count + done;

		if (index >= book->blocks)
			err = -ERANGE;
		else if (book->granted[index])
			err = -EEXIST;
		if (err)
			break;
		/* no index is in the ring twice, so the ring cannot overflow */
		book->granted[index] = true;
		book->ring[at < book->blocks ? at : at - book->blocks] = index;
	}
	if (err) {
		while (done--)
			book->granted[indices[done]] = false;
		return err;
	}
	book->count += count;
	return 0;
}

uint32_t credit_book_available(const struct credit_book *book)
{
	return book->count;
}

int credit_book_spend(struct credit_book *book, uint32_t *index)
{
	if (!book->count)
		return -EAGAIN;
	*index = book->ring[book->head];
	if (++book->head == book->blocks)
		book->head = 0;
	book->count--;
	book->granted[*index] = false;
	return 0;
}

/* ---- sink ---- */

/* No more can be due than there are blocks that are not granted already. */
static void credit_meter_earn(struct credit_meter *m, uint32_t grants)
{
	uint32_t most = m->blocks - m->granted;

	m->debt = grants < most - m->debt ? m->debt + grants : most;
}

void credit_meter_init(struct credit_meter *m, uint32_t blocks, uint32_t initial)
{
	*m = (struct credit_meter){.blocks = blocks};
	credit_meter_earn(m, initial);
}

void credit_meter_landed(struct credit_meter *m)
{
	assert(m->granted);
	m->granted--;
	credit_meter_earn(m, CREDIT_PER_LANDED);
}

void credit_meter_asked(struct credit_meter *m)
{
	m->asked = true;
	if (!m->debt)
		credit_meter_earn(m, 1);
}

uint32_t credit_meter_grant(struct credit_meter *m, uint32_t free_blocks)
{
	uint32_t grants = m->debt < free_blocks ? m->debt : free_blocks;

	if (!m->asked && grants == free_blocks && m->granted >= m->blocks / 2 &&
		grants < m->blocks / 4)
		return 0;
	m->debt -= grants;
	m->granted += grants;
	if (grants)
		m->asked = false;
	return grants;
}
