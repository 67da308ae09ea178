/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/inline_send: see inline_send.h.
 */
#include "transfer/inline_send.h"

#include "base/clock.h"
#include "transfer/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sent, and not answered. */
struct sent {
	struct transfer_item item;
	unsigned number;
	size_t frame_bytes;
	uint64_t digest;
};

struct sender {
	struct calls *calls;
	const struct inline_send_params *params;
	const struct transfer_source *from;
	struct transfer_stats *stats;
	struct transfer_reading reading;
	struct sent ring[CALLS_INLINE_FILES]; /* in order, from `first` on */
	unsigned first, count, number;
	size_t frame_bytes; /* of those */
	bool over;          /* the source has no more, or it is of no use */
	struct whole_room room;
};

static void done(struct sender *s, struct transfer_item *item, uint16_t status, const char *text)
{
	if (item->end)
		end_free(item->end);
	item->end = NULL;
	if (status)
		s->stats->errors++;
	else
		s->stats->files += transfer_counts(&item->file);
	s->from->done(s->from->ctx, item, status, text);
}

/* ---- what is left ---- */

static int rest_next(void *ctx, struct transfer_item *item)
{
	struct inline_rest *rest = ctx;
	uint32_t number = item->file.file;

	if (rest->at == rest->count)
		return rest->from->next(rest->from->ctx, item);
	*item = rest->items[rest->at++];
	item->file.file = number;
	return 1;
}

static int rest_open(void *ctx, struct transfer_item *item)
{
	const struct transfer_source *from = ((struct inline_rest *)ctx)->from;

	return from->open(from->ctx, item);
}

static int64_t rest_read(void *ctx, struct transfer_reading *reading, struct transfer_item *item)
{
	const struct transfer_source *from = ((struct inline_rest *)ctx)->from;

	return from->read(from->ctx, reading, item);
}

static void rest_read_end(void *ctx, struct transfer_reading *reading)
{
	whole_read_end(((struct inline_rest *)ctx)->from, reading);
}

static int rest_check(void *ctx, const struct transfer_item *item)
{
	const struct transfer_source *from = ((struct inline_rest *)ctx)->from;

	return from->check(from->ctx, item);
}

static void rest_done(
	void *ctx, const struct transfer_item *item, uint16_t status, const char *text)
{
	const struct transfer_source *from = ((struct inline_rest *)ctx)->from;

	from->done(from->ctx, item, status, text);
}

static void rest_init(struct inline_rest *rest, const struct transfer_source *from)
{
	rest->from = from;
	rest->source = *from;
	rest->source.next = rest_next;
	rest->source.open = from->open ? rest_open : NULL;
	rest->source.read = from->read ? rest_read : NULL;
	rest->source.read_end = from->read_end ? rest_read_end : NULL;
	rest->source.check = from->check ? rest_check : NULL;
	rest->source.done = rest_done;
	rest->source.ctx = rest;
}

static int rest_add(struct inline_rest *rest, const struct transfer_item *item)
{
	struct transfer_item *items = rest->items;

	if (rest->count == rest->room) {
		items = realloc(items, (2 * rest->room + 8) * sizeof *items);
		if (!items)
			return -ENOMEM;
		rest->items = items;
		rest->room = 2 * rest->room + 8;
	}
	items[rest->count++] = *item;
	return 0;
}

void inline_rest_fini(struct inline_rest *rest)
{
	for (; rest->at < rest->count; rest->at++) {
		struct transfer_item *item = &rest->items[rest->at];

		if (item->end)
			end_free(item->end);
		rest->from->done(rest->from->ctx, item, STATUS_CANCELLED, "");
	}
	free(rest->items);
	*rest = (struct inline_rest){0};
}

/* ---- sending ---- */

/* It was read, or could not be: `error`. */
static void leave_to_rest(struct sender *s, struct transfer_item *item, int error)
{
	if (error != -EFBIG) {
		item->error = error;
		item->closed = false;
	}
	if (rest_add(s->params->rest, item))
		done(s, item, STATUS_NO_MEMORY, "");
	/* the end of a directory comes after all that is in it: so all that follows is left, too */
	s->over = true;
}

static void leave(struct sender *s, struct transfer_item *item, unsigned number)
{
	if (item->end)
		end_free(item->end);
	item->end = NULL;
	s->params->left[number] = true;
	*s->params->leaving = true;
	s->from->done(s->from->ctx, item, STATUS_CANCELLED, "");
	*s->params->leaving = false;
}

