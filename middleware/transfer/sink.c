/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink: the sink loop.
 *
 *     notice --LANDED--> (reorder, streams only) --> verify, end --FREE--> pool --> grant
 *
 * One thread: takes in frames and landed blocks, checks each header against what was announced, hands
 * blocks to the crew to be verified and written, proves with ranges and the tree digest that a file is
 * whole, and has a job thread make it real.  What a peer may not do is -EBADMSG and ends the session.
 */
#include "transfer/run.h"

#include "base/log.h"
#include "base/worker.h"
#include "block/digest.h"
#include "block/ranges.h"
#include "block/reorder.h"
#include "transfer/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u
#define JOB_THREADS 4u
#define LEAVING_MAX 1024u
#define SPANS_MAX 65536u /* pieces that a file may be scattered in: more than any window of blocks */

struct sink_file {
	struct crew_target target; /* first: what block->owner points to */
	struct crew_job job;
	struct sink_file *next;    /* in `leaving` */
	struct sink *sink;
	struct transfer_file file; /* name points to `name` */
	uint8_t *name;
	void *cookie;
	bool end_known, job_out, told;
	struct ranges ranges;
	struct digest_tree *tree;
	struct reorder *reorder;   /* streams */
	uint64_t landed;           /* blocks */
	uint64_t in_crew;
	struct transfer_file_end end;
	uint64_t digest;
	uint16_t status;
	char text[TRANSFER_TEXT];
};

struct sink {
	struct run run; /* first */
	const struct transfer_sink *to;
	uint32_t block;            /* payload bytes */
	struct sink_file *files[TRANSFER_OPEN_MAX]; /* by number modulo that */
	/* failed files that the source is done with: only late blocks and their clean-up are to come */
	struct sink_file *leaving;
	uint32_t leaving_count;
	uint32_t last_number;
	uint32_t open;
	bool complete_came, completed;
	unsigned next_worker;
};

static struct sink *self(struct run *run)
{
	return (struct sink *)run;
}

/* ---- files ---- */

