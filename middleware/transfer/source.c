/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source: the source loop.
 *
 *     end --FILLED--> engine --completion--> FREE
 *
 * One thread: takes in frames, completions and filled blocks, starts files, hands free blocks to
 * the I/O pool to be filled, sends filled ones.  Many files are under way at once, so that a tree
 * of small files waits for no round trip; blocks are filled for the file that was started first.
 */
#include "transfer/source_bundles.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct source *self(struct run *run)
{
	return (struct source *)run;
}

/* ---- frames ---- */

static int take_have(struct source *s, const uint8_t *data, size_t len)
{
	struct transfer_have have;
	struct source_file *f;

	if (transfer_get_have(&have, data, len))
		return -EBADMSG;
	f = source_find_file(s, have.file);
	return f ? source_take_have(s, f, &have) : -EBADMSG;
}

static int take_ready(struct source *s, const uint8_t *data, size_t len)
{
	struct transfer_ready ready;
	struct source_file *f;

	if (transfer_get_ready(&ready, data, len))
		return -EBADMSG;
	f = source_find_file(s, ready.file);
	if (!f || f->bundle || f->ready || f->bare || source_take_ready(s, f, &ready))
		return -EBADMSG;
	if (s->from->feed && !f->read_all)
		io_pool_feed_add(s->run.io_pool, &f->target);
	return source_end_file(s, f);
}

static int take_result(struct source *s, const uint8_t *data, size_t len)
{
	struct transfer_result result;
	struct source_file *f;

	if (transfer_get_result(&result, data, len))
		return -EBADMSG;
	f = source_find_file(s, result.file);
	if (!f || f->bundle || f->answered || (!result.status && !f->ended))
		return -EBADMSG;
	f->answered = true;
	f->item.at_sink = result.status && !f->verdict.status;
	if (result.status)
		verdict_set(&f->verdict, VERDICT_FILE, result.status, "%.*s", (int)result.text.len,
			(const char *)result.text.data);
	else if (!f->verdict.status && (result.digest != f->digest || result.size != f->bytes))
		verdict_set(&f->verdict, VERDICT_FILE, STATUS_DIGEST,
			"the sink has another digest: %016llx, here %016llx",
			(unsigned long long)result.digest, (unsigned long long)f->digest);
	verdict_note(&f->verdict, (const char *)result.text.data, result.text.len); /* what of it
										could not be kept */
	if (!f->ready && !f->bare && !s->run.params->early) {
		/* refused before READY: nothing was read, nothing is to be ended */
		source_stop_reading(s, f);
		f->ended = true;
	}
	if (f->ended) {
		source_file_finish(s, f);
		return 0;
	}
	if (s->from->feed) { /* it stops reading, and says so by a last block */
		if (!f->read_all)
			io_pool_feed_stop(s->run.io_pool, &f->target);
		return 0;
	}
	if (f->in_io &&
		end_is_stream(f->target.end)) { /* its worker may wait for a pipe for ever */
		s->run.told = true;
		return run_fail(
			&s->run, VERDICT_TRANSFER, f->verdict.status, "%s", f->verdict.text);
	}
	source_stop_reading(s, f);
	return source_end_file(s, f);
}

static int take_closed(struct source *s, const uint8_t *data, size_t len)
{
	const struct transfer_complete sums = run_sums(&s->run);
	struct transfer_complete closed;

	if (!s->completed || s->open || s->bundles || transfer_get_complete(&closed, data, len) ||
		closed.open)
		return -EBADMSG;
	s->closed = true;
	if (closed.files == sums.files && closed.bytes == sums.bytes &&
		closed.errors == sums.errors)
		return 0;
	return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
		"what the sink counts does not add up: %ju files of %ju bytes and %ju that failed, "
		"here %ju of %ju and %ju",
		(uintmax_t)closed.files, (uintmax_t)closed.bytes, (uintmax_t)closed.errors,
		(uintmax_t)sums.files, (uintmax_t)sums.bytes, (uintmax_t)sums.errors);
}

/* Of an early get, the answer to another offer than there is, and the credits behind it; they were
 * well-formed or not. */
static bool passes_by(const struct run *run, struct handshake *hs, const struct message_header *h)
{
	bool early = run->params->early && !run->params->answered && !hs->invited;
	bool first = h->type == TRANSFER_ACCEPT && !hs->passed;

	if (!early || !(first || (hs->passed && h->type == TRANSFER_GRANT)))
		return false;
	hs->passed = true;
	return true;
}

