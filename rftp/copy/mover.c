/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover.c: owns the sums over a command's transfers.
 */
#include "rftp/copy/mover.h"

#include "rftp/copy/mover_early.h"
#include "rftp/copy/mover_file.h"
#include "rftp/copy/wishes.h"
#include "rftp/ui/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MOVER_MANY 20u /* files: of fewer, people see all errors as they come */

static void mover_unwatch(struct mover *m)
{
	if (m->stop_fd >= 0)
		close(m->stop_fd);
	if (m->cancel_fd >= 0)
		close(m->cancel_fd);
	m->stop_fd = m->cancel_fd = -1;
}

static void mover_watch(struct mover *m);

void mover_start(struct mover *m, struct client *client, const char *command)
{
	mover_start_between(m, client, NULL, command);
}

void mover_start_between(
	struct mover *m, struct client *client, const struct client *there, const char *command)
{
	struct text server = {0}, destination = {0};

	*m = (struct mover){.client = client, .base_errors = client->report.errors};
	line_start(client);
	progress_start(&client->report.progress,
		client->settings.verbosity >= 0 && !client->settings.json && !client->is_clone);
	client->moved_bytes = 0;
	if (client->host)
		client_server(client, &server);
	if (there)
		client_server(there, &destination);
	report_start(&client->report, command, client->host ? text_str(&server) : NULL,
		there ? text_str(&destination) : NULL);
	text_fini(&server);
	text_fini(&destination);
	mover_watch(m);
}

/* Of limit-rate, for the sizes of block and window. */
static uint64_t mover_turn(const struct client *c)
{
	return bucket_turn(c->settings.limit_rate, calls_info(c->session)->rtt_ns);
}

/* A block's payload: as it allows, and as was agreed on. */
static uint32_t mover_max_block(const struct client *c)
{
	uint32_t block = bucket_max_block(mover_turn(c)), most = calls_info(c->session)->max_block;

	return block < most ? block : most;
}

int mover_channels(struct mover *m, unsigned count)
{
	struct client *c = m->client;
	uint64_t rate = c->settings.limit_rate;
	int err = calls_channels(c->session, c->transfer, count);

	client_hear_queue(c);

	/* one for all transfers of the command */
	if (!err && rate && !m->has_bucket) {
		err = bucket_init(&m->bucket, rate, bucket_max_window(mover_turn(c)));
		m->has_bucket = !err;
	}
	return err ? client_report(c, NULL, err) : line_ask(c);
}

/* What a transfer is cancelled by: a signal, or with stop-on-error also a file that failed. */
static void mover_watch(struct mover *m)
{
	struct epoll_event event = {.events = EPOLLIN};

	m->stop_fd = m->cancel_fd = -1;
	if (!m->client->settings.stop_on_error)
		return;
	m->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->cancel_fd = epoll_create1(EPOLL_CLOEXEC);
	if (m->stop_fd < 0 || m->cancel_fd < 0 ||
		epoll_ctl(m->cancel_fd, EPOLL_CTL_ADD, m->stop_fd, &event) ||
		epoll_ctl(m->cancel_fd, EPOLL_CTL_ADD, client_cancel_fd(m->client), &event)) {
		mover_unwatch(m);
		report_note(&m->client->report, "a failure will not stop the copy: %s",
			strerror(errno));
	}
}

void mover_stop(struct mover *m)
{
	static const struct transfer_cancel why = {
		STATUS_CANCELLED, "a file failed, and that was to stop the others"};
	const uint64_t one = 1;

	if (m->stop_fd < 0 || m->stopped)
		return;
	m->stopped = true;
	if (m->params)
		atomic_store(&m->params->cancel, &why);
	if (write(m->stop_fd, &one, sizeof one) < 0)
		report_note(&m->client->report, "the copy is not stopped: %s", strerror(errno));
}

bool mover_is_for_put(struct client *c)
{
	if (c->settings.in_place)
		report_usage(&c->report,
			"--append and --offset are for one file that goes from here to a server");
	return c->settings.in_place;
}