static void file_fail(struct sink_file *f, int error, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void file_fail(struct sink_file *f, int error, uint16_t status, const char *format, ...)
{
	va_list ap;

	if (f->status)
		return;
	f->status = status ? status : status_from_errno(error);
	va_start(ap, format);
	vsnprintf(f->text, sizeof f->text, format, ap);
	va_end(ap);
}

static struct sink_file *find_file(struct sink *s, uint32_t number)
{
	struct sink_file *f = s->files[number % TRANSFER_OPEN_MAX];

	if (f && f->file.file == number)
		return f;
	for (f = s->leaving; f && f->file.file != number; f = f->next)
		;
	return f;
}

/* Once a file, as soon as its outcome is known. */
static int tell_result(struct sink *s, struct sink_file *f)
{
	struct transfer_result result = {
		.file = f->file.file,
		.status = f->status,
		.size = f->status ? 0 : f->end.size,
		.digest = f->status ? 0 : f->digest,
		.text = {(const uint8_t *)f->text, strlen(f->text)},
	};
	uint8_t data[TRANSFER_TEXT + 64];

	if (f->told)
		return 0;
	f->told = true;
	return run_put(&s->run, TRANSFER_RESULT, data, transfer_put_result(&result, data, sizeof data));
}

static void file_free(struct sink_file *f)
{
	digest_tree_free(f->tree);
	reorder_free(f->reorder);
	ranges_fini(&f->ranges);
	free(f->name);
	free(f);
}

static void unlink_file(struct sink *s, struct sink_file *f)
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

/* The source may start the file that takes this one's slot once it has sent FILE_END and heard RESULT,
 * which a failed file gets early.  0, or -EBADMSG: it has not. */
static int vacate(struct sink *s, struct sink_file **slot)
{
	struct sink_file *f = *slot;

	if (!f)
		return 0;
	if (!f->told || !f->end_known || s->leaving_count == LEAVING_MAX)
		return -EBADMSG;
	*slot = NULL;
	f->next = s->leaving;
	s->leaving = f;
	s->leaving_count++;
	return 0;
}

static int file_finish(struct sink *s, struct sink_file *f)
{
	int r = tell_result(s, f);

	if (f->status)
		s->run.stats->errors++;
	else
		s->run.stats->files++;
	s->to->done(s->to->ctx, &f->file, f->status, f->text);
	unlink_file(s, f);
	file_free(f);
	return r;
}

/* In a job thread: what happens to a file as a whole. */
static void run_job(struct crew_job *job)
{
	struct sink_file *f = (struct sink_file *)((char *)job - offsetof(struct sink_file, job));
	const struct transfer_sink *to = f->sink->to;
	int r;

	if (!f->status) {
		r = end_sync(f->target.end);
		if (r)
			file_fail(f, r, 0, "fsync: %s", strerror(-r));
	}
	r = end_free(f->target.end);
	f->target.end = NULL;
	if (r)
		file_fail(f, r, 0, "close: %s", strerror(-r));
	if (f->status) {
		to->discard(to->ctx, f->cookie);
		return;
	}
	r = to->commit(to->ctx, f->cookie, &f->file, f->end.size);
	if (r)
		file_fail(f, r, 0, "giving it its name: %s", strerror(-r));
}

/* Every block is accounted for: is the file what the source says it is? */
static void judge(struct sink_file *f)
{
	const struct transfer_file_end *end = &f->end;
	int r;

	if (end->status)
		file_fail(f, 0, end->status, "the source gave it up");
	if (f->status)
		return;
	if (f->file.size != MESSAGE_UNKNOWN && end->size != f->file.size)
		file_fail(f, 0, STATUS_INCOMPLETE, "%llu bytes were announced, the source ended it at %llu",
			(unsigned long long)f->file.size, (unsigned long long)end->size);
	else if (!ranges_complete(&f->ranges, end->size))
		file_fail(f, 0, STATUS_INCOMPLETE, "%llu of %llu bytes landed",
			(unsigned long long)ranges_bytes(&f->ranges), (unsigned long long)end->size);
	if (f->status)
		return;
	r = digest_tree_root(f->tree, end->blocks, end->size, &f->digest);
	if (r)
		file_fail(f, r, STATUS_INCOMPLETE, "blocks are missing from its digest");
	else if (f->digest != end->digest)
		file_fail(f, 0, STATUS_DIGEST, "digest %016llx, the source has %016llx",
			(unsigned long long)f->digest, (unsigned long long)end->digest);
}

static int check_finished(struct sink *s, struct sink_file *f)
{
	if (!f->end_known || f->job_out || f->in_crew || f->landed < f->end.blocks)
		return 0;
	if (f->landed > f->end.blocks)
		return run_fail(&s->run, -EBADMSG, STATUS_PROTOCOL, "file %u: more blocks than were sent", f->file.file);
	judge(f);
	f->job_out = true;
	crew_submit_job(s->run.crew, &f->job);
	return 0;
}

/* A failure in the middle of a file: the source is told at once, so that it stops. */
static int fail_early(struct sink *s, struct sink_file *f)
{
	int r = tell_result(s, f);

	return r ? r : check_finished(s, f);
}

/* ---- frames ---- */

static int open_file(struct sink *s, struct sink_file *f)
{
	const struct transfer_sink *to = s->to;
	struct transfer_ready ready = {.file = f->file.file};
	uint8_t data[32];
	int r = to->open(to->ctx, &f->file, &f->target.end, &f->cookie, f->text);

	if (r) {
		f->status = status_from_errno(r);
		return file_finish(s, f);
	}
	f->text[0] = '\0';
	if (!f->target.end)
		return file_finish(s, f); /* a directory: it is there */
	r = digest_tree_new(&f->tree);
	if (!r && end_is_stream(f->target.end))
		r = reorder_new(pool_count(s->run.pool), &f->reorder);
	if (r)
		return r;
	if (end_is_direct(f->target.end))
		s->run.stats->direct = true;
	return run_put(&s->run, TRANSFER_READY, data, transfer_put_ready(&ready, data, sizeof data));
}

static int take_file(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_file file;
	struct sink_file **slot, *f;

	if (transfer_get_file(&file, data, len) || file.file != s->last_number + 1)
		return -EBADMSG;
	slot = &s->files[file.file % TRANSFER_OPEN_MAX];
	if (vacate(s, slot))
		return -EBADMSG; /* more files at once than may be */
	f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	*f = (struct sink_file){.sink = s, .file = file, .job.run = run_job};
	f->name = malloc(file.name.len + 1);
	if (!f->name) {
		free(f);
		return -ENOMEM;
	}
	ranges_init(&f->ranges, SPANS_MAX);
	*slot = f;
	s->last_number++;
	s->open++;
	memcpy(f->name, file.name.data, file.name.len);
	f->name[file.name.len] = '\0';
	f->file.name.data = f->name;
	return open_file(s, f);
}

static int take_file_end(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_file_end end;
	struct sink_file *f;

	if (transfer_get_file_end(&end, data, len))
		return -EBADMSG;
	f = find_file(s, end.file);
	if (!f || f->end_known)
		return -EBADMSG;
	f->end = end;
	f->end_known = true;
	return check_finished(s, f);
}

static int take_complete(struct sink *s, const uint8_t *data, size_t len)
{
	struct transfer_complete complete;

	if (s->complete_came || transfer_get_complete(&complete, data, len))
		return -EBADMSG;
	/* what is left may only be files that failed, and that the source was told of */
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i] && (!s->files[i]->told || !s->files[i]->end_known))
			return -EBADMSG;
	s->complete_came = true;
	return 0;
}

