/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fabric/engine_half.h: one half of a transfer by an engine: what a transfer is without its
 * files: memory, a pool, the channels and an engine.  What a transfer's frames tell crosses as
 * notes.
 *
 * It sleeps as a transfer does, and a wait that was in vain says where everything stood: whether
 * the machine stood still, a wake-up was lost, or the engine held something back.
 */
#ifndef TESTS_FABRIC_ENGINE_HALF_H
#define TESTS_FABRIC_ENGINE_HALF_H

#include "block/arena.h"
#include "engine/engine.h"
#include "tests/cpu_time.h"
#include "proto/message.h"
#include "proto/transfer.h"
#include "tests/fabric/side.h"

#define ENGINE_CHANNELS 3u
#define ENGINE_DEPTH 8u         /* of the channels: more than there are blocks or slots */
#define ENGINE_SOURCE_BLOCKS 7u /* a multiple of nothing */
#define ENGINE_SLOTS 6u
#define ENGINE_BLOCKS 61u
#define ENGINE_BLOCK_BYTES BLOCK_BYTES_MIN
#define ENGINE_CLEAN 0x5a    /* what is in a slot that nobody has written to */
#define ENGINE_KEEP_EVERY 9u /* the sink keeps such a block */
#define ENGINE_KEEP_FOR 2u   /* until so many more have landed */
#define ENGINE_BATCH 4u      /* fewer than can be ready at once */

/* w[0] of a note: what it is in the low half; a frame's length in the high one */
enum {
	ENGINE_MEMORY = 1,
	ENGINE_STATUS,
	ENGINE_EMPTIED,
	ENGINE_COMPLETE,
	ENGINE_CLOSED,
	ENGINE_FRAME
};
/* where in a note a frame's type is, and then its data; a GRANT of all slots fits, and an EXPOSE */
#define ENGINE_FRAME_AT sizeof(uint64_t)
#define ENGINE_DATA_AT (ENGINE_FRAME_AT + sizeof(uint16_t))
#define ENGINE_DATA_BYTES (NOTE_WORDS * sizeof(uint64_t) - ENGINE_DATA_AT)

struct engine_half {
	struct side *side;
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	struct channel *channels[ENGINE_CHANNELS];
	struct link *links[ENGINE_CHANNELS];
	uint64_t seed; /* of the blocks: both halves know them */

	/* of one transfer */
	bool source;
	struct arena arena;
	struct fabric_mr *mr;
	struct pool *pool;
	const struct engine_ops *engine;
	struct engine_source *from; /* one of these */
	struct engine_sink *to;
	struct verdict why;
	uint32_t sent, landed, drained, frames;
	struct block *waiting, *kept; /* filled, but there is no slot; landed, not given back yet */
	uint32_t kept_until,
		kept_alone; /* so many have landed; nothing else can land: see sink_round */
	bool seen[ENGINE_BLOCKS];
	bool settled; /* nothing of the source's is under way */
	bool emptied; /* the sink has taken all blocks */
	bool over;    /* COMPLETE, or CLOSED, has come: the last note of a transfer */

	/* of the last wait: for who must explain why it was in vain */
	uint64_t wait_ns, cpu_ns; /* when it began: monotonic, and this process's CPU time */
	uint64_t stood_ns;        /* naps that were much too long */
	unsigned naps, woken;
};

static void engine_tell(struct side *);

static void engine_half_end(struct engine_half *h)
{
	if (h->from)
		h->from->ops->close(h->from);
	if (h->to)
		h->to->ops->close(h->to);
	fabric_mr_free(h->mr);
	pool_free(h->pool);
	arena_fini(&h->arena);
	h->engine = NULL;
	h->from = NULL;
	h->to = NULL;
	h->mr = NULL;
	h->pool = NULL;
	h->arena = (struct arena){0};
}

static void engine_half_free(struct side *s)
{
	struct engine_half *h = s->undo_of;

	if (h->from)
		h->from->ops->stop(h->from);
	/* nothing lands in memory that is gone */
	for (unsigned i = 0; i < ENGINE_CHANNELS; i++) {
		if (h->links[i])
			h->links[i]->chan = NULL;
		channel_free(h->channels[i]);
	}
	engine_half_end(h);
	free(h);
}

/* ---- channels ---- */

