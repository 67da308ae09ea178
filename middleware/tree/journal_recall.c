/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_recall: what a journal says, as far as the partial file proves it.
 *
 * Neither was flushed, so each block that is noted is read and compared with its checksum, whoever
 * was killed and however.  The next transfer may have blocks of another size: what is proved is
 * then read once more, for the checksums of those.
 */
#include "tree/journal_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "block/digest.h"
#include "block/ranges.h"
#include "tree/journal_gaps.h"
#include "tree/journal_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECALL_NS (NS_PER_S / 4) /* before the source hears of it */
#define SPANS_MAX 65536u         /* pieces that are kept; what is scattered more is sent again */

/* What is noted, in the order of the notes. */
struct recall_block {
	uint64_t index, leaf;
	size_t order;
};

struct recall {
	const struct journal *journal;
	int fd;         /* the partial file */
	uint32_t block; /* of the notes */
	struct recall_block *blocks;
	size_t count, room;
	bool torn; /* something behind the last record */
	uint8_t *buffer;
	struct ranges ranges; /* what is proved, of blocks of another size */
	/* how far it is: in `blocks`, and then in `ranges` */
	size_t at, span;
	uint64_t index;
	uint64_t until_ns;
	struct transfer_notes *found;
};

static int recall_add(struct recall *r, struct journal_block block)
{
	if (r->count == r->room) {
		size_t room = r->room ? r->room * 2 : 256;
		struct recall_block *grown = realloc(r->blocks, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->blocks = grown;
		r->room = room;
	}
	r->blocks[r->count] = (struct recall_block){block.index, block.leaf, r->count};
	r->count++;
	return 0;
}

/* Takes in one record.  -errno: it and what follows do not count. */
static int recall_record(struct recall *r, const struct journal_record *record)
{
	int err = 0;

	if (record->type == JOURNAL_FILE) {
		if (!journal_is_same(r->journal, &record->file))
			return -ESTALE;
		r->block = record->file.block;
		r->count = 0;
		return 0;
	}
	if (!r->block || record->type != JOURNAL_BLOCKS)
		return -EBADMSG;
	for (unsigned i = 0; i < record->count && !err; i++) {
		struct journal_block block = journal_record_block(record, i);

		if (block.index > (r->journal->file.size - 1) / r->block)
			return -EBADMSG;
		err = recall_add(r, block);
	}
	return err;
}

/* Reads the journal up to where it ends, or is not right any more; gives that place. */
static off_t recall_read(struct recall *r)
{
	struct journal_reader reader;
	struct journal_record record;
	off_t at = 0;
	int n = journal_reader_init(&reader, r->journal->fd);

	while (!n && (n = journal_reader_next(&reader, &record)) > 0) {
		n = recall_record(r, &record) ? -EBADMSG : 0;
		if (!n)
			at = reader.at;
	}
	r->torn = n == -EBADMSG;
	journal_reader_fini(&reader);
	return at;
}

static int recall_compare(const void *a, const void *b)
{
	const struct recall_block *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* In ascending order, each once: what was noted last. */
static void recall_sort(struct recall *r)
{
	size_t kept = 0;

	if (r->count)
		qsort(r->blocks, r->count, sizeof(*r->blocks), recall_compare);
	for (size_t i = 0; i < r->count; i++) {
		if (kept && r->blocks[kept - 1].index == r->blocks[i].index)
			kept--;
		r->blocks[kept++] = r->blocks[i];
	}
	r->count = kept;
}

/* The checksum of a piece of the partial file.  0, or -errno: it cannot be read whole. */
static int recall_leaf(struct recall *r, uint64_t from, uint64_t bytes, uint64_t *leaf)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(r->fd, r->buffer + done, bytes - done, (off_t)(from + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		done += (size_t)n;
	}
	*leaf = digest_leaf(r->buffer, bytes);
	return 0;
}

static uint64_t recall_length(const struct recall *r, uint64_t from, uint32_t block)
{
	uint64_t left = r->journal->file.size - from;

	return left < block ? left : block;
}

static bool recall_is_stopped(const struct recall *r)
{
	return atomic_load_explicit(&r->found->stop, memory_order_relaxed);
}

/* Whether to go on now. */
static bool recall_has_time(const struct recall *r)
{
	return !recall_is_stopped(r) && clock_now_ns() < r->until_ns;
}

/* Reads what is noted: what is true is added to `found`, or, for blocks of another size, to
 * `ranges`. */
static void recall_prove(struct recall *r)
{
	bool same = r->block == r->journal->file.block;

	for (; r->at < r->count && recall_has_time(r); r->at++) {
		const struct recall_block *b = &r->blocks[r->at];
		uint64_t from = b->index * r->block, bytes = recall_length(r, from, r->block), leaf;

		if (recall_leaf(r, from, bytes, &leaf) || leaf != b->leaf)
			continue;
		/* what is not added for want of memory is sent again */
		if (same)
			(void)transfer_notes_add(r->found, b->index, leaf);
		else
			(void)ranges_add(&r->ranges, from, from + bytes);
	}
}

/* The blocks of another size that are all within what is proved. */
static void recall_cut(struct recall *r)
{
	uint32_t block = r->journal->file.block;

	for (; r->span < r->ranges.count && recall_has_time(r); r->span++, r->index = 0) {
		const struct ranges_span *span = &r->ranges.spans[r->span];
		uint64_t leaf;

		if (!r->index)
			r->index = span->from / block + (span->from % block != 0);
		for (; r->index * block < span->to; r->index++) {
			uint64_t from = r->index * block, bytes = recall_length(r, from, block);

			if (bytes > span->to - from)
				break;
			if (!recall_has_time(r))
				return;
			if (!recall_leaf(r, from, bytes, &leaf))
				(void)transfer_notes_add(r->found, r->index, leaf);
		}
	}
}

void journal_recall_free(struct recall *r)
{
	if (!r)
		return;
	ranges_fini(&r->ranges);
	free(r->buffer);
	free(r->blocks);
	free(r);
}

/* Reads the journal.  0 or -ENOMEM: nothing of it is believed. */
static int recall_begin(struct journal *j, int fd, uint32_t block_bytes)
{
	struct recall *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	j->recall = r;
	r->journal = j;
	r->fd = fd;
	ranges_init(&r->ranges, SPANS_MAX);
	j->file.block = block_bytes;
	j->end = recall_read(r);
	if (j->holes && r->count && journal_gaps_check(fd, j->file.size)) {
		log_debug("a file with holes begins anew: its file system cannot make holes");
		j->end = 0;
		r->torn = true;
		r->count = 0;
	}
	recall_sort(r);
	r->buffer = malloc(r->block > block_bytes ? r->block : block_bytes);
	return r->buffer ? 0 : -ENOMEM;
}

/* Where a hole cannot be made after all, what is proved is given up, and the file begins anew: it
 * would not get its name when all of it has come. */
static void recall_empty_gaps(struct journal *j, int fd, struct transfer_notes *found)
{
	int err = journal_gaps_empty(fd, j->file.size, found, j->file.block);

	if (err && found->count) {
		log_warning("what an earlier transfer left of a file with holes cannot be used, "
			    "since no hole can be made in it (%s): all of it comes again",
			strerror(-err));
		found->count = 0;
		err = journal_gaps_empty(fd, j->file.size, found, j->file.block);
	}
	j->fault = err;
}

/* All is read: the journal says what is true.  Stopped before, it stays as it is. */
static void recall_end(struct journal *j, int fd, struct transfer_notes *found)
{
	struct recall *r = j->recall;

	if (j->holes && (!r || !recall_is_stopped(r)))
		recall_empty_gaps(j, fd, found);
	j->noted = found->count || (r && r->count && recall_is_stopped(r));
	if (!r || !recall_is_stopped(r)) {
		if (!r || r->block != j->file.block || found->count != r->count || r->torn) {
			if (ftruncate(j->fd, j->end))
				j->broken = true;
			journal_begin(j);
			journal_note(j, found->items, found->count);
		}
	}
	journal_recall_free(r);
	j->recall = NULL;
}

bool journal_recall(struct journal *j, int fd, uint32_t block_bytes, struct transfer_notes *found)
{
	if (!j->recall && recall_begin(j, fd, block_bytes)) {
		journal_recall_free(j->recall);
		j->recall = NULL;
	}
	if (j->recall) {
		struct recall *r = j->recall;

		r->found = found;
		r->until_ns = clock_now_ns() + RECALL_NS;
		recall_prove(r);
		if (r->at == r->count)
			recall_cut(r);
		if (!recall_is_stopped(r) && (r->at < r->count || r->span < r->ranges.count))
			return true;
	}
	recall_end(j, fd, found);
	return false;
}