/* One more file: 0; -errno: the session is over. */
static int send_next(struct sender *s)
{
	struct sent *sent = &s->ring[(s->first + s->count) % CALLS_INLINE_FILES];
	struct message_put put = {
		.flags = s->params->flags,
		.path = {(const uint8_t *)s->params->path, strlen(s->params->path)},
	};
	int n;

	*sent = (struct sent){.item.file.file = 1, .number = s->number};
	n = s->from->next(s->from->ctx, &sent->item);
	if (n != 1) {
		s->over = true;
		return n;
	}
	s->number++;
	n = whole_read(s->from, &s->reading, s->params->most, &sent->item, &s->room, &put.whole);
	if (!n)
		n = calls_put_send(s->calls, &put, &sent->frame_bytes);
	if (n && calls_lost(s->calls)) {
		done(s, &sent->item, calls_error(s->calls)->status, "");
		return n;
	}
	if (n && s->params->rest) {
		leave_to_rest(s, &sent->item, n);
		return 0;
	}
	if (n) {
		leave(s, &sent->item, sent->number);
		return 0;
	}
	sent->digest = put.whole.digest;
	s->frame_bytes += sent->frame_bytes;
	s->count++;
	return 0;
}

/* It went to the path itself, so that has no name beneath. */
static void settle_name(struct transfer_item *item, bool into)
{
	if (!into)
		item->file.name.len = 0;
}

/* Others would be refused, too. */
static void note_refusal(struct sender *s)
{
	const struct calls_error *why = calls_error(s->calls);

	if (why->status != STATUS_DENIED && why->status != STATUS_READ_ONLY && !s->params->rest)
		return;
	verdict_set(&s->stats->verdict, VERDICT_TRANSFER, why->status, "%s", why->text);
	s->over = true;
}

/* The oldest reply: 0; -errno: the session is over. */
static int take_reply(struct sender *s)
{
	struct sent *sent = &s->ring[s->first];
	struct message_put_reply reply;
	char text[MESSAGE_TEXT_MAX + 1];
	int err = calls_put_take(s->calls, &reply);

	if (!err && !reply.status && reply.digest != sent->digest)
		err = calls_bad_reply(s->calls, MESSAGE_PUT);
	if (err && calls_lost(s->calls))
		return err;
	s->first = (s->first + 1) % CALLS_INLINE_FILES;
	s->count--;
	s->frame_bytes -= sent->frame_bytes;
	if (err)
		note_refusal(s);
	if (err && s->params->rest) {
		done(s, &sent->item, STATUS_CANCELLED, "");
		return 0;
	}
	if (err) {
		leave(s, &sent->item, sent->number);
		return 0;
	}
	settle_name(&sent->item, reply.into);
	memcpy(text, reply.text.data, reply.text.len);
	text[reply.text.len] = '\0';
	if (!reply.status)
		s->stats->bytes += sent->item.file.size;
	done(s, &sent->item, reply.status, text);
	return 0;
}

static enum verdict_scope end(struct sender *s, int err)
{
	const struct calls_error *why = calls_error(s->calls);

	while (s->count) { /* nobody will say what became of them */
		done(s, &s->ring[s->first].item, why->status, "");
		s->first = (s->first + 1) % CALLS_INLINE_FILES;
		s->count--;
	}
	whole_read_end(s->from, &s->reading);
	s->stats->ended_ns = clock_now_ns();
	if (err && calls_lost(s->calls)) {
		verdict_set(&s->stats->verdict, VERDICT_SESSION, why->status, "%s", why->text);
		return VERDICT_SESSION;
	}
	if (err) {
		verdict_set(&s->stats->verdict, VERDICT_TRANSFER, status_from_errno(err),
			"reading the list of files");
		return VERDICT_TRANSFER;
	}
	if (s->stats->verdict.status)
		return VERDICT_TRANSFER;
	return s->stats->errors ? VERDICT_FILE : VERDICT_NONE;
}

enum verdict_scope inline_send(struct calls *calls, const struct inline_send_params *params,
	const struct transfer_source *from, struct transfer_stats *stats)
{
	struct sender *s = calloc(1, sizeof *s);
	enum verdict_scope scope;
	int err = 0;

	stats->started_ns = stats->ended_ns = clock_now_ns();
	stats->total_files = from->total_files;
	stats->total_bytes = from->total_bytes;
	if (!s) {
		verdict_set(&stats->verdict, VERDICT_TRANSFER, STATUS_NO_MEMORY, "%s", "");
		return VERDICT_TRANSFER;
	}
	s->calls = calls;
	s->params = params;
	s->from = from;
	s->stats = stats;
	if (params->rest)
		rest_init(params->rest, from);
	while (!err && (!s->over || s->count)) {
		if (!s->over && s->count < CALLS_INLINE_FILES &&
			s->frame_bytes < CALLS_INLINE_BYTES)
			err = send_next(s);
		else
			err = take_reply(s);
	}
	/* what is still to come would be taken for other replies */
	while (err && s->count && !calls_lost(calls))
		(void)take_reply(s);
	scope = end(s, err);
	free(s);
	return scope;
}
