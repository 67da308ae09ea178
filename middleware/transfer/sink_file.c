/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_file: see sink_file.h.
 */
#include "transfer/sink_file.h"

#include "transfer/reread.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_MAX                                                                                  \
	65536u /* pieces that a file may be scattered in: more than any window of blocks */

static void run_job(struct io_pool_job *job)
{
	sink_file_settle(sink_file_of_job(job));
}

/* All that its FILE points to, in one piece of memory. */
static int copy_strings(struct sink_file *f)
{
	struct wire_bytes *const strings[] = {&f->file.name, &f->file.target, &f->file.user,
		&f->file.group, &f->file.xattrs, &f->file.acl, &f->file.default_acl};
	const size_t count = sizeof strings / sizeof *strings;
	size_t room = count;
	uint8_t *at;

	for (size_t i = 0; i < count; i++)
		room += strings[i]->len;
	at = f->strings = malloc(room);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (strings[i]->len)
			memcpy(at, strings[i]->data, strings[i]->len);
		strings[i]->data = at;
		at += strings[i]->len;
		*at++ = '\0';
	}
	return 0;
}

int sink_file_new(const struct transfer_sink *to, const struct transfer_file *file, uint64_t entry,
	struct sink_file **out)
{
	struct sink_file *f = calloc(1, sizeof *f);

	if (!f)
		return -ENOMEM;
	f->file = *file;
	if (copy_strings(f)) {
		free(f);
		return -ENOMEM;
	}
	f->to = to;
	f->entry = entry;
	f->digest = digest_entry_root(entry); /* a directory's, and all there is of it */
	f->job.run = run_job;
	ranges_init(&f->ranges, SPANS_MAX);
	*out = f;
	return 0;
}

void sink_file_free(struct sink_file *f)
{
	if (!f)
		return;
	digest_tree_free(f->tree);
	reorder_free(f->reorder);
	sink_resume_free(f->resume);
	ranges_fini(&f->ranges);
	free(f->strings);
	free(f);
}

int sink_file_open(struct sink_file *f, uint32_t window_blocks)
{
	char text[VERDICT_TEXT] = "";
	int err = f->to->open(f->to->ctx, &f->file, &f->target.end, &f->cookie, text);

	if (err) {
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err), "%s", text);
		return err;
	}
	f->window = window_blocks;
	if (!f->target.end) {
		verdict_note(&f->verdict, text, strlen(text));
		return 0;
	}
	err = digest_tree_new(&f->tree);
	if (!err && end_is_stream(f->target.end))
		err = reorder_new(window_blocks, &f->reorder);
	if (err)
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err), "out of memory");
	return 0; /* a failure of ours is settled as any other: it is open */
}

bool sink_file_is_stream(const struct sink_file *f)
{
	return f->file.kind == TRANSFER_FILE_STREAM;
}

void sink_file_again(struct sink_file *f)
{
	verdict_clear(&f->verdict);
}

bool sink_file_ends_well(
	const struct sink_file *f, const struct transfer_file_end *end, uint32_t block_bytes)
{
	uint64_t blocks = hole_blocks(end->size, block_bytes); /* with those in holes */

	if (sink_file_is_stream(f)) /* of any length, but none is empty */
		return end->blocks >= blocks && end->blocks <= end->size;
	return end->blocks <= blocks && end->blocks == blocks - f->hole_blocks &&
	       blocks <= hole_blocks(f->file.size, block_bytes);
}

bool sink_file_takes(
	const struct sink_file *f, const struct transfer_block *h, uint32_t block_bytes)
{
	uint64_t end = h->offset + h->length;

	if (!f->target.end || !f->ready || f->job_out || !h->length || end < h->offset)
		return false;
	if (f->end_known && f->landed >= f->end.blocks)
		return false;
	if (f->file.size != MESSAGE_UNKNOWN && end > f->file.size)
		return false;
	if (sink_file_is_stream(f)) /* of any length: ranges find the holes; numbers are given as
			     slots are used */
		return h->sequence < f->landed + f->window;
	return h->offset % block_bytes == 0 && (h->length == block_bytes || end == f->file.size);
}

/* Why bytes could not be taken note of. */
static void note_failure(struct sink_file *f, int err, unsigned long long offset)
{
	if (err == -ENOMEM)
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err),
			"out of memory at offset %llu", offset);
	else if (err)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_INCOMPLETE,
			"bytes at offset %llu came twice", offset);
}

int sink_file_hole(struct sink_file *f, const struct transfer_hole *h, struct hole_leaves *leaves,
	uint32_t block_bytes)
{
	const uint64_t end = h->offset + h->length;
	int err;

	if (!(f->file.has & TRANSFER_HAS_HOLES) || f->end_known || f->job_out || !f->ready ||
		end > f->file.size || h->offset % block_bytes ||
		(end % block_bytes && end != f->file.size))
		return -EBADMSG;
	f->hole_blocks += hole_blocks(h->length, block_bytes);
	if (f->verdict.status)
		return 0;
	if (end_is_stream(f->target.end)) { /* which would miss these zeros */
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_UNSUPPORTED,
			"a hole at offset %llu cannot be told to what is written in order",
			(unsigned long long)h->offset);
		return 0;
	}
	err = ranges_add(&f->ranges, h->offset, end);
	if (!err)
		err = hole_add(leaves, f->tree, h->offset, h->length, block_bytes);
	note_failure(f, err, h->offset);
	return 0;
}

