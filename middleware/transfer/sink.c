/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink: the sink loop.
 *
 *     notice --LANDED--> (reorder, streams only) --> verify, end --FREE--> pool --> grant
 *
 * One thread: takes in frames and landed blocks (transfer/sink_blocks.c), proves with ranges and
 * the tree digest that a file is whole, and has a job thread make it real.  What a peer may not do
 * is -EBADMSG and ends the session.
 */
#include "transfer/sink_impl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u /* jobs, before other work has its turn */

static struct sink *self(struct run *run)
{
	return (struct sink *)run;
}

/* ---- frames ---- */

int sink_check_finished(struct sink *s, struct sink_file *f)
{
	if (f->end_known && f->landed > f->end.blocks)
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"file %u: more blocks than were sent", f->file.file);
	if (f->refused)
		return sink_file_complete(f) ? sink_finish_file(s, f) : 0;
	if (!f->ready) /* it was ended early */
		return 0;
	if (f->job_out || !sink_file_complete(f) || (f->resume && f->resume->out))
		return 0;
	sink_file_judge(f);
	f->job_out = true;
	io_pool_submit_job(s->run.io_pool, &f->job);
	return 0;
}

int sink_fail_early(struct sink *s, struct sink_file *f)
{
	int err = sink_tell_result(s, f);

	return err ? err : sink_check_finished(s, f);
}

static int take_file(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_file file;
	int err;

	if (transfer_get_file(&file, data, len))
		return -EBADMSG;
	err = sink_add_file(s, &file, digest_leaf(data, len));
	if (!err)
		err = sink_open_files(s);
	return err < 0 ? err : 0;
}

static int take_hole(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_hole hole;
	struct sink_file *f;
	int err;

	if (transfer_get_hole(&hole, data, len))
		return -EBADMSG;
	f = sink_find_file(s, hole.file);
	err = f ? sink_file_hole(f, &hole, &s->hole_leaves, s->block) : -EBADMSG;
	if (err)
		return err;
	atomic_fetch_add_explicit(&s->run.stats->bytes, hole.length, memory_order_relaxed);
	s->run.stats->hole_bytes += hole.length;
	return f->verdict.status ? sink_fail_early(s, f) : 0;
}

static int take_file_end(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_file_end end;
	struct sink_file *f;

	if (transfer_get_file_end(&end, data, len))
		return -EBADMSG;
	f = sink_find_file(s, end.file);
	if (!f || f->bundle || !(f->ready || s->ahead.on) || f->end_known ||
		transfer_is_bare(&f->file))
		return -EBADMSG;
	if (!sink_file_ends_well(f, &end, s->block))
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"file %u: %llu bytes cannot have been sent in %llu blocks", end.file,
			(unsigned long long)end.size, (unsigned long long)end.blocks);
	f->end = end;
	f->end_known = true;
	return sink_check_finished(s, f);
}

/* Whether the source has said all of a file that it can. */
static bool is_all_said(const struct sink_file *f)
{
	return f->end_known || transfer_is_bare(&f->file);
}

static int take_complete(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_complete complete;
	uint32_t untold = 0;

	if (s->early_count || sink_early_beyond(s) || transfer_get_complete(&complete, data, len))
		return -EBADMSG;
	/* what is left may only be files that all was said of; of some of them the source may have
	 * been told that they failed */
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++) {
		if (s->files[i] && !is_all_said(s->files[i]))
			return -EBADMSG;
		if (s->files[i] && !s->files[i]->told)
			untold += s->files[i]->bundle ? sink_bundle_count(s->files[i]) : 1;
	}
	if (untold > complete.open)
		return -EBADMSG;
	s->complete_came = true;
	s->source_sums = complete;
	return 0;
}

