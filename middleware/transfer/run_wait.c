/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/run_wait: when a transfer's thread sleeps, what wakes it, and when a peer that is silent
 * or does not go on is given up.
 */
#include "transfer/run.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

/* a side that has nothing to say says PING so often, or more often if it is impatient itself */
#define KEEPALIVE_NS (5 * NS_PER_S)
#define KEEPALIVE_PART 4u       /* of its own idle time-out */
#define STILL_FACTOR 10u        /* a peer that lives may move nothing for so many idle time-outs */
#define SLOW_BYTES_PER_S 16384u /* the slowest way that is not taken for a broken one */
#define UNANSWERED_MS 100       /* whether it is too late for an answer is looked at so often */

static int fail_cancelled(struct run *run)
{
	const struct transfer_cancel *why = atomic_load(&run->params->cancel);

	if (why)
		return run_fail(run, VERDICT_TRANSFER, why->status, "%s", why->text);
	return run_fail(
		run, VERDICT_TRANSFER, STATUS_CANCELLED, "%s", status_text(STATUS_CANCELLED));
}

static bool cancelled(const struct run *run)
{
	struct pollfd fd = {run->params->cancel_fd, POLLIN, 0};

	return poll(&fd, 1, 0) > 0;
}

int run_get_wait(struct run *run, struct message_header *h, const uint8_t **data)
{
	uint64_t until_ns = clock_now_ns() + (uint64_t)run->idle_timeout_ms * NS_PER_MS;
	int err;

	for (;;) {
		struct demux_port *next = run->port;

		err = run_answered(run);
		if (err < 0)
			return err;
		if (!err) { /* the answer comes before all that is the transfer's */
			next = demux_dialogue(link_demux(run->link));
			until_ns = clock_now_ns() + (uint64_t)run->idle_timeout_ms * NS_PER_MS;
		}
		err = run_get(run, h, data);
		if (err)
			return err;
		if (!clock_until_ms(until_ns))
			return run_fail(run, VERDICT_SESSION, STATUS_TIMEOUT,
				"no answer from the peer for %d ms", run->idle_timeout_ms);
		if (cancelled(run))
			return fail_cancelled(run);
		err = demux_wait(next, run->unanswered ? UNANSWERED_MS : clock_until_ms(until_ns),
			run->params->cancel_fd);
		if (err == -ECANCELED)
			return fail_cancelled(run);
		if (err && err != -ETIMEDOUT)
			return err;
	}
}

/* ---- time ---- */

/* The peer is told where this side stands in the line for its next turn, so that it does not take
 * it for broken. */
