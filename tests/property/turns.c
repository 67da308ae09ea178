/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/turns: transfers that are kept to a rate and to turns, at the source and at the
 * sink, with every engine, over both fabrics that need no device.
 *
 * Properties: no more crosses in a time than the rate allows; a turn ends within an eighth of it;
 * between turns nothing moves, however long; a pause is no time-out for the peer who is told.
 */
#include "../harness.h"
#include "pair.h"

#include "base/clock.h"
#include "base/log.h"
#include "fabric/loop/loop.h"
#include "fabric/select.h"
#include "transfer/transfer.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TURN (UINT64_C(1) << 20)
#define BLOCK 65536u

struct side {
	bool source;
	struct link *link;
	struct transfer_params params;
	struct transfer_stats stats;
	uint64_t bytes;
	unsigned paused; /* times that it was told so */
	enum verdict_scope outcome;
};

static void done(void *ctx, const struct outcome *o)
{
	(void)ctx, (void)o;
}

static void run_side(void *arg)
{
	struct side *s = arg;
	struct outgoing *out;
	struct incoming *in;

	if (s->source) {
		struct outgoing_params params = {.top = AT_FDCWD, .done = done};

		assert(!outgoing_new(&params, &out) && !outgoing_add_null(out, s->bytes));
		s->outcome = transfer_send(s->link, &s->params, outgoing_source(out), &s->stats);
		outgoing_free(out);
	} else {
		struct incoming_params params = {.kind = INCOMING_NULL,
			.top = AT_FDCWD,
			.path = "",
			.fd = -1,
			.replace = true,
			.done = done};

		assert(!incoming_new(&params, &in));
		s->outcome = transfer_receive(s->link, &s->params, incoming_sink(in), &s->stats);
		incoming_free(in);
	}
}

static void queued(void *ctx, const struct message_queued *m)
{
	struct side *s = ctx;

	s->paused += m->position > 0;
}

/* ---- who decides about turns ---- */

struct decider {
	struct bucket bucket;
	uint64_t turn_bytes, granted;
	int64_t overshoot; /* the most that was beyond what was granted */
	uint64_t crept;    /* moved while there was no turn */
	unsigned turns;
	uint64_t pause_ns;
	struct worker worker;
	_Atomic bool wanted, stop;
};

static uint64_t moved(struct decider *d)
{
	return atomic_load(&d->bucket.moved);
}

static void nap(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
			  .tv_nsec = (long)(ns % NS_PER_S)},
		NULL);
}

static void wants(void *ctx)
{
	((struct decider *)ctx)->wanted = true;
}

/* Lets it wait for each turn, and looks what it does meanwhile. */
static void decide(void *arg)
{
	struct decider *d = arg;

	while (!d->stop) {
		uint64_t before = moved(d);
		int64_t over = (int64_t)(before - d->granted);

		if (!d->wanted) {
			nap(200000);
			continue;
		}
		before = moved(d);
		over = (int64_t)(before - d->granted);
		d->overshoot = over > d->overshoot ? over : d->overshoot;
		if (d->pause_ns > NS_PER_S)
			bucket_tell(&d->bucket, 3, NS_PER_S);
		nap(d->pause_ns);
		d->crept += moved(d) - before;
		d->wanted = false;
		d->turns++;
		d->granted += d->turn_bytes;
		bucket_grant(&d->bucket, UINT64_C(1) << 30, (int64_t)d->turn_bytes);
	}
}

struct setup {
	bool soft, at_source;
	uint8_t engine;
	uint64_t bytes, rate, turn_bytes, pause_ns;
	int idle_timeout_ms;
};

struct result {
	struct side source, sink;
	struct decider decider;
	uint64_t took_ns;
};

static void run_one(const struct setup *setup, struct result *r)
{
	static const struct loop_faults none = {0};
	struct select_config plain = {0};
	struct fabric *fabric;
	struct pair pair;
	struct worker other = {0};
	struct decider *d = &r->decider;
	struct side *limited = setup->at_source ? &r->source : &r->sink;
	struct side *peer = setup->at_source ? &r->sink : &r->source;
	uint64_t started;
	const struct transfer_params params = {
		.block = BLOCK,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.engine = setup->engine,
		.cancel_fd = -1,
		.idle_timeout_ms = setup->idle_timeout_ms,
	};

	*r = (struct result){.source = {.source = true}};
	assert(!(setup->soft ? select_open("soft", &plain, &fabric) : loop_open(&none, &fabric)));
	assert(!pair_open(&pair, fabric, 2));
	assert(!bucket_init(&d->bucket, setup->rate, bucket_max_window(TURN)));
	r->source.link = pair.client;
	r->sink.link = pair.daemon;
	r->source.params = r->sink.params = params;
	r->source.bytes = setup->bytes;
	limited->params.bucket = &d->bucket;
	limited->params.window_max_bytes = bucket_max_window(TURN);
	peer->params.queued = queued;
	peer->params.progress_ctx = peer;
	if (setup->turn_bytes) {
		limited->params.queue_class = "bulk";
		d->turn_bytes = setup->turn_bytes;
		d->pause_ns = setup->pause_ns;
		d->bucket.left = 0;
		d->bucket.wants = wants;
		d->bucket.ctx = d;
		assert(!worker_start(&d->worker, "decider", decide, d));
	}
	started = clock_now_ns();
	assert(!worker_start(&other, "source", run_side, &r->source));
	run_side(&r->sink);
	worker_stop(&other);
	r->took_ns = clock_now_ns() - started;
	d->stop = true;
	if (setup->turn_bytes)
		worker_stop(&d->worker);
	bucket_fini(&d->bucket);
	pair_close(&pair);
}

