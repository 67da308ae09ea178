/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_files: the files of a source, from FILE to FILE_END.
 */
#include "transfer/source_impl.h"

#include "block/digest.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

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
	int r;

	assert(!f->used);
	*f = (struct source_file){0};
	f->item.file.file = s->last_number + 1;
	r = s->from->next(s->from->ctx, &f->item);
	if (r <= 0) {
		s->no_more = true;
		return r < 0 ? run_fail(&s->run, VERDICT_TRANSFER, status_from_errno(r),
				       "reading the list of files")
			     : 0;
	}
	return source_begin_file(s, f);
}

int source_begin_file(struct source *s, struct source_file *f)
{
	int r;

	f->number = f->item.file.file = s->last_number + 1;
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
	r = announce(s, f);
	if (r || f->read_all)
		return r;
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

	return s->open < s->open_max && !s->files[(s->last_number + 1) % TRANSFER_OPEN_MAX].used &&
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
		if (s->files[i].used && s->files[i].in_io)
			return RUN_WAIT_OURS;
	return RUN_WAIT_PEER;
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

/* All of it that will be sent is sent: FILE_END, once the sink has said READY. */
int source_end_file(struct source *s, struct source_file *f)
{
	struct transfer_file_end end = {.file = f->number, .size = f->bytes, .blocks = f->sequence};
	uint8_t data[64];
	int r;

	if (f->ended || !f->ready || !f->read_all || f->in_io)
		return 0;
	if (!f->verdict.status && !source_file_open_ended(f) && f->bytes != f->item.file.size)
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_CHANGED,
			"shrank to %llu bytes while it was read", (unsigned long long)f->bytes);
	if (!f->verdict.status && s->from->check) {
		r = s->from->check(s->from->ctx, &f->item);
		if (r)
			verdict_set(&f->verdict, VERDICT_FILE, status_from_errno(r),
				"changed while it was read");
	}
	if (!f->verdict.status) { /* a file that failed may have holes */
		r = digest_tree_root(
			f->tree, f->sequence + f->hole_blocks, f->bytes, f->entry, &f->digest);
		if (r)
			return r;
	}
	end.status = f->verdict.status;
	end.digest = f->digest;
	f->ended = true;
	r = run_put(
		&s->run, TRANSFER_FILE_END, data, transfer_put_file_end(&end, data, sizeof data));
	if (!r && f->answered)
		source_file_finish(s, f);
	return r;
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
		verdict_set(&f->verdict, VERDICT_FILE,
			s->run.verdict.status ? s->run.verdict.status : STATUS_DISCONNECTED, "%s",
			s->run.verdict.text);
		source_file_finish(s, f);
	}
}
