/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/run: what the loops of source and sink share, but for waiting (run_wait.c) and the end
 * (run_end.c): see run.h.
 */
#include "transfer/run.h"

#include "base/clock.h"
#include "base/limit.h"
#include "base/log.h"
#include "base/spare.h"
#include "transfer/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define IDLE_TIMEOUT_MS 60000
#define PROGRESS_NS (NS_PER_S / 10)
#define BLOCKS_MIN 2u

int run_init(struct run *run, struct link *link, const struct transfer_params *params,
	struct transfer_stats *stats)
{
	int err;

	*run = (struct run){
		.link = link,
		.rail = link_rail(link, params->transfer),
		.prefix_bytes = BLOCK_PREFIX_BYTES,
		.params = params,
		.stats = stats,
		.bucket = params->bucket,
		.unanswered = params->answered != NULL,
		.idle_timeout_ms =
			params->idle_timeout_ms ? params->idle_timeout_ms : IDLE_TIMEOUT_MS,
	};
	run->heard_ns = run->told_ns = run->report_ns = run->moved_ns = clock_now_ns();
	memset(stats, 0, sizeof *stats);
	stats->moved_ns = run->moved_ns;
	stats->total_bytes = stats->total_files = MESSAGE_UNKNOWN;
	stats->fabric = link_fabric_name(link);
	stats->started_ns = stats->ended_ns = clock_now_ns();
	err = demux_open(link_demux(link), params->transfer, &run->port);
	if (err)
		return err;
	if (!run->rail)
		return run_fail(
			run, VERDICT_SESSION, STATUS_DISCONNECTED, "no data channel is open");
	run->memory = &run->rail->memory;
	return 0;
}

struct transfer_complete run_sums(const struct run *run)
{
	return (struct transfer_complete){
		.files = run->stats->files,
		.bytes = run->arrived_bytes,
		.errors = run->stats->errors,
	};
}

int run_put(struct run *run, uint16_t type, const void *data, ssize_t len)
{
	if (len < 0)
		return (int)len;
	run->told_ns = clock_now_ns();
	return demux_put(run->port, type, 0, data, (size_t)len);
}

int run_engine_put(void *run, uint16_t type, const void *data, size_t len)
{
	((struct run *)run)->stats->requests.frames++;
	return run_put(run, type, data, (ssize_t)len);
}

static int take_abort(struct run *run, const uint8_t *data, size_t len)
{
	struct transfer_abort abort;

	if (transfer_get_abort(&abort, data, len))
		return -EBADMSG;
	run->peer_aborted = true;
	run->told |= !run->verdict.status;
	return run_fail(run, VERDICT_TRANSFER, abort.status ? abort.status : STATUS_OTHER, "%.*s",
		(int)abort.text.len, (const char *)abort.text.data);
}

/* The peer's turn is over, and it waits for another one; or goes on. */
static int take_paused(struct run *run, const uint8_t *data, size_t len)
{
	struct message_queued queued;

	if (!run->params->queued || message_get_queued(&queued, data, len))
		return -EBADMSG;
	run->paused = queued.position;
	run->params->queued(run->params->progress_ctx, &queued);
	return 0;
}

int run_get(struct run *run, struct message_header *h, const uint8_t **data)
{
	for (;;) {
		int err = demux_get(run->port, h, data);

		if (err <= 0)
			return err;
		run->heard = true;
		if (h->type == TRANSFER_ABORT)
			return take_abort(run, *data, h->length);
		if (h->type != TRANSFER_PAUSED)
			return 1;
		err = take_paused(run, *data, h->length);
		if (err)
			return err;
	}
}

int run_answered(struct run *run)
{
	int err;

	if (!run->unanswered)
		return 1;
	err = run->params->answered(run->params->progress_ctx);
	if (err == -EREMOTEIO)
		return run_fail(run, VERDICT_TRANSFER, STATUS_REFUSED, "%s", "");
	if (err < 0)
		return -ENOTCONN;
	run->unanswered = !err;
	run->moved |= err;
	return err;
}

/* What the host cannot spare would be taken from others: pages that cannot be had end a process,
 * and not necessarily this one. */
