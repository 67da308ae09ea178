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
		s->stats->files++;
	s->from->done(s->from->ctx, item, status, text);
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

	if (why->status != STATUS_DENIED && why->status != STATUS_READ_ONLY)
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
	if (err) {
		note_refusal(s);
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
