/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_gathers: small files, read many at a time, so that they are sent together.
 *
 * Names come from `next` and are gathered.  A worker reads the files of a gather into a block until
 * that is full, and writes FILES meanwhile; the transfer's thread then gives the bundle its number
 * and sends both.  What is no small file it leaves, opened, to be sent by itself.
 *
 * Several gathers are read at once, and sent in their order: a directory is announced before what
 * is in it, and its end after that.  The first one always gets a block, so the others, which keep
 * theirs until their turn, cannot stop it.
 */
#include "transfer/source_bundles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_PART 2u /* a file of at most such a part of a block is a small one */
/* What an entry takes in FILES beside name and target, if nothing else comes with it. */
#define ENTRY_BYTES 47u

struct source_gather {
	struct io_pool_target target; /* first: its end fills a block */
	const struct transfer_source *from;
	struct transfer_reading reading;
	/* a worker's while `filling`, else the transfer's thread's */
	bool filling;
	struct transfer_item items[BUNDLE_FILES_MAX]; /* in order; those before `at` are taken */
	unsigned at, count;
	struct transfer_item apart[BUNDLE_FILES_MAX]; /* sent by themselves, after the bundle */
	unsigned apart_at, apart_count;
	struct source_bundle *bundle; /* that is being filled, or waits to be sent */
	struct block *block;          /* its bytes, while it waits */
	/* what was read for a FILES that had no room for it: the item is the next one */
	uint8_t *carried;
	uint64_t carried_bytes;
};

/* ---- in a worker ---- */

/* Whether an item can be in a bundle at all. */
static bool fits_bundles(const struct transfer_item *item)
{
	return item->error || item->closed ||
	       (transfer_is_bare(&item->file) && item->file.kind != TRANSFER_FILE_HARD_LINK);
}

/* Its attributes, and its bytes.  As `read`. */
static int64_t read_item(struct source_gather *g, struct transfer_item *item)
{
	if (!g->carried)
		return g->from->read(g->from->ctx, &g->reading, item);
	memcpy(g->reading.to, g->carried, g->carried_bytes);
	free(g->carried);
	g->carried = NULL;
	return (int64_t)g->carried_bytes;
}

/* FILES is full: what was read of a file waits for the next one. */
static bool carry(struct source_gather *g, const struct transfer_item *item)
{
	g->carried = malloc(item->file.size + 1);
	if (!g->carried)
		return false;
	memcpy(g->carried, g->reading.to, item->file.size);
	g->carried_bytes = item->file.size;
	g->items[g->at] = *item;
	return true;
}

static void take_apart(struct source_gather *g, const struct transfer_item *item)
{
	g->apart[g->apart_count++] = *item;
	g->at++;
}

/* The next item, into the bundle or apart.  1; 0: the bundle is full. */
static int fill_one(struct source_gather *g)
{
	const struct transfer_item *item = &g->items[g->at];
	struct source_bundle *bundle = g->bundle;
	struct source_entry *e = &bundle->entries[bundle->count];
	bool closed = item->closed && !item->error;
	int64_t n = 0;

	/* an end waits for what is before it: for those, too, that have no number yet */
	if (item->file.kind == TRANSFER_FILE_DIRECTORY_END && g->apart_count)
		return 0;
	if (wire_left(&bundle->writer.wire) <
		ENTRY_BYTES + item->file.name.len + item->file.target.len)
		return 0;
	*e = (struct source_entry){.item = *item};
	if (closed)
		n = read_item(g, &e->item);
	if (n == -ENOBUFS)
		return 0;
	if (n == -EFBIG || !fits_bundles(item)) {
		e->item.closed = false;
		take_apart(g, &e->item);
		return 1;
	}
	if (n < 0 || item->error)
		source_bundle_fail(e, n < 0 ? (int)n : item->error);
	if (source_bundle_put(bundle, e, g->reading.to)) {
		if (!bundle->count && !closed) { /* it is larger than any FILES */
			take_apart(g, item);
			return 1;
		}
		if (!closed || e->status || carry(g, &e->item)) {
			free(e->text);
			return 0;
		}
		source_bundle_fail(e, -ENOMEM);
		if (source_bundle_put(bundle, e, NULL))
			return 0;
	}
	e->item.closed = false;
	if (!e->status) {
		g->reading.to += e->item.file.size;
		g->reading.room -= (uint32_t)e->item.file.size;
		bundle->bytes += (uint32_t)e->item.file.size;
	}
	bundle->source_lost += e->status != 0;
	bundle->count++;
	g->at++;
	return 1;
}