static int take_frame(struct sink *s, const struct message_header *h, const uint8_t *data)
{
	int err = engine_sink_frame(s->run.sink, h->type, data, h->length);

	if (err)
		return err < 0 ? err : 0;
	switch (h->type) {
	case TRANSFER_FILE:
		return take_file(s, data, h->length);
	case TRANSFER_HOLE:
		return take_hole(s, data, h->length);
	case TRANSFER_FILE_END:
		return take_file_end(s, data, h->length);
	case TRANSFER_FILES:
		return sink_take_bundle(s, data, h->length);
	case TRANSFER_COMPLETE:
		return take_complete(s, data, h->length);
	default:
		return -EBADMSG;
	}
}

static int take_frames(struct sink *s)
{
	struct message_header h;
	const uint8_t *data;
	int n = 0, got, err;

	while (n < (int)RUN_FRAMES_MAX && (got = run_get(&s->run, &h, &data)) != 0) {
		if (got > 0) {
			s->run.moved |= h.type != TRANSFER_REQUEST; /* asking moves nothing */
			/* it was the source's last word, but for ABORT */
			err = s->complete_came ? -EBADMSG : take_frame(s, &h, data);
		} else {
			err = got;
		}
		if (err == -EBADMSG)
			return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
				"%s from the source is malformed or out of turn",
				message_name(h.type));
		if (err)
			return err;
		n++;
	}
	return n;
}

/* ---- jobs ---- */

static void run_flush(struct io_pool_job *job)
{
	struct sink_flush *flush =
		(struct sink_flush *)((char *)job - offsetof(struct sink_flush, job));

	flush->error = flush->to->flush(flush->to->ctx);
}

/* Nothing more will land: makes it stable, which may take long.  1: it is; 0: not yet; or a
 * failure.
 */
static int flush_files(struct sink *s)
{
	struct sink_flush *flush = &s->flush;

	if (!s->to->flush || !s->run.stats->files)
		return 1;
	if (!flush->begun) {
		flush->begun = true;
		flush->to = s->to;
		flush->job.run = run_flush;
		io_pool_submit_job(s->run.io_pool, &flush->job);
	}
	if (flush->done && flush->error)
		return run_fail(&s->run, VERDICT_TRANSFER, STATUS_UNSYNCED,
			"flushing all files: %s", strerror(-flush->error));
	return flush->done;
}

static int take_job(struct sink *s, struct io_pool_job *job)
{
	struct sink_resume *resume = sink_resume_of_job(job);
	struct sink_file *f = resume ? resume->owner : sink_file_of_job(job);

	if (job == &s->flush.job) {
		s->flush.done = true;
		return 0;
	}
	if (!resume && f->bundle)
		return sink_bundle_landed(s, f);
	if (!resume)
		return sink_finish_file(s, f);
	if (!f->ready)
		s->telling++;
	if (!f->ready)
		return 0;
	if (!sink_file_complete(f))
		sink_resume_note(resume, s->run.io_pool);
	return sink_check_finished(s, f); /* it may have waited for the notes only */
}

static int take_jobs(struct sink *s)
{
	struct io_pool_job *done[BATCH];
	unsigned n = io_pool_collect_jobs(s->run.io_pool, done, BATCH);
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		err = take_job(s, done[i]);
	return err ? err : (int)n;
}

static int flush(struct sink *s)
{
	return engine_sink_flush(s->run.sink);
}

/* Whether a count is what the source counts, or more by what it had not heard of yet. */
static bool lies_in(uint64_t count, uint64_t source_count, uint64_t open)
{
	return count >= source_count && count - source_count <= open;
}

/* What the source counts is what came, and its host has answered the request.  0 or a failure. */
static int check_sums(struct sink *s)
{
	const struct transfer_complete *sums = &s->source_sums;

	if (s->run.unanswered)
		return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
			"all has come, and no answer to the request before it");

	/* files whose names could not even cross are errors of this transfer, too */
	if (s->run.stats->errors < sums->errors)
		s->run.stats->errors = sums->errors;
	if (lies_in(s->run.stats->files, sums->files, sums->open) &&
		lies_in(s->run.stats->errors, sums->errors, sums->open) &&
		lies_in(s->run.arrived_bytes, sums->bytes, sums->open ? UINT64_MAX : 0))
		return 0;
	return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
		"what the source counts does not add up: %ju files of %ju bytes, %ju that failed "
		"and %u under way, here %ju of %ju and %ju",
		(uintmax_t)sums->files, (uintmax_t)sums->bytes, (uintmax_t)sums->errors, sums->open,
		(uintmax_t)s->run.stats->files, (uintmax_t)s->run.arrived_bytes,
		(uintmax_t)s->run.stats->errors);
}

