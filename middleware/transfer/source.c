/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source: the source loop.
 *
 *     end --FILLED--> engine --completion--> FREE
 *
 * One thread: takes in frames, completions and filled blocks, starts files, hands free blocks to the
 * crew to be filled, sends filled ones.  Many files are under way at once, so that a tree of small files
 * waits for no round trip; blocks are filled for the file that was started first.
 */
#include "transfer/run.h"

#include "block/digest.h"
#include "transfer/handshake.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u

struct source_file {
	struct crew_target target; /* first: what block->owner points to */
	struct source_file *next;  /* in the order of starting, while there is something to read */
	struct transfer_item item;
	uint32_t number;
	bool used, directory, ready, read_all, ended, answered;
	uint64_t next_offset;  /* to read */
	uint64_t bytes;        /* sent */
	uint32_t sequence;     /* blocks sent */
	uint64_t dropped;      /* blocks of a feed that nobody had room for */
	uint32_t in_crew;      /* blocks being filled, and filled ones waiting to be sent */
	struct digest_tree *tree;
	uint64_t digest;
	uint16_t status;
	char text[TRANSFER_TEXT];
};

struct source {
	struct run run; /* first */
	const struct transfer_source *from;
	struct plan plan;
	struct source_file *files; /* TRANSFER_OPEN_MAX slots, by number modulo that */
	struct source_file *reading, **reading_tail;
	uint32_t last_number;
	uint32_t open;         /* files started and not done */
	uint64_t unread_bytes; /* of files started */
	bool no_more, completed, closed;
	struct block **filled; /* ring of blocks to be sent */
	uint32_t filled_head, filled_count, filled_room;
	unsigned next_worker;
};

static struct source *self(struct run *run)
{
	return (struct source *)run;
}

/* ---- files ---- */