static int tell_place(struct run *run)
{
	const struct transfer_params *p = run->params;
	uint8_t data[64];
	struct message_queued queued = {
		.position = atomic_load(&run->bucket->position),
		.wait_ns = atomic_load(&run->bucket->wait_ns),
		.share = atomic_load(&run->bucket->rate),
		.class = {(const uint8_t *)p->queue_class, strlen(p->queue_class)},
	};

	if (queued.position == run->told_position &&
		(!queued.position || queued.wait_ns == run->told_wait_ns))
		return 0;
	if (!queued.position)
		queued.wait_ns = 0;
	run->told_position = queued.position;
	run->told_wait_ns = queued.wait_ns;
	return run_put(run, TRANSFER_PAUSED, data, message_put_queued(&queued, data, sizeof data));
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How long the transfer may go without a move, waiting for `wait`; 0: for ever. */
static uint64_t still_max_ns(const struct run *run, enum run_wait wait)
{
	uint64_t idle = (uint64_t)run->idle_timeout_ms * NS_PER_MS, blocks;
	uint64_t stall = run->params->stall_timeout_ms
				 ? (uint64_t)run->params->stall_timeout_ms * NS_PER_MS
				 : UINT64_MAX;

	if (wait == RUN_WAIT_STREAM || run->params->patient)
		return 0;
	if (wait == RUN_WAIT_PEER)
		return sooner(STILL_FACTOR * idle, stall);
	/* nothing can be seen of a block before all of it is there */
	blocks = (uint64_t)run->stats->channels * run->stats->block * NS_PER_S / SLOW_BYTES_PER_S;
	return sooner(sooner(idle + blocks, STILL_FACTOR * idle), stall);
}

/* Whether it moves.  0 or a failure. */
static int check_moves(struct run *run, uint64_t now)
{
	enum run_wait wait = run->waits ? run->waits(run) : RUN_WAIT_PEER;
	uint64_t most;

	if (run->paused || run->held_back || run->unanswered) /* it may stand in line */
		wait = RUN_WAIT_OURS;
	most = still_max_ns(run, wait);
	if (run->moved || wait == RUN_WAIT_OURS)
		run->moved_ns = now;
	run->moved = false;
	run->stats->moved_ns = run->moved_ns;
	if (!most || now - run->moved_ns <= most)
		return 0;
	return run_fail(run, VERDICT_SESSION, STATUS_TIMEOUT,
		"nothing moved for %" PRIu64 " ms: %s",
		(uint64_t)((now - run->moved_ns) / NS_PER_MS),
		wait == RUN_WAIT_BLOCKS ? "blocks that were sent have not come"
					: "the peer answers, but does not go on");
}

static uint64_t keepalive_ns(const struct run *run)
{
	uint64_t part = (uint64_t)run->idle_timeout_ms * NS_PER_MS / KEEPALIVE_PART;

	return part < KEEPALIVE_NS ? part : KEEPALIVE_NS;
}

int run_tick(struct run *run)
{
	struct demux *demux = link_demux(run->link);
	uint64_t now = clock_now_ns();
	uint8_t cookie[8];
	struct message_ping ping = {0};

	if (run->heard) {
		run->heard = false;
		run->heard_ns = now;
	}
	if (demux_heard_ns(demux) > run->heard_ns) /* another transfer's, or a keep-alive */
		run->heard_ns = demux_heard_ns(demux);
	if (now >= run->report_ns) {
		int err = check_moves(run, now);

		run_report(run, now);
		if (cancelled(run))
			return fail_cancelled(run);
		if (!err && run->bucket && run->params->queue_class)
			err = tell_place(run);
		if (err)
			return err;
	}
	if (now > run->heard_ns + (uint64_t)run->idle_timeout_ms * NS_PER_MS)
		return run_fail(run, VERDICT_SESSION, STATUS_TIMEOUT,
			"nothing heard from the peer for %d ms", run->idle_timeout_ms);
	if (now - run->told_ns <= keepalive_ns(run))
		return 0;
	if (demux_pending_bytes(demux)) {
		/* nor would it take a PING */
		run->told_ns = now;
		demux_probe(demux);
		return 0;
	}
	return run_put(run, MESSAGE_PING, cookie, message_put_ping(&ping, cookie, sizeof cookie));
}

/* ---- sleep ---- */

/* Sleeps until one is readable, run_tick has work, or `most_ns` is over.  0 or -errno. */
static int sleep_on(struct run *run, struct pollfd *fds, unsigned count, int64_t most_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t until = run->report_ns, ns;
	struct timespec ts;

	if (run->held_back && run->held_until_ns < until)
		until = run->held_until_ns;
	if (run->wake_ns && run->wake_ns < until)
		until = run->wake_ns;
	ns = until > now ? until - now : 0;
	if (most_ns >= 0 && (uint64_t)most_ns < ns)
		ns = (uint64_t)most_ns;
	ts = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
	return ppoll(fds, count, &ts, NULL) < 0 && errno != EINTR ? -errno : 0;
}

/* Looks again and again, for a moment.  Whether there was work, or -errno. */
static int spin(struct run *run, int (*again)(struct run *))
{
	uint32_t budget = run->rail->caps->spin_ns;
	uint64_t end = budget ? clock_now_ns() + budget : 0;
	int err = 0;

	while (!err && budget && clock_now_ns() < end)
		err = again(run);
	return err;
}

int run_wait(struct run *run, int (*again)(struct run *))
{
	struct demux_port *dialogue = demux_dialogue(link_demux(run->link));
	struct pollfd fds[8] = {
		{run->params->cancel_fd, POLLIN, 0},
		{demux_control_fd(link_demux(run->link)), POLLIN, 0},
		{fabric_cq_fd(run->rail->cq), POLLIN, 0},
		{io_pool_fd(run->io_pool), POLLIN, 0},
		{link_event_fd(run->link), POLLIN, 0},
		{run->bucket ? run->bucket->wakeup.fd : -1, POLLIN, 0},
		{demux_port_fd(run->port), POLLIN, 0},
		{run->unanswered ? demux_port_fd(dialogue) : -1, POLLIN, 0},
	};
	uint64_t longer = run->source ? engine_source_moderation_ns(run->source) : 0;
	int err;

	if (longer) {
		err = sleep_on(run, fds, 1, (int64_t)longer);
		return err >= 0 && fds[0].revents ? fail_cancelled(run) : err;
	}
	if (run->common && !engine_sleep_ns(run->common))
		return 0;
	err = spin(run, again);
	if (err)
		return err < 0 ? err : 0;
	io_pool_arm(run->io_pool);
	if (run->bucket)
		wakeup_arm(&run->bucket->wakeup);
	err = demux_arm(run->port);
	if (err >= 0 && run->unanswered)
		err = demux_arm(dialogue);
	if (err >= 0)
		err = fabric_cq_arm(run->rail->cq);
	if (!err)
		err = again(run);
	if (!err) {
		/* the engine is asked again: `again` may have taken in what it was waiting for */
		err = sleep_on(run, fds, 8, run->common ? engine_sleep_ns(run->common) : -1);
		/* the channels' state is in their channels then; the control channel tells of its
		 * own end itself */
		if (fds[4].revents)
			link_check_events(run->link);
	}
	io_pool_disarm(run->io_pool);
	if (run->bucket)
		wakeup_disarm(&run->bucket->wakeup);
	if (err >= 0 && fds[0].revents)
		return fail_cancelled(run);
	return err < 0 ? err : 0;
}