/* ---- the loop ---- */

/* The answer to what asked for the transfer comes before all frames that are the transfer's, and
 * may have come with the first of them.  0 or a failure. */
static int look_for_answer(struct sink *s)
{
	int err = run_answered(&s->run);

	return err < 0 ? err : 0;
}

static int work(struct run *run)
{
	struct sink *s = self(run);
	int total = 0, done, err;
	bool is_paid;
	static int (*const steps[])(struct sink *) = {
		sink_take_landed,
		sink_early_take,
		sink_take_drained,
		take_jobs,
		sink_tell_found,
		sink_note_gathered,
		sink_open_files,
		take_frames,
		look_for_answer,
		sink_give_held,
		flush,
	};

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		int n = steps[i](s);

		if (n < 0)
			return n;
		total += n;
	}
	if (!s->complete_came || s->open)
		return total;
	is_paid = run_is_paid_for(&s->run); /* flushed is meanwhile */
	done = flush_files(s);
	if (done > 0)
		done = is_paid;
	if (done > 0)
		done = s->run.sink->ops->settle(s->run.sink);
	if (done <= 0)
		return done ? done : total;
	s->completed = true;
	err = check_sums(s);
	return err ? err : 1;
}

static int loop(struct sink *s)
{
	int err = 0;

	while (!s->completed && err >= 0) {
		err = work(&s->run);
		if (!err)
			err = run_wait(&s->run, work);
		if (err >= 0)
			err = run_tick(&s->run);
	}
	return err < 0 ? err : 0;
}

/* ---- the end ---- */

/* The last word of a transfer that went well, after the memory is nobody's any more. */
static int close_transfer(struct sink *s)
{
	const struct transfer_complete closed = run_sums(&s->run);
	uint8_t data[64];

	run_revoke(&s->run);
	if (s->to->over)
		s->to->over(s->to->ctx);
	return run_put(
		&s->run, TRANSFER_CLOSED, data, transfer_put_complete(&closed, data, sizeof data));
}

static void drop_files(struct run *run)
{
	sink_drop_files(self(run));
}

/* What crosses now is with the oldest file that is under way. */
static void observe(struct run *run)
{
	const struct sink *s = self(run);
	const struct sink_file *oldest = NULL;

	run->stats->verified_bytes = run->stats->bytes;
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++) {
		const struct sink_file *f = s->files[i];

		if (f && !f->bundle && !transfer_is_bare(&f->file) &&
			(!oldest || f->file.file < oldest->file.file))
			oldest = f;
	}
	if (oldest)
		run_set_current(run, oldest->file.name);
}

enum verdict_scope transfer_receive(struct link *link, const struct transfer_params *params,
	const struct transfer_sink *to, struct transfer_stats *stats)
{
	struct sink s = {.to = to, .ahead.invited = params->early && params->answered};
	enum verdict_scope outcome;
	int err;

	err = run_init(&s.run, link, params, stats);
	s.run.waits = sink_waits;
	s.run.drop_files = drop_files;
	s.run.observe = observe;
	sink_files_init(&s);
	if (!err && sink_takes_bundles(&s))
		err = end_null_open(UINT64_MAX, &s.nowhere);
	if (!err)
		err = handshake_accept(&s.run, to, &s.ahead.invited, &s.block);
	if (!err)
		err = sink_make_held(&s);
	if (!err)
		sink_early_begin(&s);
	if (!err)
		err = loop(&s);
	if (err)
		sink_stop_reading(&s);
	if (err && (to->keeps || to->resume) && s.run.io_pool)
		sink_salvage(&s);
	if (!err)
		err = close_transfer(&s);
	free(s.held);
	outcome = run_end(&s.run, err);
	end_free(s.nowhere);
	return outcome;
}