void mover_request(const struct mover *m, uint16_t type, struct message_data_request *request)
{
	struct client *c = m->client;
	const struct settings *s = &c->settings;

	if (type == MESSAGE_STORE)
		wishes_store(s, request);
	else
		wishes_retrieve(s, request);
	if (!s->block && s->limit_rate) /* a window of large blocks is much at once */
		request->block = mover_max_block(c);
	request->rtt_us = calls_rtt_us(c->session);
	if (type == MESSAGE_RETRIEVE)
		request->channels =
			(uint16_t)link_channel_count(calls_link(c->session), c->transfer);
}

void mover_request_size(struct message_data_request *request, struct outgoing *outgoing)
{
	const struct transfer_source *source = outgoing_source(outgoing);
	uint64_t bytes = source->total_bytes;

	if (bytes == MESSAGE_UNKNOWN)
		request->flags |= MESSAGE_DATA_STREAM;
	else if (bytes == source->largest_bytes) /* of many small files each takes a block */
		request->size = bytes < TRANSFER_SIZE_MAX ? bytes : TRANSFER_SIZE_MAX;
}

static uint64_t mover_total(uint64_t before, uint64_t total)
{
	return total == MESSAGE_UNKNOWN ? total : before + total;
}

/* One transfer of several: what went before counts as well. */
static void mover_progress(void *ctx, const struct transfer_stats *stats)
{
	struct mover *m = ctx;
	struct progress_state state = {
		.bytes = m->there + stats->verified_bytes + stats->had_bytes,
		.had_bytes = m->had + stats->had_bytes,
		.name = stats->current,
		.total_bytes = mover_total(m->there, stats->total_bytes),
		.files = m->done.files,
		.total_files = mover_total(m->files_before, stats->total_files),
		.errors = stats->errors,
	};

	atomic_store_explicit(&m->client->moved_bytes, state.bytes, memory_order_relaxed);
	if (!m->client->line.since_ns) /* its place stands there */
		report_progress(&m->client->report, &state);
}

static void mover_queued(void *ctx, const struct message_queued *queued)
{
	line_queued(((struct mover *)ctx)->client, queued);
}

static void mover_limit(struct mover *m, struct transfer_params *params)
{
	uint64_t turn = mover_turn(m->client);

	if (!m->has_bucket)
		return;
	params->bucket = &m->bucket;
	params->window_max_bytes = bucket_max_window(turn);
	if (!params->block)
		params->max_block = mover_max_block(m->client);
}

static void mover_params(struct mover *m, struct transfer_params *params)
{
	const struct settings *s = &m->client->settings;
	const struct calls_info *info = calls_info(m->client->session);

	*params = (struct transfer_params){
		.transfer = m->client->transfer,
		.engine = s->engine,
		.engines = info->engines,
		.protect = info->protect,
		.block = s->block,
		.depth = s->depth,
		.squeeze = s->compress,
		.max_block = info->max_block,
		.max_depth = info->max_depth,
		.rtt_ns = info->rtt_ns,
		.idle_timeout_ms = (int)s->timeout_ms,
		.stall_timeout_ms = (int)s->stall_timeout_ms,
		.cancel_fd = m->cancel_fd >= 0 ? m->cancel_fd : client_cancel_fd(m->client),
		.progress = mover_progress,
		.queued = mover_queued,
		.progress_ctx = m,
	};
	mover_limit(m, params);
}

static const char *mover_notices(const struct transfer_stats *stats)
{
	if (!strcmp(stats->engine, "status"))
		return "status bytes";
	if (!strcmp(stats->engine, "pull"))
		return "nothing sent by the daemon";
	switch (stats->notice) {
	case TRANSFER_NOTICE_GATHERED:
		return "notices gathered";
	default:
		return stats->imm ? "notices immediate" : "notices sent behind";
	}
}

