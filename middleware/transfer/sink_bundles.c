/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_bundles: small files that come together, from FILES to RESULTS.
 *
 *     FILES, block  --verify-->  land (a job thread)  -->  ends of directories, RESULTS
 *
 * Directories are made as FILES comes, in order, so that they are there, with their modes, before a
 * job thread makes files in them.  FILES and its block come in any order.
 */
#include "transfer/sink_impl.h"

#include "block/digest.h"
#include "proto/bundle.h"
#include "transfer/bundle_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Descriptors of one job: an opened file has up to four, and so many jobs run at once; half of them
 * are for files that come by themselves. */
#define LANDING_PART 2u
#define RESULTS_BYTES 4096u /* of a frame: most have no results, and some a few */

struct sink_bundle {
	struct bundle_files files;
	bool block_came, verified;
	struct block *block; /* while its bytes are needed */
	unsigned offered;    /* entries before this one are */
	unsigned ends_at;    /* ends of directories before this one are done */
	bool has_ends;
	unsigned open_max;
	const struct transfer_sink *to;
};

bool sink_takes_bundles(const struct sink *s)
{
	return s->to->land;
}

static void bundle_free(struct sink_bundle *bundle)
{
	bundle_files_fini(&bundle->files);
	free(bundle);
}

static bool has_bytes(const struct bundle_file *e)
{
	return e->arrival.file.size;
}

/* ---- FILES ---- */

/* What has no bytes has its digest already. */
static bool check_bare(struct bundle_file *e)
{
	if (!transfer_is_bare(&e->arrival.file))
		return true;
	e->root = digest_entry_root(e->sum);
	if (e->root != e->digest)
		bundle_files_fail(e, STATUS_DIGEST, "another digest than the source has");
	return !e->arrival.status;
}

/* Makes what is a directory, and asks for the others.  0, or -EAGAIN: when there are descriptors.
 */
static int offer_entry(struct sink *s, struct sink_bundle *bundle, struct bundle_file *e)
{
	const struct transfer_file *file = &e->arrival.file;
	char text[VERDICT_TEXT] = "";
	struct end *end = NULL;
	int err;

	if (e->arrival.status || !check_bare(e))
		return 0;
	if (file->kind == TRANSFER_FILE_DIRECTORY_END) {
		bundle->has_ends = true;
		return 0;
	}
	if (file->kind == TRANSFER_FILE_DIRECTORY || file->kind == TRANSFER_FILE_SPECIAL ||
		file->kind == TRANSFER_FILE_ATTRIBUTES)
		err = s->to->open(s->to->ctx, file, &end, &e->arrival.cookie, text);
	else
		err = s->to->admit(s->to->ctx, file, &e->arrival.cookie, text);
	if ((err == -EMFILE || err == -ENFILE) && sink_may_wait(s))
		return -EAGAIN;
	s->lacking_since_ns = 0;
	if (err)
		bundle_files_fail(e, status_from_errno(err), text);
	else if (*text)
		e->arrival.text = strdup(text);
	return 0;
}

/* ---- landing ---- */

static void land_job(struct io_pool_job *job)
{
	struct sink_bundle *bundle = sink_file_of_job(job)->bundle;
	struct transfer_arrival *arrivals[BUNDLE_FILES_MAX];
	const uint8_t *data = bundle->block ? bundle->block->payload : NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < bundle->files.count; i++) {
		struct bundle_file *e = &bundle->files.entries[i];
		const struct transfer_file *file = &e->arrival.file;

		e->arrival.data = data;
		if (has_bytes(e))
			data += file->size;
		if (e->arrival.status ||
			(file->kind != TRANSFER_FILE_REGULAR && file->kind != TRANSFER_FILE_LINK))
			continue;
		if (file->kind == TRANSFER_FILE_REGULAR) {
			e->root = digest_small_root(
				file->size, digest_leaf(e->arrival.data, file->size), e->sum);
			if (e->root != e->digest) {
				bundle_files_fail(e, STATUS_DIGEST,
					"another digest of what it is and holds than the source "
					"has");
				continue;
			}
		}
		arrivals[count++] = &e->arrival;
	}
	bundle->to->land(bundle->to->ctx, arrivals, count, bundle->open_max);
}

/* Once all of it is there, and its directories are. */
static void land(struct sink *s, struct sink_file *f)
{
	if (f->bundle->offered < f->bundle->files.count ||
		(f->bundle->files.bytes && !f->bundle->verified))
		return;
	f->job_out = true;
	f->job.run = land_job;
	io_pool_submit_job(s->run.io_pool, &f->job);
}