static int take_frame(struct sink *s, const struct message_header *h, const uint8_t *data)
{
	int r = s->run.engine->ops->message(s->run.engine, h->type, data, h->length);

	if (r)
		return r < 0 ? r : 0;
	switch (h->type) {
	case TRANSFER_FILE:
		return take_file(s, data, h->length);
	case TRANSFER_FILE_END:
		return take_file_end(s, data, h->length);
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
	int n = 0, r;

	while (!s->complete_came && (r = run_get(&s->run, &h, &data)) != 0) {
		if (r > 0)
			r = take_frame(s, &h, data);
		if (r == -EBADMSG)
			return run_fail(&s->run, r, STATUS_PROTOCOL, "%s from the source is malformed or out of turn",
				message_name(h.type));
		if (r)
			return r;
		n++;
	}
	return n;
}

/* ---- blocks ---- */

/* What a header must say to be taken: a block of a file that is open, on the grid, within its size. */
static bool header_ok(const struct sink *s, const struct sink_file *f, const struct transfer_block *h)
{
	uint64_t end = h->offset + h->length;

	if (!f || !f->target.end || f->job_out || !h->length || h->offset % s->block || end < h->offset)
		return false;
	if (f->end_known && f->landed >= f->end.blocks)
		return false;
	if (f->file.size == MESSAGE_UNKNOWN)
		return true; /* a short block before the end leaves a hole, which ranges find */
	return end <= f->file.size && (h->length == s->block || end == f->file.size);
}

static void submit(struct sink *s, struct sink_file *f, struct block *b)
{
	pool_move(b, BLOCK_DRAINING);
	f->in_crew++;
	crew_submit(s->run.crew, f->reorder ? 0 : s->next_worker++, b);
}

static int take_block(struct sink *s, struct block *b)
{
	struct transfer_block h;
	uint8_t prefix[TRANSFER_BLOCK_BYTES];
	struct sink_file *f;
	int r;

	/* copied once: the peer can write there again, and what was checked must be what is used */
	memcpy(prefix, b->payload - BLOCK_PREFIX_BYTES, sizeof prefix);
	if (transfer_get_block(&h, prefix, s->block) || !header_ok(s, f = find_file(s, h.session), &h))
		return run_fail(&s->run, -EBADMSG, STATUS_PROTOCOL,
			"a block's header is not allowed: file %u, sequence %u, offset %llu, length %u", h.session,
			h.sequence, (unsigned long long)h.offset, h.length);
	f->landed++;
	if (f->status) { /* failed before: its other blocks go by */
		pool_give(s->run.pool, b);
		return check_finished(s, f);
	}
	b->owner = f;
	b->session = h.session;
	b->sequence = h.sequence;
	b->offset = h.offset;
	b->length = h.length;
	b->leaf = digest_block_sum(h.sum, prefix); /* xor undoes itself: what the leaf must be */
	if (!f->reorder) {
		submit(s, f, b);
		return 0;
	}
	r = reorder_put(f->reorder, b);
	if (r)
		return run_fail(&s->run, -EBADMSG, STATUS_PROTOCOL, "file %u: sequence %u came twice or out of "
			"the window", h.session, h.sequence);
	while ((b = reorder_get(f->reorder)))
		submit(s, f, b);
	return 0;
}

static int take_landed(struct sink *s)
{
	struct block *done[BATCH];
	int n = s->run.engine->ops->poll(s->run.engine, done, BATCH);
	int r = 0;

	for (int i = 0; i < n && !r; i++)
		r = take_block(s, done[i]);
	if (n > 0)
		s->run.heard = true;
	return r ? r : n;
}

static int take_drained(struct sink *s, struct block *b)
{
	struct sink_file *f = b->owner;
	int r = b->error;

	f->in_crew--;
	if (r == -EILSEQ) {
		file_fail(f, 0, STATUS_CHECKSUM, "wrong checksum of the block at offset %llu",
			(unsigned long long)b->offset);
	} else if (r) {
		file_fail(f, r, 0, "writing at offset %llu: %s", (unsigned long long)b->offset, strerror(-r));
	} else {
		r = ranges_add(&f->ranges, b->offset, b->offset + b->length);
		if (!r)
			r = digest_tree_add(f->tree, b->offset / s->block, b->leaf);
		if (r)
			file_fail(f, 0, r == -ENOMEM ? STATUS_NO_MEMORY : STATUS_INCOMPLETE,
				"bytes at offset %llu came twice", (unsigned long long)b->offset);
		else
			atomic_fetch_add_explicit(&s->run.stats->bytes, b->length, memory_order_relaxed);
	}
	pool_give(s->run.pool, b);
	if (!f->status)
		return check_finished(s, f);
	/* a failed stream holds blocks that wait for their turn: they will not have one */
	while (f->reorder && (b = reorder_drain(f->reorder)))
		pool_give(s->run.pool, b);
	return fail_early(s, f);
}

static int take_all_drained(struct sink *s)
{
	struct block *done[BATCH];
	unsigned n = crew_collect(s->run.crew, done, BATCH);
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++)
		r = take_drained(s, done[i]);
	return r ? r : (int)n;
}

