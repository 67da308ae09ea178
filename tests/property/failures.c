/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/failures: many files at once, of which single ones fail at random places on either
 * side.
 *
 * Property: a file that fails costs no other file and not the session: each outcome is told once on
 * both sides, both agree on it, and the same link then carries the next transfer, in the other
 * direction and by another engine.
 */
#include "../harness.h"
#include "pair.h"

#include "base/log.h"
#include "end/end_impl.h"
#include "engine/engine.h"
#include "fabric/loop/loop.h"
#include "proto/status.h"
#include "transfer/transfer.h"

#define FILES 700u
#define ROUNDS 12u

enum failure {
	NONE,
	SOURCE_OPEN,
	SOURCE_READ,
	SOURCE_CHECK,
	SINK_OPEN,
	SINK_WRITE,
	SINK_COMMIT,
	FAILURES
};

struct script {
	uint64_t sizes[FILES];
	uint64_t at[FILES]; /* offset of a failing block */
	enum failure failures[FILES];
	char names[FILES][8];
	unsigned next;
	unsigned source_told[FILES], sink_told[FILES];
	uint16_t source_status[FILES], sink_status[FILES];
	_Atomic unsigned committed, discarded;
};

/* An end that moves nothing and fails at one offset. */
struct faulty_end {
	struct end base;
	uint64_t size, fail_at;
	bool fails, writing;
};

static int faulty_start(struct end *end, struct block *b, struct iocb *iocb, int cancel_fd)
{
	struct faulty_end *f = (struct faulty_end *)end;

	(void)iocb;
	(void)cancel_fd;
	if (!f->writing && b->offset + b->length > f->size)
		b->length = b->offset < f->size ? (uint32_t)(f->size - b->offset) : 0;
	if (f->fails && b->offset <= f->fail_at && f->fail_at < b->offset + b->length)
		b->error = f->writing ? -ENOSPC : -EIO;
	return 0;
}

static int faulty_sync(struct end *end)
{
	(void)end;
	return 0;
}

static int faulty_free(struct end *end)
{
	free(end);
	return 0;
}

static const struct end_ops faulty_ops = {
	.start = faulty_start, .sync = faulty_sync, .free = faulty_free};

static struct end *faulty_new(const struct script *s, unsigned i, bool writing)
{
	struct faulty_end *f = calloc(1, sizeof *f);

	f->base.ops = &faulty_ops;
	f->size = s->sizes[i];
	f->fail_at = s->at[i];
	f->writing = writing;
	f->fails = s->failures[i] == (writing ? SINK_WRITE : SOURCE_READ);
	return &f->base;
}

static int next(void *ctx, struct transfer_item *item)
{
	struct script *s = ctx;
	unsigned i = s->next;

	if (i == FILES)
		return 0;
	s->next++;
	snprintf(s->names[i], sizeof s->names[i], "%u", i);
	*item = (struct transfer_item){
		.file = {.kind = TRANSFER_FILE_REGULAR,
			.mode = 0644,
			.size = s->sizes[i],
			.name = {(const uint8_t *)s->names[i], strlen(s->names[i])}},
		.cookie = (void *)(uintptr_t)i,
	};
	if (s->failures[i] == SOURCE_OPEN)
		item->error = -EACCES;
	else
		item->end = faulty_new(s, i, false);
	return 1;
}

static int check(void *ctx, const struct transfer_item *item)
{
	struct script *s = ctx;

	return s->failures[(uintptr_t)item->cookie] == SOURCE_CHECK ? -ESTALE : 0;
}

static void source_done(
	void *ctx, const struct transfer_item *item, uint16_t status, const char *text)
{
	struct script *s = ctx;

	(void)text;
	s->source_told[(uintptr_t)item->cookie]++;
	s->source_status[(uintptr_t)item->cookie] = status;
}

static unsigned number_of(const struct transfer_file *file)
{
	return (unsigned)strtoul(
		(const char *)file->name.data, NULL, 10); /* terminated by the sink */
}

static int sink_open(void *ctx, const struct transfer_file *file, struct end **end, void **cookie,
	char text[512])
{
	struct script *s = ctx;
	unsigned i = number_of(file);

	if (s->failures[i] == SINK_OPEN) {
		snprintf(text, 512, "no");
		return -EACCES;
	}
	*end = faulty_new(s, i, true);
	*cookie = (void *)(uintptr_t)i;
	return 0;
}

