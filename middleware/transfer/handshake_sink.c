/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/handshake_sink: the sink's half of the handshake; see handshake.h.
 */
#include "transfer/handshake_impl.h"

#include "base/worker.h"

#include <errno.h>

#define JOB_THREADS 4u

/* The source offers; this side says no to what it cannot do. */
static int check_offer(struct run *run, const struct transfer_offer *offer)
{
	const struct transfer_params *p = run->params;
	const unsigned open = rail_channels(run->rail);

	if (open < offer->channels && rail_broke(run->rail, open))
		return run_fail(run, VERDICT_SESSION, STATUS_DISCONNECTED,
			"data channel %u broke, or the peer has closed it", open);
	if (offer->channels > open)
		return run_fail(run, VERDICT_TRANSFER, STATUS_INVALID,
			"%u channels offered, %u are open", offer->channels, open);
	if (p->max_block && offer->block > p->max_block)
		return run_fail(run, VERDICT_TRANSFER, STATUS_LIMIT,
			"blocks of %u bytes offered, %u is the limit", offer->block, p->max_block);
	if (offer->protect != p->protect)
		return run_fail(run, VERDICT_SESSION, STATUS_REFUSED,
			"blocks are offered with protection %u, %u was agreed on", offer->protect,
			p->protect);
	if (offer->protect && offer->notice == TRANSFER_NOTICE_GATHERED)
		return run_fail(run, VERDICT_TRANSFER, STATUS_INVALID,
			"gathered notices have no room for the seals of blocks");
	if (offer->depth < 2)
		return run_fail(run, VERDICT_TRANSFER, STATUS_INVALID, "a window of one block");
	return handshake_check_engine(run, offer->engine, offer->notice, offer->channels);
}

/* How many blocks there will be: what the source would like, within our own limits. */
static uint32_t choose_depth(const struct run *run, const struct transfer_offer *offer)
{
	uint64_t depth = offer->depth;

	if (run->params->depth && depth > run->params->depth)
		depth = run->params->depth;
	if (depth > handshake_depth_max(run))
		depth = handshake_depth_max(run);
	if (depth > handshake_window_max(run) / offer->block)
		depth = handshake_window_max(run) / offer->block;
	return depth < 2 ? 2 : (uint32_t)depth;
}

static int answer(struct run *run, const struct transfer_offer *offer, bool imm, bool bundles)
{
	struct transfer_accept accept = {
		.depth = pool_count(run->pool),
		.stride = pool_stride(offer->block),
		.flags = (imm ? TRANSFER_ACCEPT_IMM : 0) | (bundles ? TRANSFER_ACCEPT_BUNDLES : 0),
	};
	uint8_t data[64];

	if (run->sink->ops->access & FABRIC_REMOTE_WRITE) {
		accept.base = fabric_mr_base(run->memory->mr);
		accept.key = fabric_mr_key(run->memory->mr);
	}
	if (run->sink->status_mr) {
		accept.status_base = fabric_mr_base(run->sink->status_mr);
		accept.status_key = fabric_mr_key(run->sink->status_mr);
	}
	return run_put(run, TRANSFER_ACCEPT, data, transfer_put_accept(&accept, data, sizeof data));
}

static bool takes_imm(const struct run *run, const struct transfer_offer *offer)
{
	return (offer->flags & TRANSFER_OFFER_IMM) && offer->notice == TRANSFER_NOTICE_BEHIND &&
	       engine_by_id(offer->engine)->notices && handshake_caps(run)->has_imm;
}

/* Pool and engine for what is offered, or will be; and the answer. */
static int open_sink(struct run *run, const struct transfer_offer *offer, bool bundles)
{
	const struct engine_ops *ops = engine_by_id(offer->engine);
	const struct engine_sink_ops *half = engine_sink_half(ops, link_was_called(run->link));
	bool imm = takes_imm(run, offer);
	uint32_t depth = choose_depth(run, offer);
	struct engine_env env;
	int err = run_make_pool(run, depth, offer->block, half->access);

	if (err)
		return run_fail(run, VERDICT_TRANSFER, status_from_errno(err),
			"memory for %u blocks of %u bytes", depth, offer->block);
	env = handshake_make_env(run, offer->channels, offer->notice, imm);
	run_count_requests(run, offer->channels);
	err = half->open(&env, &run->sink);
	if (err)
		return err;
	run->engine = ops;
	run->common = &run->sink->common;
	return answer(run, offer, imm, bundles);
}