static void file_fail(struct source_file *f, int error, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void file_fail(struct source_file *f, int error, uint16_t status, const char *format, ...)
{
	va_list ap;

	if (f->status)
		return;
	f->status = status ? status : status_from_errno(error);
	va_start(ap, format);
	vsnprintf(f->text, sizeof f->text, format, ap);
	va_end(ap);
}

/* The file's record goes; `done` is told. */
static void file_finish(struct source *s, struct source_file *f)
{
	struct transfer_stats *stats = s->run.stats;

	if (f->status)
		stats->errors++;
	else
		stats->files++;
	f->item.sent_bytes = f->bytes;
	f->item.sent_blocks = f->sequence;
	f->item.dropped_blocks = f->dropped;
	s->from->done(s->from->ctx, &f->item, f->status, f->text);
	digest_tree_free(f->tree);
	end_free(f->target.end);
	f->used = false;
	s->open--;
}

static int announce(struct source *s, struct source_file *f)
{
	uint8_t data[MESSAGE_PATH_MAX + 64];

	f->item.file.file = f->number;
	return run_put(&s->run, TRANSFER_FILE, data, transfer_put_file(&f->item.file, data, sizeof data));
}

static bool is_open_ended(const struct source_file *f)
{
	return f->item.file.size == MESSAGE_UNKNOWN;
}

/* Starts the next file, if there is one.  0 or -errno. */
static int start_file(struct source *s)
{
	struct source_file *f = &s->files[(s->last_number + 1) % TRANSFER_OPEN_MAX];
	int r;

	assert(!f->used);
	*f = (struct source_file){.number = s->last_number + 1};
	r = s->from->next(s->from->ctx, &f->item);
	if (r <= 0) {
		s->no_more = true;
		return r < 0 ? run_fail(&s->run, r, 0, "reading the list of files") : 0;
	}
	f->used = true;
	s->open++;
	f->target.end = f->item.end;
	if (f->target.end && end_is_direct(f->target.end))
		s->run.stats->direct = true;
	f->directory = f->item.file.kind == TRANSFER_FILE_DIRECTORY && !f->item.error;
	if (f->item.error) {
		/* the sink's people miss it as much as ours: it is announced, and ended with what is wrong */
		file_fail(f, f->item.error, 0, "%s", "");
		if (!transfer_name_ok(f->item.file.name)) {
			file_finish(s, f); /* no name that could cross: COMPLETE's count of errors tells */
			return 0;
		}
		f->item.file.kind = TRANSFER_FILE_REGULAR;
		f->item.file.size = 0;
		f->read_all = true;
	}
	s->last_number++;
	r = announce(s, f);
	if (r || f->read_all)
		return r;
	if (f->directory) { /* only its RESULT is to come */
		f->ended = true;
		return 0;
	}
	*s->reading_tail = f;
	s->reading_tail = &f->next;
	if (!is_open_ended(f))
		s->unread_bytes += f->item.file.size;
	return digest_tree_new(&f->tree);
}

/* Enough is started: what is unread keeps the window busy twice over. */
static bool may_start(const struct source *s)
{
	uint64_t ahead = 2ull * s->plan.depth * s->plan.block;

	return !s->no_more && !s->files[(s->last_number + 1) % TRANSFER_OPEN_MAX].used &&
		(s->unread_bytes < ahead || s->open < 2);
}

/* Off the list of files that have something to read; the one that is done is nearly always its head. */
static void stop_reading(struct source *s, struct source_file *f)
{
	struct source_file **at = &s->reading;

	if (f->read_all)
		return;
	f->read_all = true;
	if (!is_open_ended(f))
		s->unread_bytes -= f->item.file.size - f->next_offset;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	if (s->reading_tail == &f->next)
		s->reading_tail = at;
}

/* All of it that will be sent is sent: FILE_END, once the sink has said READY. */
static int end_file(struct source *s, struct source_file *f)
{
	struct transfer_file_end end = {.file = f->number, .size = f->bytes, .blocks = f->sequence};
	uint8_t data[64];
	int r;

	if (f->ended || !f->ready || !f->read_all || f->in_crew)
		return 0;
	if (!f->status && !is_open_ended(f) && f->bytes != f->item.file.size)
		file_fail(f, 0, STATUS_CHANGED, "shrank to %llu bytes while it was read",
			(unsigned long long)f->bytes);
	if (!f->status && s->from->check) {
		r = s->from->check(s->from->ctx, &f->item);
		if (r)
			file_fail(f, r, r == -ESTALE ? STATUS_CHANGED : 0, "changed while it was read");
	}
	if (!f->status) { /* a file that failed may have holes */
		r = digest_tree_root(f->tree, f->sequence, f->bytes, &f->digest);
		if (r)
			return r;
	}
	end.status = f->status;
	end.digest = f->digest;
	f->ended = true;
	r = run_put(&s->run, TRANSFER_FILE_END, data, transfer_put_file_end(&end, data, sizeof data));
	if (!r && f->answered)
		file_finish(s, f);
	return r;
}

static struct source_file *find_file(struct source *s, uint32_t number)
{
	struct source_file *f = &s->files[number % TRANSFER_OPEN_MAX];

	return f->used && f->number == number ? f : NULL;
}

/* ---- frames ---- */

static int take_ready(struct source *s, const uint8_t *data, size_t len)
{
	struct transfer_ready ready;
	struct source_file *f;

	if (transfer_get_ready(&ready, data, len))
		return -EBADMSG;
	f = find_file(s, ready.file);
	if (!f || f->ready || f->directory || ready.offset)
		return -EBADMSG;
	f->ready = true;
	if (s->from->feed && !f->read_all)
		crew_feed_add(s->run.crew, &f->target);
	return end_file(s, f);
}

static int take_result(struct source *s, const uint8_t *data, size_t len)
{
	struct transfer_result result;
	struct source_file *f;

	if (transfer_get_result(&result, data, len))
		return -EBADMSG;
	f = find_file(s, result.file);
	if (!f || f->answered || (!result.status && !f->ended))
		return -EBADMSG;
	f->answered = true;
	if (result.status)
		file_fail(f, 0, result.status, "%.*s", (int)result.text.len, (const char *)result.text.data);
	else if (!f->directory && !f->status && (result.digest != f->digest || result.size != f->bytes))
		file_fail(f, 0, STATUS_DIGEST, "the sink has another digest: %016llx, here %016llx",
			(unsigned long long)result.digest, (unsigned long long)f->digest);
	if (!f->ready && !f->directory) {
		/* refused before READY: nothing was read, nothing is to be ended */
		stop_reading(s, f);
		f->ended = true;
	}
	if (f->ended) {
		file_finish(s, f);
		return 0;
	}
	if (s->from->feed) { /* it stops reading, and says so by a last block */
		if (!f->read_all)
			crew_feed_stop(s->run.crew, &f->target);
		return 0;
	}
	if (f->in_crew && end_is_stream(f->target.end)) /* its worker may wait for a pipe for ever */
		return run_fail(&s->run, -ECONNABORTED, f->status, "%s", f->text);
	stop_reading(s, f);
	return end_file(s, f);
}

static int take_closed(struct source *s, const uint8_t *data, size_t len)
{
	struct transfer_complete closed;

	if (!s->completed || transfer_get_complete(&closed, data, len))
		return -EBADMSG;
	s->closed = true;
	return 0;
}

static int take_frame(struct source *s, const struct message_header *h, const uint8_t *data)
{
	int r = s->run.engine->ops->message(s->run.engine, h->type, data, h->length);

	if (r)
		return r < 0 ? r : 0;
	switch (h->type) {
	case TRANSFER_READY:
		return take_ready(s, data, h->length);
	case TRANSFER_RESULT:
		return take_result(s, data, h->length);
	case TRANSFER_CLOSED:
		return take_closed(s, data, h->length);
	default:
		return -EBADMSG;
	}
}

/* Gives how many frames were taken in, or -errno. */
static int take_frames(struct source *s)
{
	struct message_header h;
	const uint8_t *data;
	int n = 0, r;

	/* after CLOSED the next frame is the session's */
	while (!s->closed && (r = run_get(&s->run, &h, &data)) != 0) {
		if (r > 0)
			r = take_frame(s, &h, data);
		if (r == -EBADMSG)
			return run_fail(&s->run, r, STATUS_PROTOCOL, "%s from the sink is malformed or out of turn",
				message_name(h.type));
		if (r)
			return r;
		n++;
	}
	return n;
}

/* ---- blocks ---- */

/* A stream has something and there is no block, because all wait for room: one is dropped.  It is the
 * oldest of the stream that has most of them waiting, so that who sends little loses little. */
static int drop_oldest(struct source *s)
{
	struct source_file *most = NULL;
	struct block *b;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->filled_count; i++) {
		struct source_file *f = s->filled[(s->filled_head + i) % s->filled_room]->owner;

		if (!most || f->in_crew > most->in_crew)
			most = f;
	}
	while (s->filled[(s->filled_head + at) % s->filled_room]->owner != most)
		at++;
	b = s->filled[(s->filled_head + at) % s->filled_room];
	for (; at; at--) /* those before it move up by one */
		s->filled[(s->filled_head + at) % s->filled_room] =
			s->filled[(s->filled_head + at - 1) % s->filled_room];
	s->filled_head = (s->filled_head + 1) % s->filled_room;
	s->filled_count--;
	most->in_crew--;
	most->dropped++;
	pool_give(s->run.pool, b);
	return end_file(s, most);
}