static int commit(
	void *ctx, void *cookie, const struct transfer_file *file, uint64_t size, char text[512])
{
	struct script *s = ctx;

	(void)file;
	(void)text;
	if (size != s->sizes[(uintptr_t)cookie])
		return -EIO;
	s->committed++;
	return s->failures[(uintptr_t)cookie] == SINK_COMMIT ? -EROFS : 0;
}

static void discard(void *ctx, void *cookie)
{
	struct script *s = ctx;

	(void)cookie;
	s->discarded++;
}

static void sink_done(
	void *ctx, const struct transfer_file *file, uint16_t status, const char *text)
{
	struct script *s = ctx;

	(void)text;
	s->sink_told[number_of(file)]++;
	s->sink_status[number_of(file)] = status;
}

struct source_thread {
	struct link *link;
	struct transfer_params params;
	struct script *script;
	int result;
	uint16_t status;
};

static void run_source(void *arg)
{
	struct source_thread *t = arg;
	struct transfer_source from = {.next = next,
		.check = check,
		.done = source_done,
		.ctx = t->script,
		.total_files = FILES,
		.total_bytes = MESSAGE_UNKNOWN,
		.largest_bytes = MESSAGE_UNKNOWN};
	struct transfer_stats stats;

	t->result = transfer_send(t->link, &t->params, &from, &stats);
	t->status = stats.verdict.status;
}

static struct transfer_sink sink_of(struct script *s)
{
	return (struct transfer_sink){.open = sink_open,
		.commit = commit,
		.discard = discard,
		.done = sink_done,
		.ctx = s};
}

/* By the default engine. */
static struct transfer_params few_blocks(uint16_t channels)
{
	return (struct transfer_params){.engine = engine_at(0)->id,
		.block = 65536,
		.depth = 8,
		.channels = channels,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.cancel_fd = -1};
}

static void make_script(struct script *s, uint64_t *rng, unsigned permille)
{
	memset(s, 0, sizeof *s);
	for (unsigned i = 0; i < FILES; i++) {
		s->sizes[i] = harness_random(rng) % 4 ? harness_random(rng) % 5000
						      : harness_random(rng) % (6 * 65536);
		s->at[i] = s->sizes[i] ? harness_random(rng) % s->sizes[i] : 0;
		if (harness_random(rng) % 1000 < permille)
			s->failures[i] = 1 + harness_random(rng) % (FAILURES - 1);
		if (!s->sizes[i] && (s->failures[i] == SOURCE_READ || s->failures[i] == SINK_WRITE))
			s->failures[i] = NONE; /* nothing is read or written */
	}
}

static const char *judge(const struct script *s)
{
	for (unsigned i = 0; i < FILES; i++) {
		if (s->source_told[i] != 1 || s->sink_told[i] != 1)
			return "an outcome was not told exactly once";
		if (!s->source_status[i] != (s->failures[i] == NONE))
			return "the source has a wrong outcome";
		if (!s->sink_status[i] != (s->failures[i] == NONE))
			return "the sink has a wrong outcome";
	}
	return NULL;
}

static void one_bad_file_costs_only_itself(void)
{
	uint64_t rng = harness_seed();
	static struct script script;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct loop_faults faults = {.seed = harness_random(&rng),
			.no_imm = round & 1,
			.reorder_permille = round % 3 ? 200 : 0};
		struct transfer_params params = {.block = 65536,
			.depth = 2 + harness_random(&rng) % 30,
			.max_block = 1 << 20,
			.max_depth = RAIL_DEPTH,
			.workers = round % 4,
			.cancel_fd = -1};
		struct fabric *fabric;
		struct pair pair;

		CHECK_EQ(loop_open(&faults, &fabric), 0);
		CHECK_EQ(pair_open(&pair, fabric, 1 + round % 4), 0);
		for (unsigned leg = 0; leg < 2; leg++) { /* there, and back over the same link */
			struct source_thread t = {.link = leg ? pair.daemon : pair.client,
				.params = params,
				.script = &script};
			const struct transfer_sink to = sink_of(&script);
			struct transfer_stats stats;
			unsigned engine = (round + leg * (1 + round % 2)) % 4;
			struct worker thread = {0};
			const char *wrong;
			int result;

			t.params.engine = engine_at(engine)->id;
			make_script(&script, &rng, round ? 300 : 0);
			CHECK_EQ(worker_start(&thread, "source", run_source, &t), 0);
			result = transfer_receive(
				leg ? pair.client : pair.daemon, &params, &to, &stats);
			worker_stop(&thread);
			wrong = judge(&script);
			if (wrong || result != t.result || result != (round ? VERDICT_FILE : 0))
				printf("# round %u, leg %u, %s: %s; sink %d %s, source %d\n", round,
					leg, engine_at(engine)->name, wrong ? wrong : "-", result,
					stats.verdict.text, t.result);
			CHECK(!wrong);
			CHECK_EQ(t.result, round ? VERDICT_FILE : 0);
			CHECK_EQ(result, round ? VERDICT_FILE : 0);
		}
		pair_close(&pair);
	}
}

