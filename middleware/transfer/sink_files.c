/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_files: the files of a sink, from FILE to RESULT.
 *
 * Owns the table of them, and how many are open: the source may announce more than there are
 * descriptors for, and those wait for their READY.
 */
#include "transfer/sink_impl.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define NOTES_NS (NS_PER_S / 4)
#define HAVE_PENDING_MAX (1u << 20) /* bytes of HAVEs that wait to be sent */
#define LACKING_NS (10 * NS_PER_S)  /* others give descriptors back within this, or a file fails */

void sink_files_init(struct sink *s)
{
	s->waiting_tail = &s->waiting;
	s->endings_tail = &s->endings;
	s->offering_tail = &s->offering;
	s->oldest = 1;
	s->opened_max = run_open_files(&s->run);
}

struct sink_file *sink_find_file(struct sink *s, uint32_t number)
{
	struct sink_file *f = s->files[number % TRANSFER_OPEN_MAX];

	if (f && f->file.file == number)
		return f;
	for (f = s->leaving; f && f->file.file != number; f = f->next)
		;
	return f;
}

/* Once a file, as soon as its outcome is known. */
int sink_tell_result(struct sink *s, struct sink_file *f)
{
	struct transfer_result result = {
		.file = f->file.file,
		.status = f->verdict.status,
		.size = f->verdict.status ? 0 : f->end.size,
		.digest = f->verdict.status ? 0 : f->digest,
		.text = {(const uint8_t *)f->verdict.text, strlen(f->verdict.text)},
	};
	uint8_t data[TRANSFER_TEXT + 64];

	if (f->told)
		return 0;
	f->told = true;
	return run_put(
		&s->run, TRANSFER_RESULT, data, transfer_put_result(&result, data, sizeof data));
}

void sink_unlink_file(struct sink *s, struct sink_file *f)
{
	struct sink_file **at = &s->files[f->file.file % TRANSFER_OPEN_MAX];

	if (*at == f) {
		*at = NULL;
	} else {
		for (at = &s->leaving; *at != f; at = &(*at)->next)
			;
		*at = f->next;
		s->leaving_count--;
	}
	s->open--;
}

/* The source may start the file that takes this one's slot once it has sent FILE_END and heard
 * RESULT, which a failed file gets early.  0, or -EBADMSG: it has not. */
static int vacate(struct sink *s, struct sink_file **slot)
{
	struct sink_file *f = *slot;

	if (!f)
		return 0;
	if (!f->told || !f->end_known || s->leaving_count == SINK_LEAVING_MAX)
		return -EBADMSG;
	*slot = NULL;
	f->next = s->leaving;
	s->leaving = f;
	s->leaving_count++;
	return 0;
}

/* It waits for all that was announced before it. */
static bool comes_last(const struct sink_file *f)
{
	return f->file.kind == TRANSFER_FILE_DIRECTORY_END ||
	       f->file.kind == TRANSFER_FILE_HARD_LINK;
}

int sink_finish_file(struct sink *s, struct sink_file *f)
{
	int err = sink_tell_result(s, f);

	if (f->verdict.status) {
		s->run.stats->errors++;
	} else if (transfer_counts(&f->file)) {
		s->run.stats->files++;
		s->run.arrived_bytes += f->end.size;
	}
	s->opened -= f->opened;
	s->resumes -= f->resume != NULL;
	s->to->done(s->to->ctx, &f->file, f->verdict.status, f->verdict.text);
	sink_unlink_file(s, f);
	sink_file_free(f);
	return err;
}

/* There is no descriptor for another file.  Whether there will be one: when a file of ours ends, or
 * else of others. */
bool sink_may_wait(struct sink *s)
{
	uint64_t now = clock_now_ns();

	if (s->opened) {
		if (s->opened < s->opened_max)
			log_debug("no descriptor for another file: %u at once from now on",
				s->opened);
		s->opened_max = s->opened;
		s->lacking_since_ns = 0;
		return true;
	}
	if (!s->lacking_since_ns)
		s->lacking_since_ns = now;
	return now - s->lacking_since_ns < LACKING_NS;
}

static int tell_ready(struct sink *s, struct sink_file *f)
{
	struct transfer_ready ready = {.file = f->file.file, .bytes = ranges_bytes(&f->ranges)};
	uint8_t data[32];

	int err;

	f->ready = true;
	err = run_put(&s->run, TRANSFER_READY, data, transfer_put_ready(&ready, data, sizeof data));
	return err || !s->ahead.on ? err : sink_early_ready(s, f);
}

/* It is not opened, or is a directory: there is nothing more to come, but what the source has sent
 * ahead. */