static uint32_t affordable(uint32_t blocks, uint32_t block_bytes)
{
	uint64_t wanted = (uint64_t)blocks * block_bytes, spare, share;
	uint32_t few;

	if (wanted == plan_share(wanted, 0))
		return blocks;
	spare = spare_memory_bytes("");
	share = plan_share(wanted, spare);
	if (share == wanted)
		return blocks;
	few = share / block_bytes < BLOCKS_MIN ? BLOCKS_MIN : (uint32_t)(share / block_bytes);
	log_info("only %" PRIu64
		 " MiB of memory are available: using %u blocks of %u bytes rather than %u, which "
		 "may slow a long link down",
		spare >> 20, few, block_bytes, blocks);
	return few;
}

int run_make_pool(struct run *run, uint32_t blocks, uint32_t block_bytes, unsigned access)
{
	uint32_t wanted;
	int err = -ENOMEM;

	wanted = blocks = affordable(blocks, block_bytes);
	for (; blocks >= BLOCKS_MIN; blocks /= 2) {
		uint8_t *base;

		err = memory_take(
			run->memory, run->rail->pd, pool_bytes(blocks, block_bytes), access, &base);
		if (!err) {
			err = pool_new(base, blocks, block_bytes, &run->pool);
			break;
		}
		if (err != -ENOMEM)
			return err;
	}
	if (!err && blocks < wanted)
		log_warning("memory for %u blocks of %u bytes could not be had or locked: using "
			    "%u, which may "
			    "slow a long link down (raise the limit: ulimit -l unlimited)",
			wanted, block_bytes, blocks);
	return err;
}

unsigned run_open_files(const struct run *run)
{
	return plan_open_files(
		run->params->open_files, run->params->open_files ? 0 : limit_free_files());
}

int run_poll(struct run *run, struct block **done, unsigned max)
{
	int n = run->source   ? run->source->ops->poll(run->source, done, max)
		: run->sink   ? run->sink->ops->poll(run->sink, done, max)
		: run->sender ? sender_poll(run->sender, run->rail->cq, done, max)
			      : 0;

	if (n > 0)
		run->heard = run->moved = true;
	return n;
}

void run_count_requests(struct run *run, unsigned channels)
{
	run->channels = channels;
	for (unsigned i = 0; i < channels; i++)
		channel_reset_counts(run->rail->channels[i]);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

void run_sum_requests(struct run *run)
{
	struct transfer_requests *sum = &run->stats->requests;

	for (unsigned i = 0; i < run->channels; i++) {
		const struct channel_counts *n = &run->rail->channels[i]->counts;

		sum->writes += n->writes;
		sum->sends += n->sends;
		sum->reads += n->reads;
		sum->signalled += n->signalled;
		sum->receives += n->receives;
		sum->send_queue = larger(sum->send_queue, n->send_queue);
		sum->receive_queue = larger(sum->receive_queue, n->receive_queue);
	}
	run->channels = 0;
}

void run_revoke(struct run *run)
{
	if (run->sink)
		engine_sink_revoke(run->sink);
	memory_revoke(run->memory);
}

bool run_may_move(struct run *run)
{
	uint64_t now, next;

	if (!run->bucket)
		return true;
	now = clock_now_ns();
	next = bucket_next_ns(run->bucket, now);
	if (next <= now)
		return true;
	run->held_back = true;
	run->held_until_ns = next;
	return false;
}

bool run_is_paid_for(struct run *run)
{
	uint64_t now, paid;

	if (!run->bucket)
		return true;
	now = clock_now_ns();
	paid = bucket_paid_ns(run->bucket, now);
	run->held_back = paid > now;
	run->held_until_ns = paid;
	return !run->held_back;
}

void run_set_current(struct run *run, struct wire_bytes name)
{
	const size_t most = sizeof run->stats->current - 1;
	const size_t skipped = name.len > most ? name.len - most : 0;

	if (name.len)
		memcpy(run->stats->current, name.data + skipped, name.len - skipped);
	run->stats->current[name.len - skipped] = '\0';
}

void run_report(struct run *run, uint64_t now)
{
	run->stats->ended_ns = now;
	if (run->observe && run->params->progress)
		run->observe(run);
	if (run->params->progress)
		run->params->progress(run->params->progress_ctx, run->stats);
	run->report_ns = now + PROGRESS_NS;
}

int run_fail(struct run *run, enum verdict_scope scope, uint16_t status, const char *format, ...)
{
	char text[VERDICT_TEXT];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	verdict_set(&run->verdict, scope, status, "%s", text);
	return RUN_FAILED;
}