/* The bytes of a block are there. */
static void note_block(
	struct sink_file *f, uint64_t from, uint64_t to, uint64_t index, uint64_t leaf)
{
	int err = ranges_add(&f->ranges, from, to);

	if (!err)
		err = digest_tree_add(f->tree, index, leaf);
	note_failure(f, err, from);
}

void sink_file_found(struct sink_file *f, const struct transfer_note *note, uint32_t block_bytes)
{
	uint64_t from = note->index * block_bytes, to = from + block_bytes;

	note_block(f, from, to < f->file.size ? to : f->file.size, note->index, note->leaf);
	f->landed++;
}

void sink_file_written(struct sink_file *f, const struct block *b, uint32_t block_bytes)
{
	unsigned long long offset = b->offset;

	if (b->error == -EILSEQ) {
		verdict_set(&f->verdict, VERDICT_BLOCK, STATUS_CHECKSUM,
			"wrong checksum of the block at offset %llu", offset);
		return;
	}
	if (b->error) {
		verdict_set(&f->verdict, VERDICT_BLOCK, status_from_errno(b->error),
			"writing at offset %llu: %s", offset, strerror(-b->error));
		return;
	}
	note_block(f, b->offset, b->offset + b->length,
		sink_file_is_stream(f) ? b->sequence : b->offset / block_bytes, b->leaf);
}

bool sink_file_complete(const struct sink_file *f)
{
	return f->end_known && !f->in_io && f->landed == f->end.blocks;
}

void sink_file_judge(struct sink_file *f)
{
	const struct transfer_file_end *end = &f->end;
	int err;

	/* of what has failed here the source says the same, once it has heard of it */
	f->at_source = end->status && !f->verdict.status;
	if (end->status)
		verdict_set(&f->verdict, VERDICT_FILE, end->status, TRANSFER_AT_SOURCE);
	else if (f->file.size != MESSAGE_UNKNOWN && end->size != f->file.size)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_INCOMPLETE,
			"%llu bytes were announced, the source ended it at %llu",
			(unsigned long long)f->file.size, (unsigned long long)end->size);
	else if (!ranges_complete(&f->ranges, end->size))
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_INCOMPLETE,
			"%llu of %llu bytes landed", (unsigned long long)ranges_bytes(&f->ranges),
			(unsigned long long)end->size);
	if (f->verdict.status)
		return;
	err = digest_tree_root(
		f->tree, end->blocks + f->hole_blocks, end->size, f->entry, &f->digest);
	if (err)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_INCOMPLETE,
			"blocks are missing from its digest");
	else if (f->digest != end->digest)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_DIGEST,
			"digest %016llx of what it is and holds, the source has %016llx",
			(unsigned long long)f->digest, (unsigned long long)end->digest);
}

/* Whether what has landed of a file that failed is still good: not if it is another file by now, or
 * could not be written here. */
static bool outlives(const struct sink_file *f)
{
	switch (f->verdict.status) {
	case STATUS_CHECKSUM: /* of a block, which was not written */
	case STATUS_CANCELLED:
	case STATUS_DISCONNECTED:
	case STATUS_TIMEOUT:
	case STATUS_SHUTDOWN:
		return true;
	case STATUS_CHANGED:
		return false;
	default: /* reading it may succeed the next time */
		return f->cut || f->at_source;
	}
}

static void give_up(struct sink_file *f)
{
	if (!f->resume || !outlives(f)) {
		f->to->discard(f->to->ctx, f->cookie);
		return;
	}
	sink_resume_flush(f->resume);
	f->to->resume->suspend(f->to->ctx, f->cookie);
}

/* What the disk has is what came. */
static void read_back(struct sink_file *f)
{
	uint64_t root;
	int err;

	if (!f->to->readback || f->file.kind != TRANSFER_FILE_REGULAR || f->verdict.status)
		return;
	err = reread_root(f->target.end, f->end.size, f->block, f->entry, false, &f->stop, &root);
	if (err)
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err),
			"reading it back: %s", strerror(-err));
	else if (root != f->digest)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_DIGEST,
			"what was read back from the disk is not what was written: digest %016llx, "
			"and not %016llx",
			(unsigned long long)root, (unsigned long long)f->digest);
}

void sink_file_settle(struct sink_file *f)
{
	char text[VERDICT_TEXT] = "";
	int err;

	if (!f->verdict.status && !f->to->unsynced) {
		err = end_sync(f->target.end);
		if (err)
			verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err), "fsync: %s",
				strerror(-err));
	}
	read_back(f);
	err = end_free(f->target.end);
	f->target.end = NULL;
	if (err)
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err), "close: %s",
			strerror(-err));
	if (f->verdict.status) {
		give_up(f);
		return;
	}
	err = f->to->commit(f->to->ctx, f->cookie, &f->file, f->end.size, text);
	if (!err)
		verdict_note(&f->verdict, text, strlen(text)); /* what of it could not be kept */
	else if (text[0])
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err), "%s", text);
	else
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(err),
			"giving it its name: %s", strerror(-err));
}

struct sink_file *sink_file_of_job(struct io_pool_job *job)
{
	return (struct sink_file *)((char *)job - offsetof(struct sink_file, job));
}