static int end_unopened(struct sink *s, struct sink_file *f)
{
	if (s->ahead.on && !transfer_is_bare(&f->file))
		return sink_early_refuse(s, f);
	return sink_finish_file(s, f);
}

/* Asks the caller for its end.  0, or -EAGAIN: when others have ended. */
static int open_file(struct sink *s, struct sink_file *f)
{
	int err = sink_file_open(f, pool_count(s->run.pool));

	if ((err == -EMFILE || err == -ENFILE) && !sink_file_is_stream(f) && sink_may_wait(s)) {
		sink_file_again(f);
		return -EAGAIN;
	}
	s->lacking_since_ns = 0;
	if (err || !f->target.end)
		return end_unopened(s, f);
	f->opened = true;
	f->block = s->block;
	s->opened++;
	if (end_is_direct(f->target.end))
		s->run.stats->direct = true;
	if (f->file.kind != TRANSFER_FILE_REGULAR || !s->to->resume ||
		!s->to->resume->wanted(s->to->ctx, f->cookie))
		return tell_ready(s, f);
	err = sink_resume_new(s->to, f->cookie, f->file.size, s->block, &f->resume);
	if (err)
		return err;
	f->resume->owner = f;
	s->resumes++;
	sink_resume_recall(f->resume, s->run.io_pool);
	return 0;
}

/* One HAVE: found blocks that lie one behind the other. */
static int tell_have(struct sink *s, struct sink_file *f)
{
	struct sink_resume *resume = f->resume;
	const struct transfer_note *notes = &resume->found.items[resume->told];
	struct transfer_have have = {.file = f->file.file, .first = notes->index};
	uint64_t leaves[TRANSFER_HAVE_MAX];
	uint8_t data[14 + sizeof leaves];

	while (have.count < TRANSFER_HAVE_MAX && resume->told < resume->found.count &&
		notes[have.count].index == have.first + have.count) {
		sink_file_found(f, &notes[have.count], s->block);
		leaves[have.count] = notes[have.count].leaf;
		have.count++;
		resume->told++;
	}
	return run_put(
		&s->run, TRANSFER_HAVE, data, transfer_put_have(&have, leaves, data, sizeof data));
}

/* The source is told what it need not send, as fast as it reads. */
static int tell_found(struct sink *s, struct sink_file *f)
{
	struct sink_resume *resume = f->resume;
	int n = 0, err = 0;

	if (!resume || f->ready || resume->out)
		return 0;
	for (; !err && resume->told < resume->found.count; n++) {
		if (demux_pending_bytes(link_demux(s->run.link)) > HAVE_PENDING_MAX)
			return n;
		err = tell_have(s, f);
	}
	if (err)
		return err;
	if (resume->more) { /* what was told shows the source that it goes on */
		s->telling--;
		sink_resume_recall(resume, s->run.io_pool);
		return n;
	}
	s->run.stats->had_bytes += ranges_bytes(&f->ranges);
	s->telling--;
	transfer_notes_free(&resume->found);
	err = tell_ready(s, f);
	return err ? err : n + 1;
}

int sink_tell_found(struct sink *s)
{
	int n = 0;

	for (unsigned i = 0; i < TRANSFER_OPEN_MAX && s->telling; i++) {
		int err = s->files[i] ? tell_found(s, s->files[i]) : 0;

		if (err < 0)
			return err;
		n += err;
	}
	return n;
}

int sink_note_gathered(struct sink *s)
{
	uint64_t now = s->resumes ? clock_now_ns() : 0;

	if (now < s->notes_ns || !s->resumes)
		return 0;
	s->notes_ns = now + NOTES_NS;
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i] && s->files[i]->ready && s->files[i]->resume &&
			!s->files[i]->job_out)
			sink_resume_note(s->files[i]->resume, s->run.io_pool);
	return 0;
}

void sink_stop_reading(struct sink *s)
{
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i]) {
			atomic_store(&s->files[i]->stop, true);
			if (s->files[i]->resume)
				sink_resume_stop(s->files[i]->resume);
		}
}

static int open_waiting(struct sink *s)
{
	int n = 0;

	/* in order, as the source reads them: the first that is not ready holds up the others */
	while (s->waiting) {
		struct sink_file *f = s->waiting;
		bool full = s->opened >= s->opened_max && !comes_last(f);
		int err;

		if (full && !sink_file_is_stream(f))
			return n;
		/* streams may last for ever, so that to wait for one would be to wait for ever */
		if (full)
			verdict_set(&f->verdict, VERDICT_FILE, STATUS_LIMIT,
				"over %u streams at once", s->opened_max);
		s->waiting = f->next;
		if (!s->waiting)
			s->waiting_tail = &s->waiting;
		f->next = NULL;
		if (comes_last(f)) {
			*s->endings_tail = f;
			s->endings_tail = &f->next;
			n++;
			continue;
		}
		f->waits = false;
		err = full ? end_unopened(s, f) : open_file(s, f);
		if (err == -EAGAIN) {
			f->waits = true;
			f->next = s->waiting;
			s->waiting = f;
			if (!f->next)
				s->waiting_tail = &f->next;
			return n;
		}
		if (err)
			return err;
		n++;
	}
	return n;
}

