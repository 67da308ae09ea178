/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/beside: several transfers of one session at once, in both directions.
 *
 * Property: transfers of one link do not disturb each other: all bytes of each arrive, whatever the
 * others do; one that is cancelled ends alone; when the connection breaks all end.  Each number
 * runs several transfers, one after the other, on the same channels.  RFTP_TRANSFERS sets the
 * number of sessions (default 120).
 */
#include "../harness.h"
#include "../quiet.h"
#include "pair.h"

#include "base/worker.h"
#include "fabric/loop/loop.h"
#include "fabric/soft/soft.h"
#include "transfer/transfer.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS 3u /* transfers of one number */

struct half {
	bool source;
	struct link *link;
	struct transfer_params params;
	struct transfer_stats stats;
	uint64_t bytes; /* UINT64_MAX: until it is cancelled */
	enum verdict_scope outcome;
	struct worker worker;
};

struct both {
	struct half source, sink;
	unsigned channels;
	bool cancelled; /* in its last round */
	bool ended; /* and is not begun again; it stays where it is, since threads know the others
		     */
};

static void run_half(void *arg)
{
	struct half *h = arg;

	if (h->source) {
		struct outgoing_params params = {.top = AT_FDCWD, .direct = END_DIRECT_OFF};
		struct outgoing *out;

		assert(!outgoing_new(&params, &out) && !outgoing_add_null(out, h->bytes));
		h->outcome = transfer_send(h->link, &h->params, outgoing_source(out), &h->stats);
		outgoing_free(out);
	} else {
		struct incoming_params params = {.kind = INCOMING_NULL, .top = AT_FDCWD, .fd = -1};
		struct incoming *in;

		assert(!incoming_new(&params, &in));
		h->outcome = transfer_receive(h->link, &h->params, incoming_sink(in), &h->stats);
		incoming_free(in);
	}
}

/* The ports are there before either side says anything, as a dialogue sees to it. */
static void start(struct both *b)
{
	struct demux_port *port;

	assert(!demux_open(link_demux(b->source.link), b->source.params.transfer, &port));
	assert(!demux_open(link_demux(b->sink.link), b->sink.params.transfer, &port));
	assert(!worker_start(&b->source.worker, "source", run_half, &b->source));
	assert(!worker_start(&b->sink.worker, "sink", run_half, &b->sink));
}

static void finish(struct both *b)
{
	worker_stop(&b->source.worker);
	worker_stop(&b->sink.worker);
}

static void plan(struct both *b, struct pair *pair, unsigned number, uint64_t *rng, int cancel_fd)
{
	bool client_is_source = harness_random(rng) & 1;
	struct transfer_params params = {
		.transfer = number,
		.block = 65536,
		.depth = 2 + harness_random(rng) % 14,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.workers = harness_random(rng) % 3,
		.engine = MESSAGE_ENGINE_CREDIT + harness_random(rng) % 4,
		.protect = harness_random(rng) % 3,
		.cancel_fd = -1,
	};
	uint64_t bytes = harness_random(rng) % (20 * 65536);

	*b = (struct both){.channels = 1 + harness_random(rng) % 3};
	b->source = (struct half){.source = true,
		.link = client_is_source ? pair->client : pair->daemon,
		.params = params,
		.bytes = bytes};
	b->sink = (struct half){
		.link = client_is_source ? pair->daemon : pair->client, .params = params};
	if (cancel_fd >= 0 && harness_random(rng) % 2)
		b->source.params.cancel_fd = cancel_fd;
	else
		b->sink.params.cancel_fd = cancel_fd;
	b->cancelled = cancel_fd >= 0;
}

/* How one ended, that was not to be disturbed; NULL: well. */
static const char *judge(const struct both *b)
{
	if (b->source.outcome || b->sink.outcome) {
		printf("# engine %u: source %u (%u %s), sink %u (%u %s)\n", b->source.params.engine,
			b->source.outcome, b->source.stats.verdict.status,
			b->source.stats.verdict.text, b->sink.outcome, b->sink.stats.verdict.status,
			b->sink.stats.verdict.text);
		return "a transfer failed without a fault";
	}
	if (b->source.stats.bytes != b->source.bytes || b->sink.stats.bytes != b->source.bytes)
		return "other bytes arrived than were sent";
	return NULL;
}

