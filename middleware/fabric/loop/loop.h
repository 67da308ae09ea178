/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/loop/loop: both ends in this process, for tests; faults come from a seed and repeat with
 * it.
 *
 * Addresses are ordinary sockaddrs, looked up in a table of this fabric instance only: a listener
 * and a dialler meet when both use the same struct fabric.  Port 0 takes a free number.
 */
#ifndef FABRIC_LOOP_H
#define FABRIC_LOOP_H

#include "fabric/fabric.h"

struct loop_faults {
	uint64_t seed;             /* of every choice below */
	unsigned delay_us;         /* each request waits 0..delay_us */
	unsigned reorder_permille; /* chance that a channel's next request waits behind other
				      channels' */
	uint64_t cut_after; /* the n-th executed request (1 = first) breaks every channel; 0 = never
			     */
	uint64_t error_after; /* the n-th executed request fails, and breaks its channel; 0 = never
			       */
	uint64_t
		stall_after; /* the channel of the n-th WRITE moves nothing from it on; 0 = never */
	bool no_imm;         /* caps.has_imm = false, as on iWARP */
	bool no_read;        /* caps.has_read = false */
	bool at_once;        /* who posts carries out what there is, and no thread is needed for it;
				without delay_us and reorder_permille */
	bool no_watch;       /* fabric_mr_watch is not supported, as by adapters */
	/* Called by whoever frees a channel, before it is gone; may take its time, as kernels do.
	 */
	void (*freeing)(void *ctx);
	void *freeing_ctx;
};

/* `faults` NULL = none. */
int loop_open(const struct loop_faults *faults, struct fabric **out);

/*
 * A bit of the `after`-th request from now on (1 = the next) that carries anything changes on its
 * way: number `bit` of its data, or of the immediate value behind it, modulo how many there are.
 */
void loop_flip(struct fabric *, uint64_t after, uint32_t bit);

#endif