static void engine_channel_open(struct engine_half *h, unsigned number)
{
	struct side *s = h->side;
	struct link *l = link_blank(s);
	struct fabric_chan *chan;
	struct fabric_wc wc;
	uint32_t sent;

	if (s->client)
		chan = link_dial_chan(s, (const struct sockaddr *)&s->dst);
	else
		chan = side_next_request(s).chan;
	l->chan = chan; /* it is freed with it until the channel takes it over */
	if (!h->pd) {
		must_eq(s, fabric_pd_new(chan, &h->pd), 0);
		s->pds[s->pd_count++] = h->pd;
		must_eq(s,
			fabric_cq_new(
				h->pd, ENGINE_CHANNELS * channel_completions(ENGINE_DEPTH), &h->cq),
			0);
		s->cqs[s->cq_count++] = h->cq;
	}
	l->chan = NULL;
	must_eq(s, channel_new(chan, h->pd, h->cq, number, ENGINE_DEPTH, &h->channels[number]), 0);
	l->chan = chan;
	l->channel = true;
	h->links[number] = l;
	if (s->client) {
		must_eq(s, fabric_chan_connect(chan, NULL, 0), 0);
		link_wait_connected(l);
		must_eq(s, channel_greet(h->channels[number]), 0);
	} else {
		must_eq(s, channel_expect_greeting(h->channels[number], 0), 0);
		must_eq(s, fabric_chan_accept(chan, NULL, 0), 0);
		link_wait_connected(l);
	}
	wc = cq_next(s, h->cq);
	must(s, wc.chan == chan);
	must_eq(s, channel_completion(&wc, &sent, &h->why), 0);
	must(s, h->channels[number]->greeted);
}

static struct engine_half *engine_half_new(struct side *s)
{
	struct engine_half *h = calloc(1, sizeof *h);

	must(s, h);
	h->side = s;
	s->undo_of = h;
	s->undo = engine_half_free;
	s->tell = engine_tell;
	for (unsigned i = 0; i < ENGINE_CHANNELS; i++)
		engine_channel_open(h, i);
	return h;
}

/* ---- blocks ---- */

/* Most are full; some are not, and the last is a short one. */
static uint32_t engine_length(uint64_t seed, uint32_t sequence)
{
	uint64_t roll = seed + sequence;
	uint32_t some = 1 + (uint32_t)(harness_random(&roll) % ENGINE_BLOCK_BYTES);

	if (sequence + 1 == ENGINE_BLOCKS)
		return 1 + some % 4095;
	return sequence % 5 == 3 ? some : ENGINE_BLOCK_BYTES;
}

static struct transfer_block engine_header(uint64_t seed, uint32_t sequence)
{
	uint64_t roll = seed ^ sequence;

	return (struct transfer_block){
		.session = 1,
		.sequence = sequence,
		.offset = (uint64_t)sequence * ENGINE_BLOCK_BYTES,
		.length = engine_length(seed, sequence),
		.sum = harness_random(&roll),
	};
}

static void engine_fill(struct engine_half *h, struct block *b)
{
	struct transfer_block header = engine_header(h->seed, h->sent);

	b->length = header.length;
	pattern_fill(b->payload, b->length, h->seed + h->sent);
	/* what is behind it must not cross */
	memset(b->payload + b->length, 0xee, b->capacity - b->length);
	transfer_put_block(&header, b->payload - BLOCK_PREFIX_BYTES);
	pool_move(b, BLOCK_FILLED);
}

/* A landed block: one that was sent, whole, each once, and nothing of its slot but it was written
 * to.  Gives its number. */
static uint32_t engine_check(struct engine_half *h, struct block *b)
{
	struct side *s = h->side;
	struct transfer_block header, want;

	must_eq(s, b->state, BLOCK_LANDED);
	must_eq(s, transfer_get_block(&header, b->payload - BLOCK_PREFIX_BYTES, ENGINE_BLOCK_BYTES),
		0);
	must(s, header.sequence < ENGINE_BLOCKS);
	must(s, !h->seen[header.sequence]);
	h->seen[header.sequence] = true;
	want = engine_header(h->seed, header.sequence);
	must_eq(s, header.session, want.session);
	must_eq(s, header.offset, want.offset);
	must_eq(s, header.length, want.length);
	must(s, header.sum == want.sum);
	must(s, pattern_is(b->payload, want.length, h->seed + want.sequence));
	must(s, filled_with(b->payload + want.length, b->capacity - want.length, ENGINE_CLEAN));
	return want.sequence;
}