/* One session; what was wrong, or NULL. */
static const char *one(struct fabric *fabric, uint64_t *rng, bool faulty)
{
	unsigned count = 2 + harness_random(rng) % (MESSAGE_TRANSFERS_MAX - 1);
	unsigned victim = harness_random(rng) % 2 ? harness_random(rng) % count : count;
	struct both all[MESSAGE_TRANSFERS_MAX];
	int cancel_fd = eventfd(0, 0);
	const char *wrong = NULL;
	const uint64_t now = 1;
	struct pair pair;
	unsigned running = 0;
	int err = pair_open(&pair, fabric, 1);

	/* each begins while those before it run */
	for (; running < count && !err; running++) {
		struct both *b = &all[running];

		plan(b, &pair, running, rng, running == victim ? cancel_fd : -1);
		err = pair_open_more(&pair, running, b->channels);
		if (err)
			break;
		if (b->cancelled) {
			b->source.bytes = UINT64_C(1) << 40;
			b->source.params.idle_timeout_ms = b->sink.params.idle_timeout_ms = 0;
		}
		start(b);
	}
	if (err && !faulty)
		wrong = "no connection without a fault";
	for (unsigned round = 1; round <= ROUNDS; round++) {
		for (unsigned i = 0; i < running; i++) {
			if (all[i].ended || (all[i].cancelled && round < ROUNDS))
				continue; /* it goes on beside the others */
			if (all[i].cancelled)
				assert(write(cancel_fd, &now, sizeof now) == sizeof now);
			finish(&all[i]);
			if (!faulty && !wrong && !all[i].cancelled)
				wrong = judge(&all[i]);
			if (!faulty && !wrong && all[i].cancelled &&
				(all[i].source.outcome != VERDICT_TRANSFER ||
					all[i].sink.outcome != VERDICT_TRANSFER))
				wrong = "it was cancelled, and did not end alone";
			if (round < ROUNDS && !all[i].source.outcome && !all[i].sink.outcome &&
				!wrong) {
				all[i].source.stats = all[i].sink.stats =
					(struct transfer_stats){0};
				start(&all[i]);
			} else if (round < ROUNDS) {
				all[i].ended = true;
			}
		}
	}
	pair_close(&pair);
	close(cancel_fd);
	return wrong;
}

static unsigned sessions(void)
{
	const char *s = getenv("RFTP_TRANSFERS");

	return s ? (unsigned)atoi(s) : 120;
}

static void on_loop(unsigned count, bool faulty)
{
	uint64_t rng = harness_seed();

	for (unsigned i = 0; i < count; i++) {
		uint64_t seed = harness_random(&rng), choice = seed;
		struct loop_faults faults = {
			.seed = seed,
			.delay_us = harness_random(&choice) % 4 ? 0 : harness_random(&choice) % 30,
			.reorder_permille = harness_random(&choice) % 2 ? 300 : 0,
			.no_imm = harness_random(&choice) & 1,
		};
		struct fabric *fabric;
		const char *wrong;

		if (faulty)
			faults.cut_after = 1 + harness_random(&choice) % 300;
		assert(!loop_open(&faults, &fabric));
		wrong = one(fabric, &choice, faulty);
		if (wrong)
			printf("# session %u, seed %" PRIu64 ": %s\n", i, seed, wrong);
		CHECK(!wrong);
	}
}

static void without_faults(void)
{
	on_loop(sessions(), false);
}

static void with_cuts(void)
{
	on_loop(sessions(), true);
}

static void on_soft(void)
{
	uint64_t rng = harness_seed();

	for (unsigned i = 0; i < sessions() / 4 + 1; i++) {
		struct fabric *fabric;
		const char *wrong;

		assert(!soft_open(NULL, &fabric));
		wrong = one(fabric, &rng, false);
		if (wrong)
			printf("# session %u: %s\n", i, wrong);
		CHECK(!wrong);
	}
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"several transfers at once", without_faults},
		{"several transfers at once, with cuts", with_cuts},
		{"several transfers at once, over sockets", on_soft},
		{NULL, NULL},
	};

	/* provoked errors are no news */
	if (!quiet_log("beside"))
		return 2;
	return harness_run(cases, argc, argv);
}
