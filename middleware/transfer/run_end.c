/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/run_end: how a transfer ends: in step with the peer, and with nobody left who could
 * reach its memory.
 */
#include "transfer/run.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define ABORT_TIMEOUT_MS 10000 /* the peer answers ABORT within this, or the session is lost */
#define ABORT_GRACE_MS 1000    /* an ABORT may come so much later than its end of a channel */

uint16_t run_cut_status(const struct run *run)
{
	return run->verdict.status ? run->verdict.status : STATUS_DISCONNECTED;
}

/* An -errno that nobody has judged: of the channels, or of the memory. */
static void judge(struct run *run, int error)
{
	switch (error) {
	case -ENOTCONN:
	case -ECONNRESET:
	case -ETIMEDOUT:
	case -EBADMSG:
	case -EPIPE:
	case -ENOBUFS:
		verdict_set(&run->verdict, VERDICT_SESSION, status_from_errno(error), "%s", "");
		break;
	default:
		verdict_set(&run->verdict, VERDICT_TRANSFER, status_from_errno(error), "%s", "");
	}
}

/* Reads on until the peer's ABORT has come and ours has left: then no frame of this transfer is to
 * come.  0, or -errno: the session is lost. */
static int await_abort(struct run *run, uint64_t timeout_ms)
{
	uint64_t deadline = clock_now_ns() + timeout_ms * NS_PER_MS;

	for (;;) {
		struct message_header h;
		const uint8_t *frame;
		int err = 0;

		while (!run->peer_aborted && clock_until_ms(deadline) &&
			(err = run_get(run, &h, &frame)) == 1)
			;
		if (err < 0 && !run->peer_aborted)
			return err;
		if (run->peer_aborted)
			return demux_flush(run->port, clock_until_ms(deadline));
		err = clock_until_ms(deadline) ? demux_wait(run->port, clock_until_ms(deadline), -1)
					       : -ETIMEDOUT;
		if (err)
			return err;
	}
}

static int send_abort(struct run *run)
{
	uint8_t data[VERDICT_TEXT + 8];
	struct transfer_abort abort = {
		.status = run->verdict.status,
		.text = {(const uint8_t *)run->verdict.text, strlen(run->verdict.text)},
	};

	return run_put(run, TRANSFER_ABORT, data, transfer_put_abort(&abort, data, sizeof data));
}

/*
 * A data channel broke, and ABORT was sent.  A peer that gives the transfer up closes them, too,
 * right behind its ABORT, which comes another way: what that says is the reason then, and the
 * session goes on.
 */
static void learn_why(struct run *run)
{
	const struct verdict broken = run->verdict;
	int err;

	verdict_clear(&run->verdict);
	err = await_abort(run, ABORT_GRACE_MS);
	if (!run->peer_aborted || run->verdict.status == STATUS_DISCONNECTED) {
		run->verdict = broken;
		run->told = false;
	} else if (err) { /* it has gone as well, behind what it said */
		verdict_set(&run->verdict, VERDICT_SESSION, STATUS_DISCONNECTED, "%s", "");
	}
}

/* Nobody reaches the memory any more, on this side or the other. */
static void give_back(struct run *run)
{
	if (run->memory)
		run_revoke(run);
	if (run->source)
		run->source->ops->close(run->source);
	else
		sender_free(run->sender);
	if (run->sink)
		run->sink->ops->close(run->sink);
	run->source = NULL;
	run->sender = NULL;
	run->sink = NULL;
	run->common = NULL;
	pool_free(run->pool);
	run->pool = NULL;
}

static void hear_abort(struct run *run)
{
	if (await_abort(run, ABORT_TIMEOUT_MS))
		verdict_set(&run->verdict, VERDICT_SESSION, STATUS_DISCONNECTED, "%s", "");
}

/* All that others may need goes before the peer's answer is waited for, which may not come. */
static void end_early(struct run *run, int error)
{
	bool told, cancelled;

	judge(run, error);
	cancelled = run->verdict.status == STATUS_CANCELLED && !run->peer_aborted;
	told = run->port && !send_abort(run);
	/* who gives a transfer up closes its data channels right behind the ABORT: that these have
	 * ended by now is no failure of the session, where others go on */
	if (told && run->told && run->verdict.scope == VERDICT_SESSION)
		run->verdict.scope = VERDICT_TRANSFER;
	/* what is in flight would land in memory that is gone: no channel, no landing */
	link_close_channels(run->link, run->params->transfer);
	give_back(run);
	if (run->memory)
		memory_free(run->memory);
	if (told && !run->peer_aborted && run->verdict.scope == VERDICT_SESSION &&
		run->verdict.status == STATUS_DISCONNECTED)
		learn_why(run);
	else if (told && run->unanswered && run->verdict.scope < VERDICT_SESSION)
		hear_abort(run);
	/* a refusal may have been overtaken by what it does, the end of the data channels: it came
	 * before the peer's ABORT, and files are not told of anything else; but of a transfer that
	 * this side gave up it may be for that very end */
	if (run->unanswered && !cancelled)
		run_answered(run);
	run->drop_files(run);
	if (run->params->released)
		run->params->released(run->params->progress_ctx);
	if (told && run->verdict.scope < VERDICT_SESSION)
		hear_abort(run);
}

enum verdict_scope run_end(struct run *run, int error)
{
	struct transfer_stats *stats = run->stats;

	if (run->port) /* the last word, too */
		demux_push(link_demux(run->link));
	io_pool_free(run->io_pool);
	seal_free(run->seal);
	seal_key_free(run->seal_key);
	if (run->source)
		run->source->ops->stop(run->source);
	else if (run->sender)
		sender_drain(run->sender, run->rail->cq);
	/* nobody else touches blocks or channels from here on */
	run_sum_requests(run);
	if (error) {
		end_early(run, error);
	} else {
		give_back(run);
		memory_give(run->memory); /* for the next transfer of the session */
		run->drop_files(run);
	}
	if (!error) /* the sink has said so of all */
		stats->verified_bytes = stats->bytes;
	demux_close(run->port);
	stats->verdict = run->verdict;
	stats->told = run->told;
	run_report(run, clock_now_ns());
	return error ? run->verdict.scope : stats->errors ? VERDICT_FILE : VERDICT_NONE;
}

int transfer_error(enum verdict_scope scope, const struct transfer_stats *stats)
{
	if (scope <= VERDICT_FILE)
		return scope ? -EREMOTEIO : 0;
	return stats->verdict.status == STATUS_OTHER ? -EIO
						     : status_to_errno(stats->verdict.status);
}