/* All blocks that are free go to the feeder, which knows best who needs one. */
static int feed_blocks(struct source *s)
{
	struct block *b;
	int n = 0, r = 0;

	if (s->from->feed->drop_oldest && s->filled_count && !pool_free_count(s->run.pool) &&
		crew_feed_hungry(s->run.crew) && !s->run.engine->ops->room(s->run.engine))
		r = drop_oldest(s);
	if (r)
		return r;
	while ((b = pool_take(s->run.pool, BLOCK_FILLING))) {
		b->length = s->plan.block;
		crew_submit(s->run.crew, 0, b);
		n++;
	}
	return n;
}

static int fill_blocks(struct source *s)
{
	const int batch = (int)crew_batch(s->run.crew);
	int n = 0;

	if (s->from->feed)
		return feed_blocks(s);

	while (s->reading && n < batch) {
		struct source_file *f = s->reading;
		bool stream = f->item.file.kind == TRANSFER_FILE_STREAM;
		uint64_t left = f->item.file.size - f->next_offset;
		struct block *b;

		if (!f->ready)
			break; /* in order: its READY is on the way */
		if (!left) {
			int r;

			stop_reading(s, f);
			r = end_file(s, f);
			if (r)
				return r;
			n++;
			continue;
		}
		b = pool_take(s->run.pool, BLOCK_FILLING);
		if (!b)
			break;
		b->owner = f;
		b->session = f->number;
		b->offset = f->next_offset;
		b->length = !is_open_ended(f) && left < s->plan.block ? (uint32_t)left : s->plan.block;
		f->next_offset += b->length;
		f->in_crew++;
		if (!is_open_ended(f))
			s->unread_bytes -= b->length;
		crew_submit(s->run.crew, stream ? 0 : s->next_worker++, b);
		n++;
	}
	return n;
}

