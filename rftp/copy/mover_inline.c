/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover_inline: see mover_inline.h.
 */
#include "rftp/copy/mover_inline.h"

#include "rftp/copy/wishes.h"
#include "rftp/ui/units.h"
#include "session/calls_names.h"
#include "transfer/inline_send.h"

#include <stdlib.h>
#include <string.h>

/* As measured: setting up channels costs as much time as so many requests, and ten round trips. */
#define SET_UP_FILES 20u
#define SET_UP_TRIPS 10u
#define FILE_US 100u
#define READ_RTT_US 1000u /* from there on a read of each reply costs more than channels do */

/* What only a transfer does, or does otherwise. */
static bool wants_transfer(const struct settings *s)
{
	return s->compress || s->verify != SETTINGS_VERIFY_WIRE || s->direct == END_DIRECT_ON ||
	       s->hard_links || s->xattrs || s->acls || s->preallocate || s->limit_rate ||
	       s->priority[0] || s->has_deadline || s->stop_on_error || s->channels || s->block ||
	       s->depth || s->in_place || s->early != PLAN_EARLY_AUTO;
}

bool mover_inline_suits(const struct settings *s)
{
	return s->inline_max && !wants_transfer(s);
}

/* Bytes of a file, as far as this side decides. */
static uint32_t wish(const struct settings *s)
{
	uint64_t most = wants_transfer(s) ? 0 : s->inline_max;

	if (s->resume_bytes && most >= s->resume_bytes)
		most = s->resume_bytes - 1;
	return (uint32_t)most;
}

uint32_t mover_inline_most(const struct mover *m)
{
	struct calls *calls = m->client->session;
	uint32_t most = wish(&m->client->settings), there = calls_info(calls)->max_inline;

	if (link_channel_count(calls_link(calls), m->client->transfer))
		return 0;
	return most < there ? most : there;
}

unsigned mover_inline_files(const struct mover *m)
{
	struct calls *calls = m->client->session;
	const uint32_t rtt_us = calls_rtt_us(calls);
	const uint64_t files = SET_UP_FILES + (uint64_t)rtt_us * SET_UP_TRIPS / FILE_US;
	struct pipe_ring_counts unused;

	if (rtt_us >= READ_RTT_US && calls_count_replies(calls, &unused))
		return 0;
	return files < MOVER_INLINE_FILES ? (unsigned)files : MOVER_INLINE_FILES;
}

static uint32_t put_flags(const struct mover *m)
{
	return MESSAGE_DATA_INTO | wishes_store_flags(&m->client->settings);
}

/* What is asked for does not depend on the server, which has a limit of its own: so it can be asked
 * before that is known. */
static struct inline_receive_params get_params(const struct settings *s)
{
	return (struct inline_receive_params){
		.flags = wishes_owner_flags(s),
		.most = wish(s),
	};
}

/* What is told at the end, as of a transfer. */
static int ended(struct mover *m, const struct transfer_stats *stats, const char *object,
	enum verdict_scope outcome)
{
	struct client *c = m->client;
	const struct calls_info *info = calls_info(c->session);
	char most[UNITS_TEXT_MAX];

	if (stats->files + stats->errors) {
		m->done.fabric = info->fabric;
		m->done.engine = "inline";
		m->done.protect = message_protect_name(MESSAGE_PROTECT_PRIVATE);
		m->done.crossed += stats->bytes;
		units_format_size(mover_inline_most(m), most);
		report_verbose(&c->report,
			"%ju file%s of at most %s (inline-max) in single requests: no data "
			"channels",
			(uintmax_t)(stats->files + stats->errors),
			stats->files + stats->errors == 1 ? "" : "s", most);
	}
	atomic_store_explicit(&c->moved_bytes, m->there + stats->bytes, memory_order_relaxed);
	return mover_end(m, stats, object, outcome);
}

int mover_inline_put(struct mover *m, const struct mover_inline_put *put)
{
	struct transfer_stats stats = {0};
	const struct inline_send_params params = {
		.path = put->path,
		.flags = put_flags(m),
		.most = mover_inline_most(m),
		.leaving = &m->leaving,
		.left = put->left,
	};
	enum verdict_scope outcome;

	mover_begin(m);
	outcome = inline_send(m->client->session, &params, outgoing_source(put->outgoing), &stats);
	return ended(m, &stats, put->object, outcome);
}

void mover_inline_get_ahead(const struct settings *s, struct calls *calls, const char *path)
{
	const struct inline_receive_params params = get_params(s);

	if (params.most)
		inline_receive_ahead(calls, &params, path);
}

int mover_inline_get(struct mover *m, struct incoming *incoming, struct inline_file *files,
	unsigned count, bool in_order, const char *object)
{
	struct transfer_stats stats = {0};
	struct inline_receive_params params = get_params(&m->client->settings);
	enum verdict_scope outcome;

	params.in_order = in_order;

	mover_begin(m);
	outcome = inline_receive(
		m->client->session, &params, files, count, incoming_sink(incoming), &stats);
	if (outcome <= VERDICT_FILE)
		incoming_is_over(incoming);
	return ended(m, &stats, object, outcome);
}

/* What was left of a tree, as a transfer. */
static int put_rest(struct mover *m, struct inline_rest *rest, const char *directory)
{
	struct client *c = m->client;
	struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES,
		.flags = MESSAGE_DATA_INTO | MESSAGE_DATA_RECURSIVE,
		.path = {(const uint8_t *)directory, strlen(directory)},
	};
	int err = mover_channels(m, c->settings.channels);

	if (err)
		return err;
	mover_request(m, MESSAGE_STORE, &request);
	err = calls_store(c->session, c->transfer, &request);
	return err ? client_report(c, directory, err)
		   : mover_send_source(m, &rest->source, directory);
}

bool mover_inline_fits(const struct mover *m, struct outgoing *outgoing)
{
	const struct transfer_source *source = outgoing_source(outgoing);
	uint32_t most = mover_inline_most(m);

	return most && source->total_files <= MOVER_INLINE_FILES &&
	       source->total_bytes <= MOVER_INLINE_BYTES && source->largest_bytes <= most;
}

int mover_inline_tree(struct mover *m, struct outgoing *outgoing, const char *directory)
{
	struct transfer_stats stats = {0};
	struct inline_rest rest = {0};
	struct inline_send_params params = {
		.flags = put_flags(m), .most = mover_inline_most(m), .rest = &rest};
	enum verdict_scope outcome;
	char *path;
	int err;

	if (asprintf(&path, "%s%s", directory, directory[strlen(directory) - 1] != '/' ? "/" : "") <
		0)
		return client_no_memory(m->client);
	params.path = path;
	mover_begin(m);
	outcome = inline_send(m->client->session, &params, outgoing_source(outgoing), &stats);
	err = ended(m, &stats, directory, outcome);
	if (outcome <= VERDICT_FILE && rest.count)
		err = put_rest(m, &rest, directory);
	inline_rest_fini(&rest);
	free(path);
	return err;
}
