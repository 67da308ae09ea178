/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/handshake: what both sides do, and the source's half; see handshake.h.
 */
#include "transfer/handshake_impl.h"

#include "base/clock.h"
#include "base/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define GREET_TIMEOUT_MS 10000
#define FEED_FLUSH_MS 200u
#define REREAD_THREADS 2u

const struct fabric_caps *handshake_caps(const struct run *run)
{
	return run->rail->caps;
}

uint64_t handshake_window_max(const struct run *run)
{
	return run->params->window_max_bytes ? run->params->window_max_bytes : TRANSFER_WINDOW_MAX;
}

uint32_t handshake_depth_max(const struct run *run)
{
	uint32_t most = link_max_depth(run->link);

	return run->params->max_depth && run->params->max_depth < most ? run->params->max_depth
								       : most;
}

/* What has to be true of an engine on either side.  0 or a failure. */
int handshake_check_engine(struct run *run, uint8_t number, uint8_t notice, unsigned channels)
{
	const struct engine_ops *ops = engine_by_id(number);
	const char *lacks = NULL;

	if (!ops || (run->params->engines && !(run->params->engines & 1u << number)))
		return run_fail(run, VERDICT_TRANSFER, STATUS_UNSUPPORTED,
			"engine %u%s%s is not one that both sides have", number, ops ? ", " : "",
			ops ? ops->name : "");
	for (unsigned i = 0; i < channels && !lacks; i++)
		lacks = engine_lacks(ops, fabric_chan_caps(run->rail->channels[i]->chan));
	if (lacks)
		return run_fail(run, VERDICT_TRANSFER, STATUS_UNSUPPORTED,
			"the engine %s needs %s, and %s has not", ops->name, lacks,
			run->stats->fabric);
	if (notice == TRANSFER_NOTICE_BEHIND)
		return 0;
	if (ops->id != MESSAGE_ENGINE_CREDIT)
		return run_fail(run, VERDICT_TRANSFER, STATUS_UNSUPPORTED,
			"the engine %s has no notices of kind %u", ops->name, notice);
	return 0;
}

struct engine_env handshake_make_env(struct run *run, unsigned channels, uint8_t notice, bool imm)
{
	return (struct engine_env){
		.pool = run->pool,
		.pd = run->rail->pd,
		.mr = run->memory->mr,
		.cq = run->rail->cq,
		.channels = run->rail->channels,
		.channel_count = channels,
		.notice = notice,
		.imm = imm,
		.seal_bytes = run->prefix_bytes - BLOCK_PREFIX_BYTES,
		.verdict = &run->verdict,
		.put = run_engine_put,
		.put_ctx = run,
	};
}

/* From now on blocks are sealed, with keys that only the two ends of the session know. */
int handshake_take_keys(struct run *run, const struct transfer_offer *offer)
{
	uint8_t secret[SEAL_SECRET_BYTES];
	int err;

	if (offer->protect == MESSAGE_PROTECT_CLEAR)
		return 0;
	err = demux_export(link_demux(run->link), TRANSFER_SECRET_LABEL, offer->salt,
		sizeof offer->salt, secret, sizeof secret);
	if (!err)
		err = seal_key_new(
			offer->protect == MESSAGE_PROTECT_PRIVATE ? SEAL_PRIVATE : SEAL_SAFE,
			secret, &run->seal_key);
	explicit_bzero(secret, sizeof secret);
	if (!err)
		err = seal_new(run->seal_key, &run->seal);
	if (err)
		return run_fail(run, VERDICT_TRANSFER, status_from_errno(err),
			"the keys that protect blocks could not be made");
	run->prefix_bytes = SEAL_PREFIX_BYTES;
	return 0;
}

void handshake_fill_stats(struct run *run, const struct engine_ops *ops,
	const struct transfer_offer *offer, uint32_t depth, bool imm)
{
	struct transfer_stats *stats = run->stats;

	stats->total_bytes = offer->bytes;
	stats->total_files = offer->files;
	stats->engine = ops->name;
	stats->channels = offer->channels;
	stats->depth = depth;
	stats->notice = offer->notice;
	stats->imm = imm;
	stats->protect = offer->protect;
	stats->block = offer->block;
}

/* ---- source ---- */