/* What was made for another offer goes; the source has not used it. */
static void close_sink(struct run *run)
{
	run_revoke(run);
	run->sink->ops->close(run->sink);
	run->sink = NULL;
	run->common = NULL;
	pool_free(run->pool);
	run->pool = NULL;
	memory_give(run->memory);
}

/* What the request asks for, as an offer: the answer to that leaves ahead of it. */
static int invite(struct run *run, bool bundles, struct transfer_offer *wanted)
{
	const struct transfer_params *p = run->params;
	int err;

	*wanted = (struct transfer_offer){
		.engine = p->engine,
		.notice = handshake_default_notice(p),
		.channels = p->channels,
		.block = p->block,
		.depth = p->depth,
		.protect = p->protect,
	};
	err = check_offer(run, wanted);
	if (err)
		return err;
	if (p->protect) /* its keys come with OFFER */
		run->prefix_bytes = SEAL_PREFIX_BYTES;
	err = open_sink(run, wanted, bundles);
	return err ? err : engine_sink_flush(run->sink);
}

bool handshake_matches(const struct transfer_offer *offer, const struct transfer_params *p)
{
	return offer->engine == p->engine && offer->notice == handshake_default_notice(p) &&
	       offer->channels == p->channels && offer->block == p->block &&
	       offer->depth == p->depth && offer->protect == p->protect;
}

/* Whether there is room for what is offered.  0 or a failure. */
static int ask_for_room(
	struct run *run, const struct transfer_sink *to, const struct transfer_offer *offer)
{
	const struct transfer_room room = {.bytes = offer->disk,
		.files = offer->files,
		.net = offer->flags & TRANSFER_OFFER_NET,
		.roots = offer->roots};
	char text[VERDICT_TEXT] = "";
	int err = to->room ? to->room(to->ctx, &room, text) : 0;

	return err ? run_fail(run, VERDICT_TRANSFER, status_from_errno(err), "%s", text) : 0;
}

int handshake_accept(
	struct run *run, const struct transfer_sink *to, bool *invited, uint32_t *block_bytes)
{
	const bool bundles = to->land;
	struct transfer_offer offer, wanted;
	struct message_header h;
	const uint8_t *data;
	int err = *invited ? invite(run, bundles, &wanted) : 0;

	if (!err)
		err = run_get_wait(run, &h, &data);
	if (err < 0)
		return err;
	if (h.type != TRANSFER_OFFER || transfer_get_offer(&offer, data, h.length))
		return run_fail(run, VERDICT_SESSION, STATUS_PROTOCOL,
			"no well-formed OFFER, but %s", message_name(h.type));
	err = check_offer(run, &offer);
	if (!err)
		err = ask_for_room(run, to, &offer);
	if (!err)
		err = handshake_take_keys(run, &offer);
	if (err)
		return err;
	if (*invited && !handshake_matches(&offer, run->params)) {
		close_sink(run);
		*invited = false;
	}
	if (!*invited)
		err = open_sink(run, &offer, bundles);
	if (!err)
		err = io_pool_new(
			&(struct io_pool_params){
				.workers = plan_workers(run->params->workers, worker_cpus()),
				.in_place = plan_in_place(
					run->params->workers, worker_cpus(), 0, false),
				.jobs = run->params->jobs ? run->params->jobs : JOB_THREADS,
				.blocks = pool_count(run->pool) +
					  (run->params->early ? TRANSFER_EARLY_MAX : 0),
				.seal = run->seal_key,
				.queued_jobs = HANDSHAKE_JOBS_MAX},
			&run->io_pool);
	if (err)
		return err;
	*block_bytes = offer.block;
	handshake_fill_stats(run, run->engine, &offer, pool_count(run->pool),
		!*invited && takes_imm(run, &offer));
	return 0;
}