static void fill(void *ctx, struct block *b)
{
	struct source_gather *g = ctx;

	g->reading.to = b->payload;
	g->reading.room = b->capacity;
	while (g->at < g->count && g->bundle->count < BUNDLE_FILES_MAX && fill_one(g))
		;
	if (g->at == g->count)
		g->from->read_end(g->from->ctx, &g->reading);
	b->length = g->bundle->bytes;
	b->error = 0;
}

static const struct end_calls gather_calls = {.fill = fill};

/* ---- the transfer's thread ---- */

int source_make_gathers(struct source *s, bool wanted)
{
	unsigned count = io_pool_batch(s->run.io_pool) == 1 ? 1 : 2 * s->plan.workers;
	int err = 0;

	if (!wanted || !s->from->read || s->from->feed)
		return 0;
	if (count > SOURCE_GATHERS_MAX)
		count = SOURCE_GATHERS_MAX;
	s->gathers = calloc(count, sizeof *s->gathers);
	if (!s->gathers)
		return -ENOMEM;
	for (unsigned i = 0; i < count && !err; i++) {
		struct source_gather *g = &s->gathers[i];

		s->gather_count++;
		g->from = s->from;
		g->reading.most = s->plan.block / SMALL_PART;
		err = end_calls_open(&gather_calls, g, &g->target.end);
	}
	return err;
}

void source_free_gathers(struct source *s)
{
	for (unsigned i = 0; i < s->gather_count; i++) {
		end_free(s->gathers[i].target.end);
		free(s->gathers[i].carried);
	}
	free(s->gathers);
	s->gathers = NULL;
	s->gather_count = 0;
}

/* The i-th of those that are in use, in order. */
static struct source_gather *gather_at(const struct source *s, unsigned i)
{
	return &s->gathers[(s->gather_first + i) % s->gather_count];
}

/* Asks for names until it has enough.  How many, or -errno. */
static int gather_names(struct source *s, struct source_gather *g)
{
	g->at = g->count = g->apart_at = g->apart_count = 0;
	while (!s->no_more && g->count < BUNDLE_FILES_MAX) {
		struct transfer_item *item = &g->items[g->count];
		int err;

		*item = (struct transfer_item){0};
		err = s->from->next(s->from->ctx, item);
		if (err < 0)
			run_fail(&s->run, VERDICT_TRANSFER, status_from_errno(err),
				"reading the list of files");
		s->no_more |= err <= 0;
		if (err > 0 && item->error && !transfer_name_ok(item->file.name)) {
			/* no name that could cross: COMPLETE's count of errors tells */
			s->run.stats->errors++;
			s->from->done(s->from->ctx, item, status_from_errno(item->error), "");
		} else if (err > 0) {
			g->count++;
		}
		if (err < 0)
			return RUN_FAILED;
	}
	return (int)g->count;
}

/* Gives it a block to fill, if there is one that it may have.  1, 0 or -errno. */
static int begin_fill(struct source *s, struct source_gather *g, bool first)
{
	struct block *b;

	if (pool_free_count(s->run.pool) < (first ? 1u : 2u))
		return 0;
	g->bundle = source_bundle_new();
	if (!g->bundle)
		return -ENOMEM;
	b = pool_take(s->run.pool, BLOCK_FILLING);
	b->owner = g;
	b->session = 0; /* it has no number yet */
	b->offset = 0;
	b->length = s->plan.block;
	b->squeeze = squeeze_choice_next(&s->squeeze);
	g->filling = true;
	io_pool_submit(s->run.io_pool, s->next_worker++, b);
	return 1;
}

int source_take_gathered(struct source *s, struct block *b)
{
	struct source_gather *g = b->owner;

	g->filling = false;
	if (b->error) {
		int error = b->error;

		pool_give(s->run.pool, b);
		return error;
	}
	g->block = b;
	if (g->bundle->count)
		return 0;
	source_bundle_free(g->bundle);
	g->bundle = NULL;
	pool_give(s->run.pool, b);
	return 0;
}

static struct source_file *free_slot(struct source *s)
{
	struct source_file *f = &s->files[(s->last_number + 1) % TRANSFER_OPEN_MAX];

	return f->used ? NULL : f;
}