bool sink_is_oldest(struct sink *s, const struct sink_file *f)
{
	while (s->oldest < f->file.file) {
		const struct sink_file *other = sink_find_file(s, s->oldest);

		if (other && !comes_last(other))
			return false;
		s->oldest++;
	}
	return true;
}

static int end_those_last(struct sink *s)
{
	int n = 0;

	while (s->endings && sink_is_oldest(s, s->endings)) {
		struct sink_file *f = s->endings;
		int err;

		s->endings = f->next;
		if (!s->endings)
			s->endings_tail = &s->endings;
		f->next = NULL;
		f->waits = false;
		err = open_file(s, f);
		if (err == -EAGAIN) {
			f->waits = true;
			f->next = s->endings;
			s->endings = f;
			if (!f->next)
				s->endings_tail = &f->next;
			return n;
		}
		if (err)
			return err;
		n++;
	}
	return n;
}

int sink_open_files(struct sink *s)
{
	int n = open_waiting(s), m;

	if (n >= 0)
		n += sink_offer_bundles(s);
	m = n < 0 ? 0 : end_those_last(s);
	n = m < 0 ? m : n + m;
	m = n < 0 ? 0 : sink_end_bundles(s);
	return m < 0 ? m : n + m;
}

int sink_take_slot(struct sink *s, uint32_t number, struct sink_file ***slot)
{
	*slot = &s->files[number % TRANSFER_OPEN_MAX];
	if (number != s->last_number + 1 || vacate(s, *slot))
		return -EBADMSG; /* more files at once than may be */
	return 0;
}

int sink_add_file(struct sink *s, const struct transfer_file *file, uint64_t entry)
{
	struct sink_file **slot, *f;
	int err = sink_take_slot(s, file->file, &slot);

	if (err || s->early[file->file % TRANSFER_OPEN_MAX] ||
		(transfer_is_bare(file) && sink_early_has(s, file->file)))
		return -EBADMSG; /* a block came, which only a bundle's may before it is announced
				  */
	err = sink_file_new(s->to, file, entry, &f);
	if (err)
		return err;
	*slot = f;
	s->last_number++;
	s->open++;
	f->waits = true;
	*s->waiting_tail = f;
	s->waiting_tail = &f->next;
	return 0;
}

static bool is_missing_blocks(const struct sink_file *f)
{
	return (f->end_known && f->landed < f->end.blocks) ||
	       (f->reorder && reorder_held(f->reorder)) || sink_bundle_misses_block(f);
}

enum run_wait sink_waits(const struct run *run)
{
	const struct sink *s = (const struct sink *)run;
	enum run_wait wait = RUN_WAIT_PEER;

	if (io_pool_jobs_out(run->io_pool))
		return RUN_WAIT_OURS;
	for (const struct sink_file *f = s->leaving; f; f = f->next)
		if (is_missing_blocks(f))
			wait = RUN_WAIT_BLOCKS;
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++) {
		const struct sink_file *f = s->files[i];

		if (!f || f->waits)
			continue;
		if (f->in_io)
			return RUN_WAIT_OURS;
		if (is_missing_blocks(f))
			wait = RUN_WAIT_BLOCKS;
		else if (wait == RUN_WAIT_PEER && !f->end_known && sink_file_is_stream(f))
			wait = RUN_WAIT_STREAM;
	}
	return wait;
}

/* A transfer that was cut short: what has begun is removed, and each file is told. */
static void drop_file(struct sink *s, struct sink_file *f)
{
	if (f->bundle) {
		sink_drop_bundle(s, f);
		return;
	}
	f->cut = !f->verdict.status; /* what had failed before did not fail for this */
	if (!f->job_out || f->waits) /* else its job has run to its end, one way or the other */
		verdict_set(&f->verdict, VERDICT_FILE, run_cut_status(&s->run), "%s",
			s->run.verdict.text);
	if (f->resume) /* its job has run, for there is no I/O pool any more */
		f->resume->out = false;
	if (!f->job_out && !f->waits && !f->refused) /* else nothing was begun */
		sink_file_settle(f);
	f->told = true; /* there is nobody to tell */
	sink_finish_file(s, f);
}

void sink_drop_files(struct sink *s)
{
	while (s->leaving)
		drop_file(s, s->leaving);
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i])
			drop_file(s, s->files[i]);
}