static void mover_explain(const struct mover *m, const struct transfer_stats *stats)
{
	const struct settings *s = &m->client->settings;
	char block[UNITS_TEXT_MAX], window[UNITS_TEXT_MAX];

	if (!stats->block)
		return;
	units_format_size(stats->block, block);
	units_format_size((uint64_t)stats->block * stats->depth, window);
	report_verbose(&m->client->report,
		"engine %s%s, %u channel%s%s, block %s%s, window %u blocks = %s%s, %s, %s; "
		"rtt %.3f ms; waited for room %ju times",
		stats->engine, s->engine ? " (asked for)" : "", stats->channels,
		stats->channels == 1 ? "" : "s",
		s->channels ? " (asked for)" : " (from CPUs and rtt)", block,
		s->block ? " (asked for)" : " (from the sizes)", stats->depth, window,
		s->depth ? " (asked for)" : " (from rtt and limits)", mover_notices(stats),
		stats->direct ? "O_DIRECT" : "buffered",
		(double)calls_info(m->client->session)->rtt_ns / 1e6, (uintmax_t)stats->starved);
}

static void mover_add_requests(struct transfer_requests *sum, const struct transfer_requests *n)
{
	sum->writes += n->writes;
	sum->sends += n->sends;
	sum->reads += n->reads;
	sum->signalled += n->signalled;
	sum->receives += n->receives;
	sum->frames += n->frames;
	if (n->send_queue > sum->send_queue)
		sum->send_queue = n->send_queue;
	if (n->receive_queue > sum->receive_queue)
		sum->receive_queue = n->receive_queue;
}

void mover_begin(struct mover *m)
{
	m->file_errors = m->client->report.errors;
	m->files_before = m->done.files;
	m->outcomes_before = m->outcomes;
	m->skipped = 0;
}

void mover_moved(struct mover *m, const struct transfer_stats *stats)
{
	mover_progress(m, stats);
}

int mover_end(struct mover *m, const struct transfer_stats *stats, const char *object,
	enum verdict_scope outcome)
{
	int error = transfer_error(outcome, stats);
	bool alone = m->outcomes - m->outcomes_before == 1;
	struct client *c = m->client;
	struct report_done *d = &m->done;

	progress_erase(&c->report.progress);
	m->there += stats->bytes + stats->had_bytes;
	m->had += stats->had_bytes;
	d->sent += stats->bytes - stats->hole_bytes;
	d->holes += stats->hole_bytes;
	d->crossed += stats->crossed_bytes;
	if (m->client->settings.compress && stats->crossed_bytes)
		report_verbose(&c->report, "compressed %.2f to 1: %ju bytes crossed as %ju",
			(double)(stats->bytes - stats->hole_bytes) / (double)stats->crossed_bytes,
			(uintmax_t)(stats->bytes - stats->hole_bytes),
			(uintmax_t)stats->crossed_bytes);
	if (stats->ended_ns > stats->started_ns)
		m->busy_ns += stats->ended_ns - stats->started_ns;
	if (stats->block) {
		d->fabric = stats->fabric;
		d->engine = stats->engine;
		d->protect = message_protect_name(stats->protect);
		d->channels = stats->channels;
		d->block = stats->block;
		d->direct |= stats->direct;
		d->early_bytes += stats->early_bytes;
		mover_add_requests(&d->requests, &stats->requests);
	}
	mover_explain(m, stats);
	if (m->early.why)
		report_verbose(&c->report, "early data: %ju bytes (%s)",
			(uintmax_t)stats->early_bytes, m->early.why);
	if (outcome <= VERDICT_FILE) {
		mover_file_release(m, true);
		/* single files were reported one by one */
		return stats->errors == m->skipped ? 0 : error;
	}
	/* one file that took the others with it was reported as well; so was one that stopped them
	 */
	if (m->stopped && stats->verdict.status == STATUS_CANCELLED)
		client_after_transfer(c->session, error, stats);
	else if (!stats->told || c->report.errors == m->file_errors) {
		client_after_transfer(c->session, error, stats);
		client_report(c, alone && m->held_path ? m->held_path : object, error);
	}
	mover_file_release(m, false);
	return error;
}