/* 0 or -EBADMSG.  The I/O pool verifies the block, and writes it nowhere. */
static int take_block(struct sink *s, struct sink_file *f, struct block *b)
{
	struct sink_bundle *bundle = f->bundle;

	if (bundle->block_came || b->sequence || b->offset || b->length != bundle->files.bytes)
		return -EBADMSG;
	bundle->block_came = true;
	pool_move(b, BLOCK_DRAINING);
	f->in_io++;
	b->owner = f;
	io_pool_submit(s->run.io_pool, s->next_worker++, b);
	return 0;
}

int sink_take_bundle_block(struct sink *s, struct sink_file *f, struct block *b)
{
	return take_block(s, f, b);
}

void sink_bundle_again(struct sink_file *f)
{
	f->bundle->block_came = false;
}

int sink_keep_early(struct sink *s, struct block *b)
{
	struct block **slot = &s->early[b->session % TRANSFER_OPEN_MAX];

	if (!sink_takes_bundles(s) || *slot || s->complete_came || b->session <= s->last_number ||
		b->session - s->last_number > TRANSFER_OPEN_MAX)
		return -EBADMSG;
	*slot = b;
	s->early_count++;
	engine_sink_retain(s->run.sink, b);
	return 0;
}

int sink_bundle_verified(struct sink *s, struct sink_file *f, struct block *b)
{
	struct sink_bundle *bundle = f->bundle;

	bundle->block = b;
	if (!b->error)
		sink_count_verified(s, b);
	for (unsigned i = 0; i < bundle->files.count && b->error; i++)
		if (has_bytes(&bundle->files.entries[i]))
			bundle_files_fail(&bundle->files.entries[i],
				b->error == -EILSEQ ? STATUS_CHECKSUM : status_from_errno(b->error),
				b->error == -EILSEQ ? "wrong checksum of the block that it came in"
						    : strerror(-b->error));
	bundle->verified = true;
	land(s, f);
	return 0;
}

int sink_offer_bundles(struct sink *s)
{
	int n = 0;

	while (s->offering) {
		struct sink_file *f = s->offering;
		struct sink_bundle *bundle = f->bundle;

		while (bundle->offered < bundle->files.count) {
			if (offer_entry(s, bundle, &bundle->files.entries[bundle->offered]))
				return n;
			bundle->offered++;
			n++;
		}
		s->offering = f->next;
		if (!s->offering)
			s->offering_tail = &s->offering;
		f->next = NULL;
		land(s, f);
	}
	return n;
}

int sink_take_bundle(struct sink *s, const uint8_t *data, size_t len)
{
	struct sink_bundle *bundle;
	struct sink_file **slot, *f;
	struct block **early;
	uint32_t number;
	int err;

	if (!sink_takes_bundles(s))
		return -EBADMSG;
	bundle = calloc(1, sizeof *bundle);
	if (!bundle)
		return -ENOMEM;
	err = bundle_files_parse(&bundle->files, data, len, s->block, &number);
	if (err) {
		bundle_free(bundle);
		return err;
	}
	err = sink_early_has(s, number) && !s->ahead.invited ? -EBADMSG
							     : sink_take_slot(s, number, &slot);
	f = err ? NULL : calloc(1, sizeof *f);
	if (!f) {
		bundle_free(bundle);
		return err ? err : -ENOMEM;
	}
	bundle->to = s->to;
	bundle->open_max = s->opened_max / LANDING_PART;
	f->file.file = number;
	f->to = s->to;
	f->bundle = bundle;
	f->target.end = s->nowhere;
	f->end_known = true;
	ranges_init(&f->ranges, 1);
	*slot = f;
	s->last_number++;
	s->open++;
	*s->offering_tail = f;
	s->offering_tail = &f->next;
	early = &s->early[number % TRANSFER_OPEN_MAX];
	if (*early) {
		struct block *b = *early;

		*early = NULL;
		s->early_count--;
		err = take_block(s, f, b);
	} else if (s->ahead.invited) {
		struct block *b = sink_early_waiting(s, number);

		err = b ? take_block(s, f, b) : 0;
	}
	sink_offer_bundles(s);
	return err;
}

bool sink_bundle_misses_block(const struct sink_file *f)
{
	return f->bundle && f->bundle->files.bytes && !f->bundle->block_came;
}

uint32_t sink_bundle_count(const struct sink_file *f)
{
	return f->bundle->files.count;
}