/* The half of the engine that this side has as a source. */
static const struct engine_source_ops *source_half(
	const struct run *run, const struct handshake *hs)
{
	return engine_source_half(engine_by_id(hs->offer.engine), link_was_called(run->link));
}

static int plan_transfer(struct run *run, const struct transfer_source *from, struct handshake *hs)
{
	const struct transfer_params *p = run->params;
	struct plan_facts *facts = &hs->facts;

	*facts = (struct plan_facts){
		.block = hs->wishes ? p->block : 0,
		.depth = hs->wishes ? p->depth : 0,
		.channels = p->channels,
		.workers = p->workers,
		.max_block = p->max_block ? p->max_block : BLOCK_BYTES_MAX,
		.max_depth = handshake_depth_max(run),
		.open_channels = (uint16_t)link_channel_count(run->link, run->params->transfer),
		.window_max_bytes = handshake_window_max(run),
		.largest_bytes = from->largest_bytes,
		.total_bytes = from->total_bytes,
		.streams = from->feed ? from->feed->streams : 0,
		.rtt_ns = p->rtt_ns,
		.early_bytes = p->early_bytes,
		.cpus = worker_cpus(),
		.delivered =
			handshake_caps(run)->write_delivered || source_half(run, hs)->is_fetched,
	};

	if (!facts->open_channels)
		return run_fail(
			run, VERDICT_SESSION, STATUS_DISCONNECTED, "no data channel is open");
	plan_make(facts, hs->plan);
	return 0;
}

/* As many as the daemon has lent it. */
static unsigned reread_threads(const struct run *run)
{
	unsigned most = run->params->jobs;

	return most && most < REREAD_THREADS ? most : REREAD_THREADS;
}

static int make_io_pool(struct run *run, const struct transfer_source *source,
	const struct engine_source_ops *half, const struct plan *plan)
{
	const bool posts = handshake_caps(run)->is_device && !half->is_fetched;
	const struct transfer_feed *from = source->feed;
	struct io_pool_feed feed;
	struct io_pool_params params = {
		.reading = true,
		.workers = plan->workers,
		.squeeze = run->params->squeeze,
		/* to compress takes long: other threads do it */
		.in_place = !run->params->squeeze &&
			    plan_in_place(run->params->workers, worker_cpus(),
				    posts ? plan->block : 0, handshake_caps(run)->write_delivered),
		.blocks = pool_count(run->pool),
		.seal = run->seal_key,
		.jobs = source->reread || source->check ? reread_threads(run) : 0,
		.jobs_rare = !source->reread,
		.queued_jobs = TRANSFER_OPEN_MAX,
	};

	if (from) {
		feed = (struct io_pool_feed){
			.streams = from->streams,
			.flush_ns = (from->flush_ms ? from->flush_ms : FEED_FLUSH_MS) * NS_PER_MS,
			.stop_fd = from->stop_fd,
			.tell_hungry = from->drop_oldest,
		};
		params.feed = &feed;
	}
	return io_pool_new(&params, &run->io_pool);
}

static int wait_greeted(struct run *run, unsigned channels)
{
	int err = rail_wait_greeted(run->rail, channels, GREET_TIMEOUT_MS, run->params->cancel_fd);

	if (!err)
		return 0;
	return run_fail(run, err == -ECANCELED ? VERDICT_TRANSFER : VERDICT_SESSION,
		status_from_errno(err), "a data channel's greeting did not come");
}

/* Seals cross with their blocks, for which a gathered notice has no room. */
uint8_t handshake_default_notice(const struct transfer_params *p)
{
	bool credit = !p->engine || p->engine == MESSAGE_ENGINE_CREDIT;

	return credit && !p->protect ? TRANSFER_NOTICE_GATHERED : TRANSFER_NOTICE_BEHIND;
}