/* The same from the feeder, which chose the stream. */
static int take_fed(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;

	if (b->error)
		file_fail(f, b->error, b->error == -EIO ? STATUS_IO : 0, "reading: %s", strerror(-b->error));
	if (b->flags & TRANSFER_BLOCK_LAST)
		stop_reading(s, f);
	if (!b->length || f->answered) {
		pool_give(s->run.pool, b);
		return end_file(s, f);
	}
	b->session = f->number;
	pool_move(b, BLOCK_FILLED);
	f->in_crew++;
	s->filled[(s->filled_head + s->filled_count++) % s->filled_room] = b;
	return 0;
}

/* A block comes back from its worker: to be sent, or the file ends here. */
static int take_filled(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;
	uint64_t wanted = is_open_ended(f) ? s->plan.block : f->item.file.size - b->offset;

	if (wanted > s->plan.block)
		wanted = s->plan.block;
	if (b->error)
		file_fail(f, b->error, b->error == -EIO ? STATUS_IO : 0, "reading at offset %llu: %s",
			(unsigned long long)b->offset, strerror(-b->error));
	else if (b->length < wanted && !is_open_ended(f))
		file_fail(f, 0, STATUS_CHANGED, "shrank to %llu bytes while it was read",
			(unsigned long long)(b->offset + b->length));
	if (b->error || b->length < wanted)
		stop_reading(s, f);
	if (b->error || !b->length || f->status) {
		pool_give(s->run.pool, b);
		f->in_crew--;
		return end_file(s, f);
	}
	pool_move(b, BLOCK_FILLED);
	s->filled[(s->filled_head + s->filled_count++) % s->filled_room] = b;
	return 0;
}

static int take_all_filled(struct source *s)
{
	struct block *done[BATCH];
	unsigned n = crew_collect(s->run.crew, done, BATCH);
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++)
		r = s->from->feed ? take_fed(s, done[i]) : take_filled(s, done[i]);
	return r ? r : (int)n;
}

static int send_block(struct source *s, struct block *b)
{
	struct source_file *f = b->owner;
	bool stream = f->item.file.kind == TRANSFER_FILE_STREAM;
	struct transfer_block header = {
		.session = f->number,
		.sequence = f->sequence,
		.offset = stream ? f->bytes : b->offset,
		.length = b->length,
	};
	uint8_t *prefix = b->payload - BLOCK_PREFIX_BYTES;
	uint64_t leaf = stream ? f->sequence : b->offset / s->plan.block;
	int r;

	transfer_put_block(&header, prefix);
	header.sum = digest_block_sum(b->leaf, prefix);
	transfer_put_block(&header, prefix);
	b->sequence = f->sequence++;
	f->bytes += b->length;
	f->in_crew--;
	atomic_fetch_add_explicit(&s->run.stats->bytes, b->length, memory_order_relaxed);
	r = digest_tree_add(f->tree, leaf, b->leaf);
	if (!r)
		r = s->run.engine->ops->send(s->run.engine, b);
	return r ? r : end_file(s, f);
}

/* Whether its blocks go no further: the sink gave it up.  Of an end that could not be read on, neither file
 * nor blocks are of use, but what a device gave until then is. */