/* The block's slot is as nobody had written to it, and is given back. */
static void engine_drain(struct engine_half *h, struct block *b)
{
	memset(b->payload - BLOCK_PREFIX_BYTES, ENGINE_CLEAN, BLOCK_PREFIX_BYTES + b->capacity);
	pool_move(b, BLOCK_DRAINING);
	pool_give(h->pool, b);
	h->drained++;
}

/* ---- what crosses beside the fabric under test ---- */

static int engine_put(void *ctx, uint16_t type, const void *data, size_t len)
{
	struct engine_half *h = ctx;
	struct note note = {{ENGINE_FRAME | (uint64_t)len << 32}, 0};

	must(h->side, len <= ENGINE_DATA_BYTES);
	memcpy((uint8_t *)note.w + ENGINE_FRAME_AT, &type, sizeof type);
	if (len)
		memcpy((uint8_t *)note.w + ENGINE_DATA_AT, data, len);
	note_send(h->side, note);
	return 0;
}

static void engine_take_note(struct engine_half *h, const struct note *note)
{
	size_t len = (size_t)(note->w[0] >> 32);
	const uint8_t *data = (const uint8_t *)note->w + ENGINE_DATA_AT;
	struct side *s = h->side;
	uint16_t type;

	switch ((uint32_t)note->w[0]) {
	case ENGINE_EMPTIED:
		must(s, h->source && !h->emptied);
		h->emptied = true;
		return;
	case ENGINE_COMPLETE:
	case ENGINE_CLOSED:
		must_eq(s, (uint32_t)note->w[0], h->source ? ENGINE_CLOSED : ENGINE_COMPLETE);
		h->over = true;
		return;
	default:
		must_eq(s, (uint32_t)note->w[0], ENGINE_FRAME);
	}
	must(s, len <= ENGINE_DATA_BYTES);
	memcpy(&type, (const uint8_t *)note->w + ENGINE_FRAME_AT, sizeof type);
	h->frames++;
	must_eq(s,
		(h->source ? engine_source_frame(h->from, type, data, len)
			   : engine_sink_frame(h->to, type, data, len)),
		1);
}

/* All notes of the transfer that are there.  Whether there was one. */
static bool engine_notes(struct engine_half *h)
{
	struct note note;
	bool any = false;

	while (!h->over && note_get(h->side, &note)) {
		engine_take_note(h, &note);
		any = true;
	}
	return any;
}

/* ---- waiting ---- */

#define ENGINE_NAP_NS (100 * NS_PER_MS)

