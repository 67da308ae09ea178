/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_files: the files of a source, from FILE to FILE_END.
 */
#include "transfer/source_impl.h"

#include "block/digest.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define HAD_SPANS_MAX 65536u /* pieces that the sink may have of a file */

/* The file's record goes; `done` is told. */
void source_file_finish(struct source *s, struct source_file *f)
{
	struct transfer_stats *stats = s->run.stats;

	if (f->verdict.status) {
		stats->errors++;
	} else if (transfer_counts(&f->item.file)) {
		stats->files++;
		s->run.arrived_bytes += f->bytes;
	}
	f->item.sent_bytes = f->bytes;
	f->item.sent_blocks = f->sequence;
	f->item.dropped_blocks = f->dropped;
	s->from->done(s->from->ctx, &f->item, f->verdict.status, f->verdict.text);
	digest_tree_free(f->tree);
	ranges_fini(&f->had);
	end_free(f->target.end);
	f->used = false;
	s->open--;
}

static int announce(struct source *s, struct source_file *f)
{
	uint8_t data[TRANSFER_FILE_MAX];
	ssize_t len;

	f->item.file.file = f->number;
	len = transfer_put_file(&f->item.file, data, sizeof data);
	if (len > 0)
		f->entry = digest_leaf(data, (size_t)len);
	if (f->bare)
		f->digest = digest_entry_root(f->entry);
	return run_put(&s->run, TRANSFER_FILE, data, len);
}

bool source_file_open_ended(const struct source_file *f)
{
	return f->item.file.size == MESSAGE_UNKNOWN;
}

/* In the words of the status, unless there is more to say. */
static void set_open_error(struct source_file *f)
{
	uint16_t status = status_from_errno(f->item.error);
	bool is_vague = status == STATUS_OTHER || status == STATUS_IO;

	verdict_set(
		&f->verdict, VERDICT_FILE, status, "%s", is_vague ? strerror(-f->item.error) : "");
}

int source_start_file(struct source *s)
{
	struct source_file *f = &s->files[(s->last_number + 1) % TRANSFER_OPEN_MAX];
	int err;

	assert(!f->used);
	*f = (struct source_file){0};
	f->item.file.file = s->last_number + 1;
	err = s->from->next(s->from->ctx, &f->item);
	if (err <= 0) {
		s->no_more = true;
		return err < 0 ? run_fail(&s->run, VERDICT_TRANSFER, status_from_errno(err),
					 "reading the list of files")
			       : 0;
	}
	return source_begin_file(s, f);
}

int source_begin_file(struct source *s, struct source_file *f)
{
	int err;

	f->number = f->item.file.file = s->last_number + 1;
	ranges_init(&f->had, HAD_SPANS_MAX);
	if (f->item.closed && !f->item.error)
		f->item.error = s->from->open(s->from->ctx, &f->item);
	f->used = true;
	s->open++;
	f->target.end = f->item.end;
	if (f->target.end && end_is_direct(f->target.end))
		s->run.stats->direct = true;
	f->bare = !f->item.error && transfer_is_bare(&f->item.file);
	if (f->item.error) {
		/* the sink's people miss it as much as ours: it is announced, and ended with what
		 * is wrong */
		set_open_error(f);
		if (!transfer_name_ok(f->item.file.name)) {
			source_file_finish(s,
				f); /* no name that could cross: COMPLETE's count of errors tells */
			return 0;
		}
		f->item.file.kind = TRANSFER_FILE_REGULAR;
		f->item.file.size = 0;
		f->item.file.target.len = 0;
		f->item.file.has = 0;
		f->read_all = true;
	}
	s->last_number++;
	err = announce(s, f);
	if (err || f->read_all)
		return err;
	if (f->bare) { /* only its RESULT is to come */
		f->ended = true;
		return 0;
	}
	*s->reading_tail = f;
	s->reading_tail = &f->next;
	if (!source_file_open_ended(f))
		s->unread_bytes += f->item.file.size;
	return digest_tree_new(&f->tree);
}