static bool is_given_up(const struct source *s, const struct source_file *f)
{
	return s->from->feed ? f->answered : f->status;
}

static int send_blocks(struct source *s)
{
	const struct engine_ops *ops = s->run.engine->ops;
	int n = 0, r = 0;

	while (s->filled_count && !r) {
		struct block *b = s->filled[s->filled_head];
		struct source_file *f = b->owner;

		if (!is_given_up(s, f) && !ops->room(s->run.engine)) {
			s->run.stats->starved++;
			r = ops->starving(s->run.engine);
			break;
		}
		s->filled_head = (s->filled_head + 1) % s->filled_room;
		s->filled_count--;
		n++;
		if (is_given_up(s, f)) {
			pool_give(s->run.pool, b);
			f->in_crew--;
			r = end_file(s, f);
		} else {
			r = send_block(s, b);
		}
	}
	return r ? r : n;
}

static int take_completions(struct source *s)
{
	struct block *done[BATCH];
	int n = run_poll(&s->run, done, BATCH);

	for (int i = 0; i < n; i++)
		pool_give(s->run.pool, done[i]);
	return n;
}

static int make_ring(struct source *s)
{
	s->filled_room = pool_count(s->run.pool);
	s->filled = calloc(s->filled_room, sizeof(struct block *));
	return s->filled ? 0 : -ENOMEM;
}

/* ---- the loop ---- */

static int complete(struct source *s)
{
	struct transfer_complete complete = {
		.files = s->run.stats->files,
		.bytes = s->run.stats->bytes,
		.errors = s->run.stats->errors,
	};
	uint8_t data[64];

	s->completed = true;
	return run_put(&s->run, TRANSFER_COMPLETE, data, transfer_put_complete(&complete, data, sizeof data));
}

/* One round: how much was done, or -errno. */
static int work(struct run *run)
{
	struct source *s = self(run);
	int total = 0;
	static int (*const steps[])(struct source *) = {
		take_frames, take_completions, take_all_filled, fill_blocks, send_blocks,
	};

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		int n = steps[i](s);

		if (n < 0)
			return n;
		total += n;
	}
	while (may_start(s)) {
		int r = start_file(s);

		if (r)
			return r;
		total++;
	}
	if (s->no_more && !s->open && !s->completed) {
		/* nothing of this transfer may be left on a channel for the next one */
		int r = s->run.engine->ops->settle(s->run.engine);

		if (r > 0)
			r = complete(s);
		else if (!r)
			return total;
		if (r)
			return r;
		total++;
	}
	return s->closed ? 1 : total;
}

static int loop(struct source *s)
{
	int r = 0;

	while (!s->closed && r >= 0) {
		r = work(&s->run);
		if (!r)
			r = run_wait(&s->run, work);
		if (r >= 0)
			r = run_tick(&s->run);
	}
	return r < 0 ? r : 0;
}

/* ---- the end ---- */

/* A transfer that was cut short: each file that was started is told. */
static void drop_files(struct source *s)
{
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++) {
		struct source_file *f = &s->files[i];

		if (!f->used)
			continue;
		if (!f->status)
			file_fail(f, 0, s->run.status ? s->run.status : STATUS_DISCONNECTED, "%s", s->run.text);
		file_finish(s, f);
	}
}

int transfer_send(struct link *link, const struct transfer_params *params, const struct transfer_source *from,
	struct transfer_stats *stats)
{
	struct source *s = calloc(1, sizeof *s);
	int r = -ENOMEM;

	if (s)
		s->files = calloc(TRANSFER_OPEN_MAX, sizeof *s->files);
	if (!s || !s->files) {
		free(s);
		return r;
	}
	run_init(&s->run, link, params, stats);
	s->from = from;
	s->reading_tail = &s->reading;
	r = handshake_offer(&s->run, from, &s->plan);
	if (!r)
		r = make_ring(s);
	if (!r)
		r = loop(s);
	if (!r && stats->errors)
		r = -EREMOTEIO;
	r = run_end(&s->run, r);
	drop_files(s);
	free(s->filled);
	free(s->files);
	free(s);
	return r;
}