/* ---- RESULTS ---- */

static int put_results(struct sink *s, const struct sink_file *f)
{
	const struct sink_bundle *bundle = f->bundle;
	uint8_t frame[RESULTS_BYTES];
	struct bundle_writer writer;
	int err;

	bundle_results_begin(&writer, frame, sizeof frame);
	for (unsigned i = 0; i < bundle->files.count; i++) {
		const struct transfer_arrival *a = &bundle->files.entries[i].arrival;
		const struct bundle_result result = {
			.place = (uint16_t)(i + 1),
			.status = a->status,
			.text = {(const uint8_t *)a->text, a->text ? strlen(a->text) : 0},
		};

		if ((!a->status && !a->text) || !bundle_results_add(&writer, &result))
			continue;
		err = run_put(&s->run, TRANSFER_RESULTS, frame,
			bundle_results_end(&writer, f->file.file, true, 0));
		if (err)
			return err;
		bundle_results_begin(&writer, frame, sizeof frame);
		bundle_results_add(&writer, &result);
	}
	return run_put(&s->run, TRANSFER_RESULTS, frame,
		bundle_results_end(&writer, f->file.file, false, bundle_files_sum(&bundle->files)));
}

/* `done` of each, and the record goes. */
static void finish(struct sink *s, struct sink_file *f)
{
	struct sink_bundle *bundle = f->bundle;

	for (unsigned i = 0; i < bundle->files.count; i++) {
		const struct transfer_arrival *a = &bundle->files.entries[i].arrival;

		if (a->status) {
			s->run.stats->errors++;
		} else if (transfer_counts(&a->file)) {
			s->run.stats->files++;
			s->run.arrived_bytes += a->file.size;
		}
		s->to->done(s->to->ctx, &a->file, a->status, a->text ? a->text : "");
	}
	sink_unlink_file(s, f);
	bundle_free(bundle);
	sink_file_free(f);
}

static int finish_bundle(struct sink *s, struct sink_file *f)
{
	int err = put_results(s, f);

	finish(s, f);
	return err;
}

int sink_bundle_landed(struct sink *s, struct sink_file *f)
{
	struct sink_bundle *bundle = f->bundle;
	struct sink_file **at = &s->landed;

	if (bundle->block)
		sink_give(s, bundle->block);
	bundle->block = NULL;
	if (!bundle->has_ends)
		return finish_bundle(s, f);
	while (*at && (*at)->file.file < f->file.file)
		at = &(*at)->next;
	f->next = *at;
	*at = f;
	return 0;
}

/* 1: all of its ends are done; 0: not yet. */
static int end_directories(struct sink *s, struct sink_bundle *bundle)
{
	for (; bundle->ends_at < bundle->files.count; bundle->ends_at++) {
		struct bundle_file *e = &bundle->files.entries[bundle->ends_at];
		char text[VERDICT_TEXT] = "";
		struct end *end = NULL;
		int err;

		if (e->arrival.file.kind != TRANSFER_FILE_DIRECTORY_END || e->arrival.status)
			continue;
		err = s->to->open(s->to->ctx, &e->arrival.file, &end, &e->arrival.cookie, text);
		if ((err == -EMFILE || err == -ENFILE) && sink_may_wait(s))
			return 0;
		s->lacking_since_ns = 0;
		if (err)
			bundle_files_fail(e, status_from_errno(err), text);
		else if (*text)
			e->arrival.text = strdup(text);
	}
	return 1;
}

int sink_end_bundles(struct sink *s)
{
	int n = 0, err = 0;

	while (!err && s->landed && sink_is_oldest(s, s->landed)) {
		struct sink_file *f = s->landed;

		if (!end_directories(s, f->bundle))
			break;
		s->landed = f->next;
		f->next = NULL;
		err = finish_bundle(s, f);
		n++;
	}
	return err ? err : n;
}

/* The job of one that was submitted has run; the blocks are gone. */
void sink_drop_bundle(struct sink *s, struct sink_file *f)
{
	struct sink_bundle *bundle = f->bundle;

	for (unsigned i = 0; i < bundle->files.count; i++) {
		struct bundle_file *e = &bundle->files.entries[i];
		bool ends = e->arrival.file.kind == TRANSFER_FILE_DIRECTORY_END;

		if (!f->job_out || (ends && i >= bundle->ends_at))
			bundle_files_fail(e, run_cut_status(&s->run), s->run.verdict.text);
	}
	finish(s, f);
}