/*
 * A data channel breaks before its transfer is offered: with early data, much may have gone by
 * then. The connection is lost; nobody was asked for more channels than there are.
 */
static void a_channel_lost_before_the_offer_is_a_lost_connection(void)
{
	uint64_t rng = harness_seed();
	static struct script script;

	for (unsigned lost = 0; lost < 2; lost++) {
		struct loop_faults faults = {.seed = harness_random(&rng)};
		const struct transfer_params params = few_blocks(2);
		const struct transfer_sink to = sink_of(&script);
		struct source_thread t = {.params = params, .script = &script};
		struct worker thread = {0};
		struct transfer_stats stats;
		struct fabric *fabric;
		struct pair pair;

		CHECK_EQ(loop_open(&faults, &fabric), 0);
		CHECK_EQ(pair_open(&pair, fabric, 2), 0);
		t.link = pair.client;
		fabric_chan_disconnect(link_rail(pair.client, 0)->channels[lost]->chan);
		while (!pair.broken) /* the accepting side has heard of it */
			sched_yield();
		make_script(&script, &rng, 0);
		CHECK_EQ(worker_start(&thread, "source", run_source, &t), 0);
		CHECK_EQ(transfer_receive(pair.daemon, &params, &to, &stats), VERDICT_SESSION);
		worker_stop(&thread);
		CHECK_EQ(stats.verdict.status, STATUS_DISCONNECTED);
		CHECK(t.result == VERDICT_TRANSFER || t.result == VERDICT_SESSION);
		CHECK_EQ(t.status, STATUS_DISCONNECTED);
		pair_close(&pair);
	}
}

/* What the sink of an early get learns of the answer to its request, which comes only when files
 * are already on their way. */
struct late_answer {
	unsigned asked;
	bool heard;
};

static int answered_late(void *ctx)
{
	struct late_answer *a = ctx;

	a->heard = ++a->asked > 3;
	return a->heard;
}

/*
 * The answer to the request of an early get comes together with the first frames: the sink has the
 * frame in hand when it is there.  It takes note of it all the same: while it waits for an answer
 * it would wait for the source for ever.
 */
static void an_answer_that_comes_with_the_first_frames_is_heard(void)
{
	uint64_t rng = harness_seed();
	static struct script script;
	struct late_answer answer = {0};
	struct loop_faults faults = {.seed = harness_random(&rng)};
	struct transfer_params params = few_blocks(1);
	const struct transfer_sink to = sink_of(&script);
	struct source_thread t = {.script = &script};
	struct worker thread = {0};
	struct transfer_stats stats;
	struct fabric *fabric;
	struct pair pair;

	CHECK_EQ(loop_open(&faults, &fabric), 0);
	CHECK_EQ(pair_open(&pair, fabric, 1), 0);
	params.early = true;
	t.params = params;
	t.link = pair.daemon;
	make_script(&script, &rng, 0);
	CHECK_EQ(worker_start(&thread, "source", run_source, &t), 0);
	params.answered = answered_late;
	params.progress_ctx = &answer;
	CHECK_EQ(transfer_receive(pair.client, &params, &to, &stats), 0);
	worker_stop(&thread);
	CHECK_EQ(t.result, 0);
	CHECK(!judge(&script));
	CHECK(answer.heard);
	pair_close(&pair);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"an answer that comes with the first frames is heard",
			an_answer_that_comes_with_the_first_frames_is_heard},
		{"a channel lost before the offer is a lost connection",
			a_channel_lost_before_the_offer_is_a_lost_connection},
		{"one bad file costs only itself", one_bad_file_costs_only_itself},
		{NULL, NULL},
	};

	log_setup("failures", getenv("RFTP_LOG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	return harness_run(cases, argc, argv);
}
