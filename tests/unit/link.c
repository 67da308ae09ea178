/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/link: the channels of one session, while some of them take their time to go.
 */
#include "../harness.h"
#include "../property/pair.h"
#include "../quiet.h"

#include "fabric/loop/loop.h"

#include <pthread.h>

#define CHANNELS 4u
#define GATE_S 60 /* until a test that would wait for ever fails instead */

/* Holds the first that frees a channel after the gate was shut, until it is opened. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut, held, expired;
};

/* Whether *flag became `wanted` in time.  The lock is held. */
static bool gate_await(struct gate *g, const bool *flag, bool wanted)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GATE_S;
	while (*flag != wanted)
		if (pthread_cond_timedwait(&g->changed, &g->lock, &until))
			return *flag == wanted;
	return true;
}

static void gate_pass(void *ctx)
{
	struct gate *g = ctx;

	pthread_mutex_lock(&g->lock);
	if (g->shut && !g->held) {
		g->held = true;
		pthread_cond_broadcast(&g->changed);
		g->expired = !gate_await(g, &g->shut, false);
	}
	pthread_mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->shut = false;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void close_channels(void *link)
{
	link_close_channels(link, 0);
}

/*
 * A transfer ends, and its channels take their time to go: another one of the session gets its
 * channels meanwhile, whose requests, greetings and events the same link takes.
 */
static void others_go_on_while_channels_are_freed(void)
{
	struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct loop_faults faults = {
		.seed = harness_seed(), .freeing = gate_pass, .freeing_ctx = &gate};
	struct worker closer = {0};
	struct fabric *fabric;
	struct pair pair;
	bool began;
	int r;

	CHECK_EQ(loop_open(&faults, &fabric), 0);
	CHECK_EQ(pair_open(&pair, fabric, CHANNELS), 0);
	pthread_mutex_lock(&gate.lock);
	gate.shut = true;
	CHECK_EQ(worker_start(&closer, "closer", close_channels, pair.daemon), 0);
	began = gate_await(&gate, &gate.held, true);
	pthread_mutex_unlock(&gate.lock);
	CHECK(began);

	r = pair_open_more(&pair, 1, CHANNELS);
	gate_open(&gate);
	worker_stop(&closer);
	CHECK(!gate.expired); /* else it had waited for who frees */
	CHECK_EQ(r, 0);
	CHECK_EQ(link_channel_count(pair.daemon, 0), 0);
	CHECK_EQ(link_channel_count(pair.daemon, 1), CHANNELS);
	CHECK_EQ(link_channel_count(pair.client, 1), CHANNELS);
	pair_close(&pair);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"others go on while channels are freed", others_go_on_while_channels_are_freed},
		{NULL, NULL},
	};

	if (!quiet_log("link"))
		return 2;
	return harness_run(cases, argc, argv);
}