int mover_send_source(struct mover *m, const struct transfer_source *source, const char *object)
{
	struct transfer_stats stats = {0};
	struct transfer_params params;
	enum verdict_scope outcome;
	int err;

	mover_begin(m);
	mover_params(m, &params);
	if (source->feed)
		params.cancel_fd = -1;
	m->params = &params;
	if (m->early.ahead) {
		outcome = mover_early_send(m, &params, source, &stats);
	} else {
		client_unlock(m->client);
		outcome = transfer_send(calls_link(m->client->session), &params, source, &stats);
		client_lock(m->client);
	}
	m->params = NULL;
	if (m->early.why)
		m->done.early_why = m->early.why;
	err = m->refused ? m->refused : mover_end(m, &stats, object, outcome);
	m->early = (struct plan_early){0};
	return err;
}

int mover_send(struct mover *m, struct outgoing *outgoing, const char *object)
{
	return mover_send_source(m, outgoing_source(outgoing), object);
}

int mover_receive(struct mover *m, struct incoming *incoming, const char *object)
{
	struct transfer_stats stats = {0};
	struct transfer_params params;
	uint64_t failures = m->failures;
	enum verdict_scope outcome;
	int err;

	mover_begin(m);
	mover_params(m, &params);
	m->params = &params;
	if (m->client->settings.recursive) /* it adds sizes up before it begins */
		progress_say(&m->client->report.progress, "the server is scanning");
	if (m->early.ahead) {
		outcome = mover_early_receive(m, &params, incoming_sink(incoming), &stats);
	} else {
		client_unlock(m->client);
		outcome = transfer_receive(
			calls_link(m->client->session), &params, incoming_sink(incoming), &stats);
		client_lock(m->client);
	}
	m->params = NULL;
	if (m->early.why)
		m->done.early_why = m->early.why;
	err = m->refused ? m->refused : mover_end(m, &stats, object, outcome);
	m->early = (struct plan_early){0};
	if (m->refused)
		return err;
	/* the server tells the others one by one; of these no name can cross */
	failures = m->failures - failures + m->skipped;
	if (outcome == VERDICT_FILE && stats.errors > failures)
		report_errorf(&m->client->report, -ENAMETOOLONG, object,
			"%ju of the names in it are too long to be sent: these, and what is in "
			"them, are left out",
			(uintmax_t)(stats.errors - failures));
	return err;
}

int mover_finish(struct mover *m, int error)
{
	struct client *c = m->client;

	if (m->has_bucket)
		bucket_fini(&m->bucket);
	m->has_bucket = false;
	m->done.waited_seconds = (double)line_waited_ns(c) / 1e9;
	c->early_in_line = line_waited_ns(c) > 0;
	m->done.deadline_met = line_deadline_met(c);
	m->done.seconds = (double)m->busy_ns / 1e9;
	m->done.errors = c->report.errors - m->base_errors;
	m->done.replies_are_read = c->session && calls_count_replies(c->session, &m->done.replies);
	if (m->done.special == 1)
		report_note(&c->report, "%s: not copied: a device, FIFO or socket",
			m->special ? m->special : "");
	else if (m->done.special)
		report_note(&c->report, "%s and %ju more: not copied: devices, FIFOs or sockets",
			m->special ? m->special : "", (uintmax_t)m->done.special - 1);
	free(m->special);
	m->special = NULL;
	/* quiet where nobody looks, as cp is */
	report_done(&c->report, &m->done,
		m->done.fabric && !m->quiet && !c->is_clone &&
			(c->settings.verbosity > 0 ||
				(c->settings.verbosity == 0 && isatty(STDERR_FILENO))));
	failures_tell(&m->failed, &c->report, m->outcomes >= MOVER_MANY);
	report_flush(&c->report);
	if (c->settings.failures[0] &&
		failures_write(&m->failed, c->settings.failures, &c->report) && !error)
		error = -EIO;
	failures_fini(&m->failed);
	mover_unwatch(m);
	if (!error && m->done.errors)
		error = -EREMOTEIO;
	return error;
}