/* Enough is started: what is unread keeps the window busy twice over. */
bool source_may_begin(const struct source *s)
{
	uint64_t ahead = 2ull * s->plan.depth * s->plan.block;
	/* beside the only file nothing needs a descriptor: that nothing follows is known at once */
	bool may_open = s->open < s->open_max || s->from->total_files == 1;

	return may_open && !s->files[(s->last_number + 1) % TRANSFER_OPEN_MAX].used &&
	       (s->unread_bytes < ahead || s->open < 2);
}

bool source_may_start(const struct source *s)
{
	return !s->no_more && source_may_begin(s);
}

enum run_wait source_waits(const struct run *run)
{
	const struct source *s = (const struct source *)run;

	/* full blocks without a slot at the sink, or none left to fill: it is the sink's turn */
	if (s->filled_count || (s->from->feed && run->io_pool && io_pool_feed_hungry(run->io_pool)))
		return RUN_WAIT_PEER;
	if ((s->from->feed && !s->completed) || source_is_gathering(s))
		return RUN_WAIT_OURS;
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i].used && (s->files[i].in_io || s->files[i].reread_out))
			return RUN_WAIT_OURS;
	return RUN_WAIT_PEER;
}

int source_take_have(struct source *s, struct source_file *f, const struct transfer_have *have)
{
	uint64_t size = f->item.file.size, from = have->first * s->plan.block, to;
	int err;

	/* whole blocks of a file that is not empty, each of them once; of what is sent early a sink
	 * has nothing */
	if (s->early.read || f->ready || f->read_all ||
		f->item.file.kind != TRANSFER_FILE_REGULAR || from >= size ||
		have->count - 1u > (size - from - 1) / s->plan.block)
		return -EBADMSG;
	to = from + (uint64_t)have->count * s->plan.block;
	to = to < size ? to : size;
	err = ranges_add(&f->had, from, to);
	for (unsigned i = 0; i < have->count && !err; i++)
		err = digest_tree_add(f->tree, have->first + i, transfer_have_leaf(have, i));
	f->had_blocks += have->count;
	return err == -ENOMEM ? err : err ? -EBADMSG : 0;
}

int source_take_ready(struct source *s, struct source_file *f, const struct transfer_ready *ready)
{
	if (ready->bytes != ranges_bytes(&f->had))
		return -EBADMSG;
	f->ready = true;
	f->bytes += ready->bytes; /* to what was sent early */
	atomic_fetch_add_explicit(&s->run.stats->had_bytes, ready->bytes, memory_order_relaxed);
	return 0;
}

void source_skip_had(struct source *s, struct source_file *f)
{
	const struct ranges_span *span;

	if (f->had_next == f->had.count)
		return;
	span = &f->had.spans[f->had_next];
	if (span->from != f->next_offset)
		return;
	s->unread_bytes -= span->to - span->from;
	f->next_offset = span->to;
	f->had_next++;
}

/* Off the list of files that have something to read; the one that is done is nearly always its
 * head. */
void source_stop_reading(struct source *s, struct source_file *f)
{
	struct source_file **at = &s->reading;

	if (f->read_all)
		return;
	f->read_all = true;
	if (!source_file_open_ended(f))
		s->unread_bytes -= f->item.file.size - f->next_offset;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	if (s->reading_tail == &f->next)
		s->reading_tail = at;
}

static void run_reread(struct io_pool_job *job)
{
	struct source_file *f =
		(struct source_file *)((char *)job - offsetof(struct source_file, reread));

	f->reread_error = reread_root(f->target.end, f->bytes, f->source->plan.block, f->entry,
		f->touched, &f->source->stop, &f->reread_root);
}

/* Whether it has to be read again first; begins to.  `checked`: what `check` says of it. */
static bool wants_reread(struct source *s, struct source_file *f, int checked)
{
	if (f->reread_out)
		return true;
	if (f->item.file.kind != TRANSFER_FILE_REGULAR || f->reread_done || f->verdict.status ||
		f->answered)
		return false;
	if (!s->from->reread) {
		f->touched = checked == -EAGAIN;
		if (!f->touched || !io_pool_can_job(s->run.io_pool))
			return false;
	}
	f->reread_out = true;
	f->source = s;
	f->reread.run = run_reread;
	io_pool_submit_job(s->run.io_pool, &f->reread);
	return true;
}