/* The lines of a file of /proc, as comments; `busy`: of sockets, those with bytes in a queue. */
static void engine_tell_file(const char *path, bool busy)
{
	FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (!busy || (strstr(line, " 01 ") && !strstr(line, " 00000000:00000000 ")))
			printf("#   %s: %.*s\n", path, (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
}

/* What waits in a queue.  Takes it out: nobody else will. */
static void engine_tell_cq(const char *name, struct fabric_cq *cq)
{
	struct pollfd fd = {fabric_cq_fd(cq), POLLIN, 0};
	struct fabric_wc wc;
	int ready = poll(&fd, 1, 0);

	printf("#   %s queue: fd %sreadable\n", name, ready == 1 ? "" : "not ");
	while (fabric_cq_poll(cq, &wc, 1) == 1)
		printf("#   %s queue: id %" PRIx64 " %s\n", name, wc.id,
			fabric_status_name(wc.status));
}

/* Both halves tell: who fails first makes the other fail. */
static void engine_tell(struct side *s)
{
	struct engine_half *h = s->undo_of;
	unsigned states[BLOCK_DRAINING + 1] = {0};

	if (!h || !h->engine)
		return;
	printf("#   %s of %s: sent %u landed %u drained %u, %u frames, %u notes not "
	       "taken%s%s%s%s%s\n",
		h->source ? "source" : "sink", h->engine->name, h->sent, h->landed, h->drained,
		h->frames, s->inbox_count, h->waiting ? ", one waits" : "",
		h->kept ? ", one kept" : "", h->emptied ? ", emptied" : "",
		h->settled ? ", settled" : "", h->over ? ", over" : "");
	printf("#   waited %llu ms, of which the machine stood still %llu ms; the process had %llu "
	       "ms of CPU; "
	       "%u naps, woken %u times\n",
		(clock_now_ns() - h->wait_ns) / NS_PER_MS, h->stood_ns / NS_PER_MS,
		(process_cpu_ns() - h->cpu_ns) / NS_PER_MS, h->naps, h->woken);
	for (uint32_t i = 0; i < pool_count(h->pool); i++)
		states[pool_at(h->pool, i)->state]++;
	for (unsigned i = 0; i <= BLOCK_DRAINING; i++)
		if (states[i])
			printf("#   %u blocks in state %u\n", states[i], i);
	if (h->from)
		printf("#   room for %d\n", h->from->ops->room(h->from, 0));
	for (unsigned i = 0; i < ENGINE_CHANNELS; i++) {
		const struct channel *l = h->channels[i];

		printf("#   channel %u: writes %" PRIu64 " sends %" PRIu64 " receives %" PRIu64
		       "; out: %u requests, "
		       "%u completions, %" PRIu64 " bytes; %u receives idle; ended %d\n",
			i, l->counts.writes, l->counts.sends, l->counts.receives, l->queue.out,
			l->queue.span_count, l->outstanding_bytes, l->idle_count,
			h->links[i]->ended);
	}
	engine_tell_cq("control", s->control->cq);
	engine_tell_cq("channels'", h->cq);
	if (s->client)
		return; /* the rest is the same for both */
	engine_tell_file("/proc/loadavg", false);
	engine_tell_file("/proc/pressure/cpu", false);
	engine_tell_file("/proc/self/net/tcp", true);
	engine_tell_file("/proc/self/net/tcp6", true);
}

/* Sleeps until a descriptor is readable, the engine wants to look, or *left is over.  What the
 * machine stands still for counts as one nap. */
static int engine_sleep(
	struct engine_half *h, struct pollfd fds[3], int64_t nap, uint64_t *mark, uint64_t *left)
{
	int ready;

	do {
		uint64_t ns = nap >= 0 && (uint64_t)nap < ENGINE_NAP_NS ? (uint64_t)nap
									: ENGINE_NAP_NS,
			 spent;
		struct timespec ts = {.tv_nsec = (long)ns};

		ready = ppoll(fds, 3, &ts, NULL);
		spent = clock_now_ns() - *mark;
		*mark += spent;
		if (spent > 2 * ENGINE_NAP_NS)
			h->stood_ns += spent;
		if (spent > ENGINE_NAP_NS)
			spent = ENGINE_NAP_NS;
		*left -= spent < *left ? spent : *left;
		h->naps++;
		h->woken += ready > 0;
	} while (!ready && nap < 0 && *left);
	return ready;
}

/* Sleeps as a transfer does, until there is something that `round` can do. */
static void engine_wait(struct engine_half *h, bool (*round)(struct engine_half *))
{
	uint64_t mark = clock_now_ns(), left = WAIT_MS * NS_PER_MS;
	struct side *s = h->side;
	bool any, woken = true;

	h->wait_ns = mark;
	h->cpu_ns = process_cpu_ns();
	h->stood_ns = h->naps = h->woken = 0;
	for (;;) {
		struct pollfd fds[3] = {
			{fabric_cq_fd(h->cq), POLLIN, 0},
			{fabric_cq_fd(s->control->cq), POLLIN, 0},
			{fabric_eq_fd(s->eq), POLLIN, 0},
		};
		int64_t nap;

		side_drain(s);
		for (unsigned i = 0; i < ENGINE_CHANNELS; i++)
			must_eq(s, h->links[i]->ended, 0);
		must_eq(s, fabric_cq_arm(h->cq), 0);
		must_eq(s, fabric_cq_arm(s->control->cq), 0);
		/* who sends a note takes in those that come meanwhile: no descriptor tells of them
		 */
		any = round(h) || s->inbox_count;
		if (any && !left && !woken)
			must(s, !"to be woken for what there was to do");
		if (any)
			return;
		if (!left)
			must(s, !"a block within the deadline");
		nap = engine_sleep_ns(h->source ? &h->from->common : &h->to->common);
		woken = engine_sleep(h, fds, nap, &mark, &left) || nap >= 0;
	}
}

#endif