static bool went_well(const struct result *r, uint64_t bytes)
{
	if (!r->source.outcome && !r->sink.outcome && r->sink.stats.bytes == bytes)
		return true;
	printf("# source %d (%s), sink %d (%s)\n", r->source.outcome, r->source.stats.verdict.text,
		r->sink.outcome, r->sink.stats.verdict.text);
	return false;
}

/* ---- cases ---- */

static void nobody_is_faster_than_his_rate(void)
{
	for (unsigned i = 0; i < 16; i++) {
		const struct setup setup = {
			.soft = i >= 8,
			.at_source = i & 1,
			.engine = (uint8_t)(MESSAGE_ENGINE_CREDIT + i / 2 % 4),
			.bytes = 4 << 20,
			.rate = 40 << 20,
		};
		struct result r;
		uint64_t least_ns;

		run_one(&setup, &r);
		CHECK(went_well(&r, setup.bytes));
		/* but for a burst and the last block */
		least_ns = (setup.bytes - bucket_max_window(TURN) - BLOCK) * NS_PER_S / setup.rate;
		if (r.took_ns < least_ns)
			printf("# engine %u at the %s: %" PRIu64 " us\n", setup.engine,
				setup.at_source ? "source" : "sink", r.took_ns / 1000);
		CHECK(r.took_ns >= least_ns);
	}
}

static void turns_end_within_an_eighth(void)
{
	for (unsigned i = 0; i < 16; i++) {
		const struct setup setup = {
			.soft = i >= 8,
			.at_source = i & 1,
			.engine = (uint8_t)(MESSAGE_ENGINE_CREDIT + i / 2 % 4),
			.bytes = (5 << 20) + 12345,
			.rate = UINT64_C(1) << 30,
			.turn_bytes = TURN,
			.pause_ns = 20 * NS_PER_MS,
		};
		struct result r;

		run_one(&setup, &r);
		CHECK(went_well(&r, setup.bytes));
		if (r.decider.overshoot > (int64_t)TURN / 8 || r.decider.crept)
			printf("# engine %u at the %s: %" PRId64 " bytes over, %" PRIu64
			       " between turns\n",
				setup.engine, setup.at_source ? "source" : "sink",
				r.decider.overshoot, r.decider.crept);
		CHECK(r.decider.overshoot <= (int64_t)TURN / 8);
		CHECK_EQ(r.decider.crept, 0);
		CHECK(r.decider.turns >= 4 && r.decider.turns <= 6);
		CHECK_EQ(moved(&r.decider), setup.bytes);
	}
}

struct parallel {
	struct setup setup;
	struct result result;
	struct worker worker;
};

static void run_parallel(void *arg)
{
	struct parallel *p = arg;

	run_one(&p->setup, &p->result);
}

/* Longer than a peer may be still that is told nothing. */
static void a_pause_is_no_timeout(void)
{
	static struct parallel p[2];

	for (unsigned i = 0; i < 2; i++) {
		p[i].setup = (struct setup){
			.at_source = i,
			.engine = MESSAGE_ENGINE_CREDIT,
			.bytes = TURN / 2,
			.rate = UINT64_C(1) << 30,
			.turn_bytes = TURN,
			.pause_ns = 3300 * NS_PER_MS,
			.idle_timeout_ms = 300,
		};
		CHECK(!worker_start(&p[i].worker, "pair", run_parallel, &p[i]));
	}
	for (unsigned i = 0; i < 2; i++)
		worker_stop(&p[i].worker);
	for (unsigned i = 0; i < 2; i++) {
		const struct side *peer =
			p[i].setup.at_source ? &p[i].result.sink : &p[i].result.source;

		CHECK(went_well(&p[i].result, p[i].setup.bytes));
		CHECK(peer->paused >= 1);
		CHECK(p[i].result.took_ns > 3000 * NS_PER_MS);
	}
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"nobody_is_faster_than_his_rate", nobody_is_faster_than_his_rate},
		{"turns_end_within_an_eighth", turns_end_within_an_eighth},
		{"a_pause_is_no_timeout", a_pause_is_no_timeout},
		{NULL, NULL},
	};

	log_setup("turns", getenv("RFTP_LOG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	return harness_run(cases, argc, argv);
}