/* What `check` gave; -EAGAIN is settled by what was read again. */
static void judge_check(struct source_file *f, int checked)
{
	if (f->verdict.status || !checked || (checked == -EAGAIN && f->reread_done))
		return;
	if (checked == -EAGAIN || checked == -ESTALE)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_CHANGED, "changed while it was read");
	else
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(checked),
			"whether it changed while it was read is not known: %s",
			strerror(-checked));
}

static void judge_reread(struct source_file *f)
{
	/* -ENODATA: it has shrunk */
	if (f->touched &&
		(f->reread_error == -ENODATA || (!f->reread_error && f->reread_root != f->digest)))
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_CHANGED, "changed while it was read");
	else if (f->reread_error)
		verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(f->reread_error),
			"reading it again: %s", strerror(-f->reread_error));
	else if (f->reread_root != f->digest)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_DIGEST,
			"what the disk has of it is not what was read and sent: digest %016llx, "
			"and not %016llx",
			(unsigned long long)f->reread_root, (unsigned long long)f->digest);
}

int source_take_rereads(struct source *s)
{
	struct io_pool_job *done[16];
	unsigned n = io_pool_jobs_out(s->run.io_pool)
			     ? io_pool_collect_jobs(s->run.io_pool, done, 16)
			     : 0;
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		struct source_file *f =
			(struct source_file *)((char *)done[i] -
					       offsetof(struct source_file, reread));

		f->reread_out = false;
		f->reread_done = true;
		err = source_end_file(s, f);
	}
	return err ? err : (int)n;
}

/* All of it that will be sent is sent: FILE_END, once the sink has said READY, or may yet. */
int source_end_file(struct source *s, struct source_file *f)
{
	struct transfer_file_end end = {
		.file = f->number, .size = f->bytes, .blocks = f->sequence + f->had_blocks};
	uint8_t data[64];
	int checked = 0, err;

	if (f->ended || !(f->ready || s->run.params->early) || !f->read_all || f->in_io)
		return 0;
	if (!f->reread_out && !f->verdict.status && s->from->check)
		checked = s->from->check(s->from->ctx, &f->item);
	if (wants_reread(s, f, checked))
		return 0;
	if (!f->verdict.status && !source_file_open_ended(f) && f->bytes != f->item.file.size)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_CHANGED,
			"shrank to %llu bytes while it was read", (unsigned long long)f->bytes);
	judge_check(f, checked);
	if (!f->verdict.status) { /* a file that failed may have holes */
		err = digest_tree_root(
			f->tree, end.blocks + f->hole_blocks, f->bytes, f->entry, &f->digest);
		if (err)
			return err;
	}
	if (f->reread_done && !f->verdict.status)
		judge_reread(f);
	end.status = f->verdict.status;
	end.digest = f->digest;
	f->ended = true;
	err = run_put(
		&s->run, TRANSFER_FILE_END, data, transfer_put_file_end(&end, data, sizeof data));
	if (!err && f->answered)
		source_file_finish(s, f);
	return err;
}

struct source_file *source_find_file(struct source *s, uint32_t number)
{
	struct source_file *f = &s->files[number % TRANSFER_OPEN_MAX];

	return f->used && f->number == number ? f : NULL;
}

/* A transfer that was cut short: each file that was started is told. */
void source_drop_files(struct source *s)
{
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++) {
		struct source_file *f = &s->files[i];

		if (!f->used)
			continue;
		if (f->bundle) {
			source_drop_bundle(s, f);
			continue;
		}
		verdict_set(&f->verdict, VERDICT_FILE, run_cut_status(&s->run), "%s",
			s->run.verdict.text);
		source_file_finish(s, f);
	}
}