int handshake_offer(struct run *run, const struct transfer_source *from, struct handshake *hs)
{
	const struct transfer_params *p = run->params;
	const struct engine_ops *ops = engine_by_id(p->engine ? p->engine : MESSAGE_ENGINE_CREDIT);
	struct transfer_offer *offer = &hs->offer;
	uint8_t out[TRANSFER_OFFER_MAX];
	int err;

	*offer = (struct transfer_offer){
		.engine = p->engine ? p->engine : MESSAGE_ENGINE_CREDIT,
		.notice = p->notice ? p->notice : handshake_default_notice(p),
		.files = from->total_files,
		.bytes = from->total_bytes,
		.protect = p->protect,
		.disk = from->room.bytes,
		.roots = from->room.roots,
	};
	if (getrandom(offer->salt, sizeof offer->salt, 0) != sizeof offer->salt)
		return -EIO;
	hs->wishes = !p->early || p->answered || from->total_bytes <= (uint64_t)p->block * p->depth;
	err = plan_transfer(run, from, hs);
	if (!err)
		err = handshake_check_engine(run, offer->engine, offer->notice, hs->plan->channels);
	if (err)
		return err;
	if (ops->notices && offer->notice == TRANSFER_NOTICE_BEHIND && handshake_caps(run)->has_imm)
		offer->flags |= TRANSFER_OFFER_IMM;
	if (from->room.net)
		offer->flags |= TRANSFER_OFFER_NET;
	offer->channels = hs->plan->channels;
	offer->block = hs->plan->block;
	offer->depth = hs->plan->depth;
	hs->invited = p->early && !p->answered && handshake_matches(offer, p);
	err = run_put(run, TRANSFER_OFFER, out, transfer_put_offer(offer, out, sizeof out));
	return err ? err : handshake_take_keys(run, offer);
}

int handshake_prepare(
	struct run *run, const struct transfer_source *from, struct handshake *hs, uint32_t depth)
{
	const struct engine_source_ops *half = source_half(run, hs);
	struct plan *plan = hs->plan;
	int err;

	plan->source_blocks = plan_source_blocks(&hs->facts, plan->block, depth);
	if (half->is_fetched && plan->source_blocks > depth) /* each is a slot of the sink's */
		plan->source_blocks = depth;
	err = run_make_pool(run, plan->source_blocks, plan->block, half->access);
	if (err)
		return run_fail(run, VERDICT_TRANSFER, status_from_errno(err),
			"memory for %u blocks of %u bytes", plan->source_blocks, plan->block);
	run_count_requests(run, plan->channels);
	return make_io_pool(run, from, half, plan);
}

struct engine_env handshake_env(struct run *run, const struct handshake *hs)
{
	return handshake_make_env(run, hs->plan->channels, hs->offer.notice, false);
}

static bool accept_ok(const struct transfer_offer *offer, const struct engine_source_ops *half,
	const struct transfer_accept *accept)
{
	return accept->depth <= offer->depth && accept->stride == pool_stride(offer->block) &&
	       (!(accept->flags & TRANSFER_ACCEPT_IMM) || offer->flags & TRANSFER_OFFER_IMM) &&
	       (half->wants_status || (!accept->status_base && !accept->status_key));
}

int handshake_take_accept(struct run *run, const struct transfer_source *from, struct handshake *hs,
	const struct message_header *h, const uint8_t *data, bool *bundles)
{
	const struct engine_ops *ops = engine_by_id(hs->offer.engine);
	const struct engine_source_ops *half = source_half(run, hs);
	struct transfer_accept accept;
	struct engine_env env;
	int err;

	if (h->type != TRANSFER_ACCEPT || transfer_get_accept(&accept, data, h->length) ||
		!accept_ok(&hs->offer, half, &accept))
		return run_fail(run, VERDICT_SESSION, STATUS_PROTOCOL,
			"the sink answered OFFER with a bad %s", message_name(h->type));
	*bundles = accept.flags & TRANSFER_ACCEPT_BUNDLES;
	err = wait_greeted(run, hs->plan->channels); /* they came while the sink got ready */
	if (!err && !run->pool)
		err = handshake_prepare(run, from, hs, accept.depth);
	if (err)
		return err;
	env = handshake_env(run, hs);
	env.imm = accept.flags & TRANSFER_ACCEPT_IMM;
	env.sender = run->sender;
	env.remote_depth = accept.depth;
	env.remote_stride = accept.stride;
	env.remote_key = accept.key;
	env.remote_base = accept.base;
	env.remote_status_base = accept.status_base;
	env.remote_status_key = accept.status_key;
	run->sender = NULL; /* it is the engine's */
	err = half->open(&env, &run->source);
	if (!err) {
		run->engine = ops;
		run->common = &run->source->common;
	}
	handshake_fill_stats(run, ops, &hs->offer, accept.depth, env.imm);
	return err;
}
