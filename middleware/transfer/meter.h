/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/meter: a rate that several transfers share: what one of them moves, the others wait for.
 *
 * Their buckets (transfer/bucket) charge it.  There are no turns: whose thread finds it free first
 * goes on.  Any thread may call anything here; nothing waits.
 */
#ifndef TRANSFER_METER_H
#define TRANSFER_METER_H

#include <stdatomic.h>
#include <stdint.h>

#define METER_ENDLESS UINT64_MAX /* a rate: none */

struct meter {
	_Atomic uint64_t rate; /* bytes a second; METER_ENDLESS */
	/* Until when what has moved is paid for: it runs ahead of the clock by the bytes that
	 * moved. */
	_Atomic uint64_t next_ns;
};

void meter_init(struct meter *, uint64_t rate);
/* Another rate, for what was spent already, too. */
void meter_set_rate(struct meter *, uint64_t rate, uint64_t now_ns);

/* When something may move: not later than now: it may. */
uint64_t meter_next_ns(struct meter *, uint64_t now_ns);
/* Time for so many bytes is used up: gives when they, and all that others spent before, are paid
 * for. */
uint64_t meter_spend(struct meter *, uint64_t bytes, uint64_t now_ns);
/* It was for more than came: gives the time that comes back. */
uint64_t meter_refund(struct meter *, uint64_t bytes);

#endif