/* What was decided before it about the first file stays: it is no bundle's. */
static int take_accept(struct source *s, const struct message_header *h, const uint8_t *data)
{
	bool bundles = false;
	int err = run_answered(&s->run);

	if (err <= 0)
		return err ? err : -EBADMSG;
	if (passes_by(&s->run, &s->handshake, h))
		return 0;
	err = handshake_take_accept(&s->run, s->from, &s->handshake, h, data, &bundles);
	if (!err && !s->last_number && !s->no_more)
		err = source_make_gathers(s, bundles);
	return err;
}

static int take_frame(struct source *s, const struct message_header *h, const uint8_t *data)
{
	int err;

	if (!s->run.source)
		return take_accept(s, h, data);
	err = engine_source_frame(s->run.source, h->type, data, h->length);

	if (err)
		return err < 0 ? err : 0;
	switch (h->type) {
	case TRANSFER_HAVE:
		return take_have(s, data, h->length);
	case TRANSFER_READY:
		return take_ready(s, data, h->length);
	case TRANSFER_RESULT:
		return take_result(s, data, h->length);
	case TRANSFER_RESULTS:
		return source_take_results(s, data, h->length);
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
	int n = 0, got, err;

	while (!s->closed && n < (int)RUN_FRAMES_MAX && (got = run_get(&s->run, &h, &data)) != 0) {
		if (got > 0) {
			s->run.moved = true;
			err = take_frame(s, &h, data);
		} else {
			err = got;
		}
		if (err == -EBADMSG)
			return run_fail(&s->run, VERDICT_SESSION, STATUS_PROTOCOL,
				"%s from the sink is malformed or out of turn",
				message_name(h.type));
		if (err)
			return err;
		n++;
	}
	return n;
}

/* ---- the loop ---- */

/*
 * Whether all that there is has been sent, so that only the sink's words are to come: then COMPLETE
 * need not wait for them, which would take a round trip.  What failed is told before it.
 */
static bool is_all_sent(const struct source *s)
{
	if (!s->no_more || !source_gathered_all(s))
		return false;
	if (!s->open && !s->bundles)
		return s->run.source;
	if (s->run.stats->errors || !(s->run.source || s->run.params->answered))
		return false;
	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++)
		if (s->files[i].used && (!s->files[i].ended || s->files[i].in_io))
			return false;
	return true;
}

/* Files, and entries of bundles, that were sent and not heard of. */
static uint32_t count_open(const struct source *s)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < TRANSFER_OPEN_MAX; i++) {
		const struct source_file *f = &s->files[i];

		if (f->used)
			count += f->bundle ? f->bundle->count : 1;
	}
	return count;
}

/* Nothing of this transfer may be left on a channel for the next one.  1, 0: it is, or -errno. */
static int settle(struct source *s)
{
	if (s->run.source)
		return s->run.source->ops->settle(s->run.source);
	return s->run.sender ? sender_flush(s->run.sender) : 1;
}

static int complete(struct source *s)
{
	struct transfer_complete complete = run_sums(&s->run);
	uint8_t data[64];

	s->completed = true;
	complete.open = count_open(s);
	return run_put(&s->run, TRANSFER_COMPLETE, data,
		transfer_put_complete(&complete, data, sizeof data));
}

/* Whether blocks are compressed from now on. */
static void choose_squeeze(struct source *s)
{
	const struct squeeze_choice before = s->squeeze;

	const struct squeeze_round round = {
		.bytes = s->left_bytes,
		.under_way_bytes = ((uint64_t)s->filled_count + s->sending) * s->plan.block,
		/* full blocks wait for room, or so many are under way that the next would */
		.busy = s->filled_count || s->sending > pool_count(s->run.pool) / 2,
	};

	squeeze_choice_round(&s->squeeze, clock_now_ns(), &round);
	s->left_bytes = 0;
	if (s->squeeze.on != before.on)
		log_debug("blocks are %s now%s: %ju MB/s before, link busy for %ju of %ju ms",
			s->squeeze.on ? "compressed" : "as they are",
			s->squeeze.trial ? ", to see whether that is faster" : "",
			(uintmax_t)(before.bytes * 1000 / ((before.last_ns - before.since_ns) + 1)),
			(uintmax_t)before.busy_ns / 1000000,
			(uintmax_t)(before.last_ns - before.since_ns) / 1000000);
}

/* 0 or a failure. */
static int look_for_answer(struct source *s)
{
	int err = run_answered(&s->run);

	return err < 0 ? err : 0;
}

/* Of one file there is nothing to gather, and all that is known of the sink can come later. */
static bool may_begin(const struct source *s)
{
	return !s->gathers && (s->run.source || s->from->total_files == 1);
}

/*
 * Behind COMPLETE nothing of this side's is on the channels, and a sink that has said CLOSED may
 * close them, and be gone: what breaks then is known before the word that it may.  Only frames
 * count.
 */