/* FILES, and its block.  1; 0: not yet; -errno. */
static int send_bundle(struct source *s, struct source_gather *g)
{
	struct source_bundle *bundle = g->bundle;
	struct source_file *f = free_slot(s);
	struct source_entry *fewer;
	int err;

	if (!f)
		return 0;
	*f = (struct source_file){
		.number = ++s->last_number,
		.used = true,
		.ready = true,
		.read_all = true,
		.ended = true,
		.bundle = bundle,
	};
	g->bundle = NULL;
	s->bundles++;
	err = run_put(
		&s->run, TRANSFER_FILES, bundle->frame, bundle_end(&bundle->writer, f->number));
	free(bundle->frame);
	bundle->frame = NULL;
	fewer = realloc(bundle->entries, bundle->count * sizeof *bundle->entries);
	if (fewer)
		bundle->entries = fewer;
	if (err || !bundle->bytes) {
		pool_give(s->run.pool, g->block);
		return err ? err : 1;
	}
	g->block->owner = f;
	g->block->session = f->number;
	f->in_io++;
	source_queue_block(s, g->block);
	return 1;
}

/* Starts those that go by themselves.  1: all are; 0: not yet; -errno. */
static int begin_apart(struct source *s, struct source_gather *g)
{
	while (g->apart_at < g->apart_count) {
		struct source_file *f = free_slot(s);
		int err;

		if (!f || !source_may_begin(s))
			return 0;
		*f = (struct source_file){.item = g->apart[g->apart_at++]};
		err = source_begin_file(s, f);
		if (err)
			return err;
	}
	g->apart_at = g->apart_count = 0;
	return 1;
}

/* The first gather goes on as far as it can.  1: it has nothing left; 0: not yet; -errno. */
static int advance_first(struct source *s, struct source_gather *g, int *did)
{
	int got = 1;

	while (!g->filling && got > 0) {
		if (g->bundle)
			got = send_bundle(s, g);
		else if (g->apart_count)
			got = begin_apart(s, g);
		else if (g->at < g->count)
			got = begin_fill(s, g, true);
		else
			return 1;
		*did += got > 0;
	}
	return got < 0 ? got : 0;
}

int source_gather(struct source *s)
{
	int did = 0, got = 0;

	if (!s->gathers)
		return 0;
	while (s->gathers_used && (got = advance_first(s, gather_at(s, 0), &did)) > 0) {
		s->gather_first = (s->gather_first + 1) % s->gather_count;
		s->gathers_used--;
	}
	for (unsigned i = 1; i < s->gathers_used && got >= 0; i++) {
		struct source_gather *g = gather_at(s, i);

		if (g->filling || g->bundle || g->apart_count || g->at == g->count)
			continue;
		got = begin_fill(s, g, false);
		did += got > 0;
	}
	if (got >= 0 && !s->no_more && s->gathers_used < s->gather_count) {
		struct source_gather *g = gather_at(s, s->gathers_used);

		got = gather_names(s, g);
		did += got > 0;
		s->gathers_used += g->count > 0; /* those that came before an error are told */
	}
	return got < 0 ? got : did;
}

bool source_gathered_all(const struct source *s)
{
	return !s->gathers_used;
}

bool source_is_gathering(const struct source *s)
{
	for (unsigned i = 0; i < s->gathers_used; i++)
		if (gather_at(s, i)->filling)
			return true;
	return false;
}

/* ---- cut short ---- */

static void drop_items(struct source *s, struct transfer_item *items, unsigned at, unsigned count)
{
	for (; at < count; at++) {
		struct transfer_item *item = &items[at];
		bool failed = item->error;

		source_tell_item(s, item,
			failed ? status_from_errno(item->error) : run_cut_status(&s->run),
			failed ? "" : s->run.verdict.text);
		end_free(item->end);
	}
}

void source_drop_gathers(struct source *s)
{
	for (; s->gathers_used; s->gathers_used--) {
		struct source_gather *g = gather_at(s, 0);

		if (g->bundle)
			source_drop_unsent(s, g->bundle);
		g->bundle = NULL;
		drop_items(s, g->apart, g->apart_at, g->apart_count);
		drop_items(s, g->items, g->at, g->count);
		if (s->from->read_end)
			s->from->read_end(s->from->ctx, &g->reading);
		s->gather_first = (s->gather_first + 1) % s->gather_count;
	}
}
