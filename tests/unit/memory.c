/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/memory: session/memory, registered with the loop fabric: one arena from transfer to
 * transfer, access for as long as a transfer lasts.
 */
#include "fabric/loop/loop.h"
#include "tests/harness.h"
#include "session/memory.h"

#include <netinet/in.h>
#include <string.h>

#define MIB (1u << 20)

static struct fabric *fabric;
static struct fabric_eq *eq;
static struct fabric_chan *chan;
static struct fabric_pd *pd;

/* A protection domain, of a channel that goes nowhere. */
static bool domain_made(void)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(7),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};

	return !loop_open(NULL, &fabric) && !fabric_eq_new(fabric, &eq) &&
	       !fabric_dial(eq, (const struct sockaddr *)&to, NULL, 1000, &chan) &&
	       !fabric_pd_new(chan, &pd);
}

static void domain_gone(void)
{
	fabric_pd_free(pd);
	fabric_chan_free(chan);
	fabric_eq_free(eq);
	fabric_close(fabric);
}

static void the_arena_stays_and_the_access_goes(void)
{
	struct memory m = {0};
	uint8_t *first, *again;
	uint32_t key;

	CHECK(domain_made());
	CHECK_EQ(memory_take(&m, pd, 8 * MIB, FABRIC_REMOTE_WRITE, &first), 0);
	CHECK(m.mr);
	memset(first, 1, 8 * MIB);
	key = fabric_mr_key(m.mr);
	memory_revoke(&m);
	CHECK(fabric_mr_key(m.mr) != key);
	CHECK_EQ(first[8 * MIB - 1],
		1); /* what was written can still be read: the sink is not done with it */
	memory_give(&m);
	CHECK_EQ(memory_take(&m, pd, 4 * MIB, FABRIC_LOCAL, &again), 0);
	CHECK(again == first || m.arena.hugetlb);
	memset(again, 2, 4 * MIB);
	memory_give(&m);
	memory_free(&m);
	CHECK(!m.mr && !m.arena.base);
	domain_gone();
}

static void what_fits_is_registered_once(void)
{
	static const struct {
		size_t bytes;
		unsigned access;
		bool again;
	} slices[] = {
		{4 * MIB, FABRIC_LOCAL, true},
		{4 * MIB, FABRIC_LOCAL, false},
		{1 * MIB, FABRIC_LOCAL, false},
		{8 * MIB, FABRIC_LOCAL, true},
		{4 * MIB, FABRIC_REMOTE_WRITE, true}, /* for another use */
		{4 * MIB, FABRIC_REMOTE_WRITE, false},
		{2 * MIB, FABRIC_LOCAL, true},
	};
	const struct fabric_mr *before = NULL;
	struct memory m = {0};
	uint32_t key = 0;
	uint8_t *base;

	CHECK(domain_made());
	for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
		size_t registered = m.bytes;

		CHECK_EQ(memory_take(&m, pd, slices[i].bytes, slices[i].access, &base), 0);
		CHECK_EQ(m.access, slices[i].access);
		if (slices[i].again)
			CHECK_EQ(m.bytes, slices[i].bytes);
		else
			CHECK(m.mr == before && m.bytes == registered);
		CHECK(key != fabric_mr_key(m.mr) || m.access == FABRIC_LOCAL);
		key = fabric_mr_key(m.mr);
		before = m.mr;
		memset(base, 1, slices[i].bytes);
		memory_give(&m);
		if (m.arena.hugetlb)
			break; /* they go at once */
	}
	memory_free(&m);
	domain_gone();
}

static void a_larger_slice_makes_a_larger_arena(void)
{
	struct memory m = {0};
	uint8_t *base;

	CHECK(domain_made());
	for (size_t bytes = MIB; bytes <= 16 * MIB; bytes *= 4) {
		CHECK_EQ(memory_take(&m, pd, bytes, FABRIC_LOCAL, &base), 0);
		CHECK(m.arena.base == base && m.arena.bytes >= bytes);
		memset(base, 3, bytes);
		memory_give(&m);
	}
	memory_free(&m);
	domain_gone();
}

static void too_much_leaves_room_for_less(void)
{
	struct memory m = {0};
	uint8_t *base;

	CHECK(domain_made());
	CHECK_EQ(memory_take(&m, pd, SIZE_MAX / 4, FABRIC_LOCAL, &base), -ENOMEM);
	CHECK(!m.mr && !m.arena.base);
	CHECK_EQ(memory_take(&m, pd, MIB, FABRIC_LOCAL, &base), 0);
	memory_free(&m);
	domain_gone();
}

HARNESS_MAIN({"the_arena_stays_and_the_access_goes", the_arena_stays_and_the_access_goes},
	{"what_fits_is_registered_once", what_fits_is_registered_once},
	{"a_larger_slice_makes_a_larger_arena", a_larger_slice_makes_a_larger_arena},
	{"too_much_leaves_room_for_less", too_much_leaves_room_for_less})