static int await_closed(struct source *s)
{
	struct fabric_wc wc[16];
	int err = look_for_answer(s);
	int frames = err ? err : take_frames(s);
	int flushed = frames < 0 ? 0 : fabric_cq_poll(s->run.rail->cq, wc, 16);

	if (frames < 0)
		return frames;
	return s->closed ? 1 : frames + (flushed > 0 ? flushed : 0);
}

/* One round: how much was done, or -errno. */
static int work(struct run *run)
{
	struct source *s = self(run);
	int total = 0;
	static int (*const steps[])(struct source *) = {
		look_for_answer,
		take_frames,
		source_take_completions,
		source_take_filled,
		source_take_rereads,
		source_gather,
		source_fill_blocks,
		source_send_blocks,
	};

	if (s->completed)
		return await_closed(s);
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		int n = steps[i](s);

		if (n < 0)
			return n;
		total += n;
	}
	if (s->squeeze.asked)
		choose_squeeze(s);
	while (may_begin(s) && source_may_start(s)) {
		int err = source_start_file(s);

		if (err)
			return err;
		total++;
	}
	if (!s->completed && is_all_sent(s) && run_is_paid_for(&s->run)) {
		int err = settle(s);

		if (err > 0)
			err = complete(s);
		else if (!err)
			return total;
		if (err)
			return err;
		total++;
	}
	return s->closed ? 1 : total;
}

static int loop(struct source *s)
{
	int err = 0;

	while (!s->closed && err >= 0) {
		err = work(&s->run);
		if (!err)
			err = run_wait(&s->run, work);
		if (err >= 0)
			err = run_tick(&s->run);
	}
	return err < 0 ? err : 0;
}

/* Nothing begins before it is there. */
static int await_accept(struct source *s)
{
	struct message_header h;
	const uint8_t *data;
	int err = run_get_wait(&s->run, &h, &data);

	return err < 0 ? err : take_accept(s, &h, data);
}

/* ---- the end ---- */

static void drop_files(struct run *run)
{
	if (self(run)->files)
		source_drop_files(self(run));
	source_drop_gathers(self(run));
}

/* What crosses now is with the oldest file that is under way. */
static void observe_current(struct source *s)
{
	const struct source_file *oldest = NULL;

	for (unsigned i = 0; i < TRANSFER_OPEN_MAX && s->files; i++) {
		const struct source_file *f = &s->files[i];

		if (f->used && !f->bare && (!oldest || f->number < oldest->number))
			oldest = f;
	}
	if (oldest)
		run_set_current(&s->run,
			oldest->bundle ? source_bundle_name(oldest) : oldest->item.file.name);
}

/* A slot that the sink has emptied holds what it has verified; files that have arrived were, too,
 * but for what was there already. */
static void observe(struct run *run)
{
	struct transfer_stats *stats = run->stats;
	uint64_t arrived = run->arrived_bytes, known;

	observe_current((struct source *)run);
	if (!run->source || run->source->ops->room(run->source, 0) < 0)
		return; /* the loop will see why */
	/* of what went early nothing is told but with its file */
	known = stats->bytes - run->source->slots.full_bytes - stats->early_bytes;
	if (run->source->ops->is_fetched) /* a block that was fetched is not verified yet */
		known = 0;
	arrived = arrived > stats->had_bytes ? arrived - stats->had_bytes : 0;
	known = known > arrived ? known : arrived;
	if (known > stats->verified_bytes)
		stats->verified_bytes = known;
}

enum verdict_scope transfer_send(struct link *link, const struct transfer_params *params,
	const struct transfer_source *from, struct transfer_stats *stats)
{
	struct source s = {.from = from, .handshake.plan = &s.plan};
	enum verdict_scope outcome;
	int err;

	err = run_init(&s.run, link, params, stats);
	s.run.waits = source_waits;
	s.run.drop_files = drop_files;
	s.run.observe = observe;
	s.open_max = run_open_files(&s.run);
	s.reading_tail = &s.reading;
	s.files = calloc(TRANSFER_OPEN_MAX, sizeof *s.files);
	/* the peer waits for OFFER by now: it is told of this failure as of any other */
	if (!err && !s.files)
		err = run_fail(&s.run, VERDICT_TRANSFER, STATUS_NO_MEMORY, "the table of files");
	if (!err)
		err = handshake_offer(&s.run, from, &s.handshake);
	if (!err)
		err = params->early ? source_early_begin(&s) : await_accept(&s);
	if (!err)
		err = source_make_ring(&s);
	if (!err)
		squeeze_choice_init(&s.squeeze, params->squeeze,
			(uint64_t)pool_count(s.run.pool) * s.plan.block, s.plan.block);
	if (!err)
		err = loop(&s);
	atomic_store(&s.stop, true);
	outcome = run_end(&s.run, err);
	source_free_gathers(&s);
	free(s.filled);
	free(s.files);
	return outcome;
}
