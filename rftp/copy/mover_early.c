/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover_early: see mover_early.h.
 */
#include "rftp/copy/mover_early.h"

#include <errno.h>

void mover_early_put(
	struct mover *m, struct outgoing *outgoing, struct message_data_request *request)
{
	struct client *c = m->client;
	const struct transfer_source *source = outgoing_source(outgoing);
	const struct plan_early_facts facts = {
		.mode = c->settings.early,
		.area_bytes = link_rail(calls_link(c->session), c->transfer)->remote_area.bytes,
		.several = source->total_files != 1,
		.stream = source->total_bytes == MESSAGE_UNKNOWN,
		.bytes = source->total_bytes,
		.resume_bytes = c->settings.resume_bytes,
		.resting = c->early_rest,
		.in_line = c->early_in_line,
		.rtt_ns = calls_info(c->session)->rtt_ns,
	};

	m->answered = false;
	m->refused = 0;
	if (request->flags & MESSAGE_DATA_IN_PLACE) /* there is an old file, which changes */
		return;
	c->early_rest -= c->early_rest > 0;
	m->early = plan_early(&facts);
	request->flags |= m->early.ahead ? MESSAGE_DATA_EARLY : 0;
}

void mover_early_get(
	struct mover *m, bool several, bool stream, struct message_data_request *request)
{
	struct client *c = m->client;
	const struct settings *s = &c->settings;
	const struct plan_early_facts facts = {
		.mode = s->early,
		.several = several,
		.stream = stream,
		.resting = c->early_rest,
		.in_line = c->early_in_line,
	};

	m->answered = false;
	m->refused = 0;
	/* its own idea of memory; or it is the server that names some */
	if (s->block || s->depth || s->limit_rate || s->engine == MESSAGE_ENGINE_PULL)
		return;
	c->early_rest -= c->early_rest > 0;
	m->early = plan_early_get(&facts);
	if (!m->early.ahead)
		return;
	request->flags |= MESSAGE_DATA_EARLY;
	request->engine = s->engine ? s->engine : MESSAGE_ENGINE_CREDIT;
	request->block = PLAN_EARLY_BLOCK;
	request->depth = PLAN_EARLY_DEPTH;
	request->resume = s->resume_bytes;
	if (request->block > calls_info(c->session)->max_block)
		request->block = calls_info(c->session)->max_block;
	if (request->depth > calls_info(c->session)->max_depth)
		request->depth = calls_info(c->session)->max_depth;
	m->early_request = *request;
}

/* Others may use the dialogue from then on. */
static int answered(void *ctx)
{
	struct mover *m = ctx;
	/* the first answer holds: behind a refusal the server may close the session */
	int err = m->refused ? m->refused : calls_answered(m->client->session, m->early_type);

	if (err < 0) { /* or it never will be */
		m->refused = err;
		return calls_lost(m->client->session) ? -ENOTCONN : -EREMOTEIO;
	}
	m->answered = err;
	if (err)
		client_unlock(m->client);
	return err;
}

static void begin_early(struct mover *m, struct transfer_params *params, uint16_t type)
{
	m->early_type = type;
	params->early = true;
	params->answered = answered;
}

/* A transfer that did not wait for its answer is over: the lock is ours again. */
static void end_early(struct mover *m)
{
	struct client *c = m->client;

	if (m->answered)
		client_lock(c);
	else if (!m->refused) /* it was given up; the answer may have crossed that */
		calls_answered(c->session, m->early_type);
	if (m->refused)
		c->early_rest = PLAN_EARLY_REST;
}

enum verdict_scope mover_early_send(struct mover *m, struct transfer_params *params,
	const struct transfer_source *source, struct transfer_stats *stats)
{
	enum verdict_scope outcome;

	begin_early(m, params, MESSAGE_STORE);
	params->early_bytes = m->early.bytes;
	params->early_after_ns = m->early.after_ns;
	outcome = transfer_send(calls_link(m->client->session), params, source, stats);
	end_early(m);
	return outcome;
}

enum verdict_scope mover_early_receive(struct mover *m, struct transfer_params *params,
	const struct transfer_sink *sink, struct transfer_stats *stats)
{
	enum verdict_scope outcome;

	begin_early(m, params, MESSAGE_RETRIEVE);
	params->engine = m->early_request.engine;
	params->channels = m->early_request.channels;
	params->block = m->early_request.block;
	params->depth = m->early_request.depth;
	outcome = transfer_receive(calls_link(m->client->session), params, sink, stats);
	end_early(m);
	return outcome;
}