static int take_jobs(struct sink *s)
{
	struct crew_job *done[BATCH];
	unsigned n = crew_collect_jobs(s->run.crew, done, BATCH);
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++)
		r = file_finish(s, (struct sink_file *)((char *)done[i] - offsetof(struct sink_file, job)));
	return r ? r : (int)n;
}

static int flush(struct sink *s)
{
	return s->run.engine->ops->flush(s->run.engine);
}

/* ---- the loop ---- */

static int work(struct run *run)
{
	struct sink *s = self(run);
	int total = 0;
	static int (*const steps[])(struct sink *) = {
		take_landed, take_all_drained, take_jobs, take_frames, flush,
	};

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		int n = steps[i](s);

		if (n < 0)
			return n;
		total += n;
	}
	s->completed = s->complete_came && !s->open;
	return s->completed ? 1 : total;
}

static int loop(struct sink *s)
{
	int r = 0;

	while (!s->completed && r >= 0) {
		r = work(&s->run);
		if (!r)
			r = run_wait(&s->run, work);
		if (r >= 0)
			r = run_tick(&s->run);
	}
	return r < 0 ? r : 0;
}

/* ---- set-up ---- */

/* The source offers; this side says no to what it cannot do, and how many blocks there will be. */
static int check_offer(struct sink *s, const struct transfer_offer *offer, const struct engine_ops *ops)
{
	const struct transfer_params *p = s->run.params;
	bool delivered = fabric_chan_caps(control_chan(s->run.control))->write_delivered;

	if (!ops)
		return run_fail(&s->run, -EOPNOTSUPP, STATUS_UNSUPPORTED, "no engine number %u here", offer->engine);
	if (offer->notice == TRANSFER_NOTICE_CONTROL && !delivered)
		return run_fail(&s->run, -EOPNOTSUPP, STATUS_UNSUPPORTED, "notices on the control channel are not "
			"safe on this fabric");
	if (offer->channels > link_channel_count(s->run.link))
		return run_fail(&s->run, -EINVAL, STATUS_INVALID, "%u channels offered, %u are open", offer->channels,
			link_channel_count(s->run.link));
	if (p->max_block && offer->block > p->max_block)
		return run_fail(&s->run, -EINVAL, STATUS_LIMIT, "blocks of %u bytes offered, %u is the limit",
			offer->block, p->max_block);
	return 0;
}

static uint32_t choose_depth(const struct sink *s, const struct transfer_offer *offer)
{
	const struct transfer_params *p = s->run.params;
	uint64_t window = p->window_max_bytes ? p->window_max_bytes : TRANSFER_WINDOW_MAX;
	uint64_t depth = offer->depth;

	if (p->depth && depth > p->depth)
		depth = p->depth;
	if (p->max_depth && depth > p->max_depth)
		depth = p->max_depth;
	if (depth > link_max_depth(s->run.link))
		depth = link_max_depth(s->run.link);
	if (depth > window / offer->block)
		depth = window / offer->block;
	return depth < 2 ? 2 : (uint32_t)depth;
}

