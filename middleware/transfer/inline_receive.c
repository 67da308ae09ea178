/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/inline_receive: see inline_receive.h.
 */
#include "transfer/inline_receive.h"

#include "base/clock.h"
#include "transfer/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVER_MANY 64u /* under way, and flushed together */
#define RECEIVER_OPEN_MAX 32u

struct receiver {
	struct calls *calls;
	const struct inline_receive_params *params;
	struct inline_file *files;
	unsigned count, asked, answered;
	bool stays; /* in order: one is left, and so are those behind it */
	const struct transfer_sink *to;
	struct transfer_stats *stats;
	/* that have come */
	struct whole_arrival arrivals[RECEIVER_MANY];
	struct inline_file *came[RECEIVER_MANY];
	uint8_t *bytes[RECEIVER_MANY];
	unsigned came_count;
};

static struct message_get request(const struct inline_receive_params *params, const char *path)
{
	return (struct message_get){
		.flags = params->flags,
		.most = params->most,
		.path = {(const uint8_t *)path, strlen(path)},
	};
}

void inline_receive_ahead(
	struct calls *calls, const struct inline_receive_params *params, const char *path)
{
	const struct message_get get = request(params, path);

	calls_get_ahead(calls, &get);
}

static int ask(struct receiver *r)
{
	const struct message_get get = request(r->params, r->files[r->asked].path);
	int err = calls_get_send(r->calls, &get);

	if (!err)
		r->asked++;
	return err;
}

/* The reply is gone with the next one. */
static int keep(struct receiver *r, struct inline_file *file, const struct message_whole *whole)
{
	struct whole_arrival *a = &r->arrivals[r->came_count];
	size_t len = whole->file_data.len;
	uint8_t *bytes = malloc(len + whole->data.len + 1);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, whole->file_data.data, len);
	if (whole->data.len)
		memcpy(bytes + len, whole->data.data, whole->data.len);
	*a = (struct whole_arrival){.whole = *whole, .name = file->name};
	a->whole.file_data.data = bytes;
	a->whole.data.data = bytes + len;
	r->bytes[r->came_count] = bytes;
	r->came[r->came_count++] = file;
	return 0;
}

/* Whether a request was refused, and not the file; and one directory is what RETRIEVE has more to
 * say of. */
static bool is_for_transfer(const struct receiver *r, uint16_t status)
{
	if (status == STATUS_IS_DIRECTORY)
		return r->count == 1;
	return status == STATUS_UNSUPPORTED || status == STATUS_LIMIT ||
	       status == STATUS_NO_MEMORY || status == STATUS_SHUTDOWN;
}

/* The server has not this one. */
static void miss(struct receiver *r, const struct inline_file *file)
{
	const struct calls_error *why = calls_error(r->calls);
	const struct transfer_file missing = {
		.kind = TRANSFER_FILE_REGULAR,
		.name = {(const uint8_t *)file->name, strlen(file->name)},
	};

	if (r->count == 1) {
		verdict_set(&r->stats->verdict, VERDICT_TRANSFER, why->status, "%s", why->text);
		return;
	}
	r->stats->errors++;
	r->to->done(r->to->ctx, &missing, why->status, TRANSFER_AT_SOURCE);
}

/* The oldest reply: 0; -errno: the session is over. */
static int take(struct receiver *r)
{
	struct inline_file *file = &r->files[r->answered];
	struct message_get_reply reply;
	int err = calls_get_take(r->calls, &reply);

	if (!err && reply.here && reply.whole.data.len > r->params->most)
		err = calls_bad_reply(r->calls, MESSAGE_GET);
	if (err && calls_lost(r->calls))
		return err;
	r->answered++;
	file->left = r->stays;
	if (r->stays)
		return 0;
	if (err && !is_for_transfer(r, calls_error(r->calls)->status))
		miss(r, file);
	else /* or it is too large, or there is no memory for it here */
		file->left = err || !reply.here || keep(r, file, &reply.whole);
	r->stays = r->params->in_order && file->left;
	return 0;
}

static void land(struct receiver *r)
{
	whole_land(r->to, r->arrivals, r->came_count, RECEIVER_OPEN_MAX);
	for (unsigned i = 0; i < r->came_count; i++) {
		struct whole_arrival *a = &r->arrivals[i];

		if (a->status) {
			r->stats->errors++;
		} else {
			r->stats->files++;
			r->stats->bytes += a->whole.data.len;
		}
		whole_arrival_fini(a);
		free(r->bytes[i]);
	}
	r->came_count = 0;
}

static enum verdict_scope end(struct receiver *r, int err)
{
	const struct calls_error *why = calls_error(r->calls);

	r->stats->ended_ns = clock_now_ns();
	for (unsigned i = r->answered; i < r->count; i++)
		r->files[i].left = true;
	if (err && calls_lost(r->calls)) {
		verdict_set(&r->stats->verdict, VERDICT_SESSION, why->status, "%s", why->text);
		return VERDICT_SESSION;
	}
	if (r->stats->verdict.status)
		return VERDICT_TRANSFER;
	return r->stats->errors ? VERDICT_FILE : VERDICT_NONE;
}

enum verdict_scope inline_receive(struct calls *calls, const struct inline_receive_params *params,
	struct inline_file *files, unsigned count, const struct transfer_sink *to,
	struct transfer_stats *stats)
{
	struct receiver r = {.calls = calls,
		.params = params,
		.files = files,
		.count = count,
		.to = to,
		.stats = stats};
	unsigned most = RECEIVER_MANY;
	int err = 0;

	stats->started_ns = clock_now_ns();
	while (r.answered < count && !err && !r.stays) {
		most = r.answered + RECEIVER_MANY < count ? r.answered + RECEIVER_MANY : count;
		while (r.asked < most && !err && !r.stays)
			err = ask(&r);
		while (r.answered < r.asked && !err)
			err = take(&r);
		if (r.came_count)
			land(&r);
	}
	return end(&r, err);
}