static int accept_offer(struct sink *s, const struct transfer_offer *offer, const struct engine_ops *ops)
{
	bool imm = (offer->flags & TRANSFER_OFFER_IMM) && offer->notice == TRANSFER_NOTICE_BEHIND &&
		fabric_chan_caps(control_chan(s->run.control))->has_imm;
	uint32_t depth = choose_depth(s, offer);
	unsigned cpus = worker_cpus();
	struct plan_facts facts = {.workers = s->run.params->workers, .cpus = cpus, .max_block = offer->block,
		.open_channels = offer->channels, .window_max_bytes = UINT64_MAX, .max_depth = depth};
	struct plan plan;
	struct transfer_accept accept;
	struct engine_env env;
	uint8_t data[64];
	int r;

	plan_make(&facts, &plan);
	if (offer->depth < 2)
		return run_fail(&s->run, -EINVAL, STATUS_INVALID, "a window of one block");
	r = run_make_pool(&s->run, depth, offer->block, FABRIC_REMOTE_WRITE);
	if (r)
		return run_fail(&s->run, r, 0, "memory for %u blocks of %u bytes", depth, offer->block);
	s->block = offer->block;
	env = (struct engine_env){
		.pool = s->run.pool,
		.mr = s->run.mr,
		.cq = link_cq(s->run.link),
		.lanes = link_lanes(s->run.link),
		.lane_count = offer->channels,
		.notice = offer->notice,
		.imm = imm,
		.put = run_engine_put,
		.put_ctx = &s->run,
	};
	r = ops->sink_open(&env, &s->run.engine);
	if (!r)
		r = crew_new(&(struct crew_params){.workers = plan.workers, .jobs = JOB_THREADS,
				.blocks = pool_count(s->run.pool), .queued_jobs = TRANSFER_OPEN_MAX + LEAVING_MAX}, &s->run.crew);
	if (r)
		return r;
	accept = (struct transfer_accept){
		.depth = pool_count(s->run.pool),
		.stride = pool_stride(offer->block),
		.base = fabric_mr_base(s->run.mr),
		.key = fabric_mr_key(s->run.mr),
		.flags = imm ? TRANSFER_ACCEPT_IMM : 0,
	};
	return run_put(&s->run, TRANSFER_ACCEPT, data, transfer_put_accept(&accept, data, sizeof data));
}

static int set_up(struct sink *s)
{
	struct transfer_stats *stats = s->run.stats;
	const struct engine_ops *ops;
	struct transfer_offer offer;
	struct message_header h;
	const uint8_t *data;
	int r = run_get_wait(&s->run, &h, &data);

	if (r < 0)
		return r;
	if (h.type != TRANSFER_OFFER || transfer_get_offer(&offer, data, h.length))
		return run_fail(&s->run, -EBADMSG, STATUS_PROTOCOL, "no well-formed OFFER, but %s", message_name(h.type));
	ops = engine_by_id(offer.engine);
	r = check_offer(s, &offer, ops);
	if (!r)
		r = accept_offer(s, &offer, ops);
	if (r)
		return r;
	stats->total_bytes = offer.bytes;
	stats->total_files = offer.files;
	stats->engine = ops->name;
	stats->channels = offer.channels;
	stats->depth = pool_count(s->run.pool);
	stats->block = offer.block;
	return 0;
}

/* The last word of a transfer that went well, after the memory is nobody's any more. */
static int close_transfer(struct sink *s)
{
	struct transfer_complete closed = {
		.files = s->run.stats->files,
		.bytes = s->run.stats->bytes,
		.errors = s->run.stats->errors,
	};
	uint8_t data[64];

	run_revoke(&s->run);
	return run_put(&s->run, TRANSFER_CLOSED, data, transfer_put_complete(&closed, data, sizeof data));
}

/* A transfer that was cut short: what has begun is removed, and each file is told. */
static void drop_file(struct sink *s, struct sink_file *f)
{
	if (!f->job_out) { /* else its job has run to its end, one way or the other */
		file_fail(f, 0, s->run.status ? s->run.status : STATUS_DISCONNECTED, "%s", s->run.text);
		run_job(&f->job);
	}
	f->told = true; /* there is nobody to tell */
	file_finish(s, f);
}

static void drop_files(struct sink *s)
{
	while (s->leaving)
		drop_file(s, s->leaving);
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i])
			drop_file(s, s->files[i]);
}

int transfer_receive(struct link *link, const struct transfer_params *params, const struct transfer_sink *to,
	struct transfer_stats *stats)
{
	struct sink *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return -ENOMEM;
	run_init(&s->run, link, params, stats);
	s->to = to;
	r = set_up(s);
	if (!r)
		r = loop(s);
	if (!r)
		r = close_transfer(s);
	if (!r && stats->errors)
		r = -EREMOTEIO;
	r = run_end(&s->run, r);
	drop_files(s);
	free(s);
	return r;
}

bool transfer_session_lost(int error)
{
	switch (error) {
	case -ENOTCONN:
	case -ECONNRESET:
	case -ETIMEDOUT:
	case -EBADMSG:
	case -EPIPE:
	case -ENOBUFS:
		return true;
	default:
		return false;
	}
}
