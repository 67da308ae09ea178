/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/transfers: whole transfers over the loop fabric with seeded delays, reordering,
 * cuts, failures, stalls and bits that change on their way.
 *
 * Property: whatever happens, each of the sink's files is the source's file or the old one; it is
 * the source's where either side says that it arrived; no temporary file stays behind; both sides
 * end. RFTP_TRANSFERS sets the number of transfers (default 2,000).
 */
#include "../harness.h"
#include "../quiet.h"
#include "pair.h"

#include "fabric/loop/loop.h"
#include "transfer/transfer.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4

struct side {
	bool source;
	struct link *link;
	struct transfer_params params;
	struct transfer_stats stats;
	const char *dir;
	unsigned files;
	unsigned arrived; /* bit per file that `done` called well */
	unsigned told;    /* outcomes */
	int result;
};

struct plan_of_test {
	uint64_t sizes[FILES_MAX];
	uint64_t seeds[FILES_MAX], old_seeds[FILES_MAX];
	unsigned files;
};

static void fill(uint8_t *data, uint64_t size, uint64_t seed)
{
	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t r = harness_random(&seed);

		memcpy(data + i, &r, size - i < 8 ? size - i : 8);
	}
}

static void write_file(const char *dir, unsigned i, uint64_t size, uint64_t seed)
{
	uint8_t *data = malloc(size + 1);
	char path[300];
	int fd;

	fill(data, size, seed);
	snprintf(path, sizeof path, "%s/f%u", dir, i);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) { /* a full disk, mostly */
		printf("Bail out! %s was not written\n", path);
		exit(1);
	}
	close(fd);
	free(data);
}

static bool file_is(const char *dir, unsigned i, uint64_t size, uint64_t seed)
{
	uint8_t *want = malloc(size + 1), *have = malloc(size + 1);
	char path[300];
	ssize_t n;
	int fd;
	bool same;

	fill(want, size, seed);
	snprintf(path, sizeof path, "%s/f%u", dir, i);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, have, size + 1);
	same = n == (ssize_t)size && !memcmp(want, have, size);
	if (fd >= 0)
		close(fd);
	free(want);
	free(have);
	return same;
}

static unsigned entries(const char *dir, bool hidden_only)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			n += !hidden_only || e->d_name[0] == '.';
	closedir(d);
	return n;
}

static void wipe(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

static void done(void *ctx, const struct outcome *outcome)
{
	struct side *side = ctx;
	const char *name = strrchr(outcome->path, '/');

	side->told++;
	if (!outcome->status)
		side->arrived |= 1u << (name[2] - '0');
}

static void run_source(struct side *side)
{
	struct outgoing_params params = {
		.top = AT_FDCWD, .done = done, .ctx = side, .direct = END_DIRECT_OFF};
	struct outgoing *out;
	char path[300], name[16];
	int r = outgoing_new(&params, &out);

	assert(!r);
	for (unsigned i = 0; i < side->files; i++) {
		snprintf(path, sizeof path, "%s/f%u", side->dir, i);
		snprintf(name, sizeof name, "f%u", i);
		r = outgoing_add(out, path, name);
		assert(!r);
	}
	side->result = transfer_send(side->link, &side->params, outgoing_source(out), &side->stats);
	outgoing_free(out);
}

static void run_sink(struct side *side)
{
	struct incoming_params params = {
		.kind = INCOMING_INTO,
		.top = AT_FDCWD,
		.path = side->dir,
		.replace = true,
		.direct = END_DIRECT_OFF,
		.done = done,
		.ctx = side,
	};
	struct incoming *in;
	int r = incoming_new(&params, &in);

	assert(!r);
	side->result = transfer_receive(side->link, &side->params, incoming_sink(in), &side->stats);
	incoming_free(in);
}

static void run_side(void *arg)
{
	struct side *side = arg;

	if (side->source)
		run_source(side);
	else
		run_sink(side);
}

static char top[200], from_dir[240], to_dir[240];

static void make_dirs(void)
{
	const char *shm = access("/dev/shm", W_OK) ? NULL : "/dev/shm";
	const char *tmp = getenv("TMPDIR");

	snprintf(top, sizeof top, "%s/rftp-transfers-XXXXXX", tmp ? tmp : shm ? shm : "/tmp");
	assert(mkdtemp(top));
	snprintf(from_dir, sizeof from_dir, "%s/from", top);
	snprintf(to_dir, sizeof to_dir, "%s/to", top);
	mkdir(from_dir, 0755);
	mkdir(to_dir, 0755);
}

static void remove_dirs(void)
{
	wipe(from_dir);
	wipe(to_dir);
	rmdir(from_dir);
	rmdir(to_dir);
	rmdir(top);
}

/* A bit that changes, once the channels are connected; after 0: none. */
struct flip {
	uint64_t after;
	uint32_t bit;
};

/* One transfer under `faults`; what was wrong, or NULL. */
static const char *one(
	uint64_t seed, const struct loop_faults *faults, struct flip flip, bool *clean)
{
	uint64_t rng = seed;
	struct plan_of_test plan = {.files = 1 + harness_random(&rng) % FILES_MAX};
	unsigned channels = 1 + harness_random(&rng) % 4;
	bool client_is_source = harness_random(&rng) & 1;
	struct transfer_params params = {
		.block = 65536,
		.depth = 2 + harness_random(&rng) % 14,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.workers = harness_random(&rng) % 4, /* 0: chosen, in place on few CPUs */
		.engine = MESSAGE_ENGINE_CREDIT + harness_random(&rng) % 4,
		.cancel_fd = -1,
		/* what stalls is to end soon, and what is only slow on a busy host is not to */
		.idle_timeout_ms = faults->stall_after || flip.after ? 200 : 0,
	};
	struct side source, sink;
	struct fabric *fabric;
	struct pair pair;
	struct worker other = {0};
	const char *wrong = NULL;
	bool unfit = faults->no_read && (params.engine == MESSAGE_ENGINE_STATUS ||
						params.engine == MESSAGE_ENGINE_PULL);
	int r;

	if (params.engine == MESSAGE_ENGINE_CREDIT &&
		harness_random(&rng) % 4 == 0) /* else gathered */
		params.notice = TRANSFER_NOTICE_BEHIND;
	params.protect = harness_random(&rng) % 3;

	wipe(from_dir);
	wipe(to_dir);
	for (unsigned i = 0; i < plan.files; i++) {
		static const uint64_t edges[] = {0, 1, 65535, 65536, 65537, 131072, 4095, 4097};
		uint64_t pick = harness_random(&rng);

		plan.sizes[i] =
			pick % 3 ? harness_random(&rng) % (12 * 65536) : edges[pick / 3 % 8];
		plan.seeds[i] = harness_random(&rng);
		plan.old_seeds[i] = harness_random(&rng);
		write_file(from_dir, i, plan.sizes[i], plan.seeds[i]);
		write_file(to_dir, i, 1000, plan.old_seeds[i]);
	}
	r = loop_open(faults, &fabric);
	assert(!r);
	r = pair_open(&pair, fabric, channels);
	if (r) {
		*clean = false;
		pair_close(&pair);
		return faults->cut_after || faults->error_after ? NULL
								: "no connection without a fault";
	}
	loop_flip(fabric, flip.after, flip.bit);
	source = (struct side){.source = true,
		.link = client_is_source ? pair.client : pair.daemon,
		.params = params,
		.dir = from_dir,
		.files = plan.files};
	sink = (struct side){.link = client_is_source ? pair.daemon : pair.client,
		.params = params,
		.dir = to_dir};
	r = worker_start(&other, "source", run_side, &source);
	assert(!r);
	run_side(&sink);
	worker_stop(&other);
	pair_close(&pair);

	*clean = !source.result && !sink.result;
	/* a transfer that is cut short never starts some */
	if (source.told > plan.files || (*clean && source.told != plan.files))
		wrong = "the source did not tell each outcome once";
	for (unsigned i = 0; i < plan.files && !wrong; i++) {
		bool is_new = file_is(to_dir, i, plan.sizes[i], plan.seeds[i]);

		if (!is_new && !file_is(to_dir, i, 1000, plan.old_seeds[i]))
			wrong = "a file is neither the new one nor the old one";
		else if (!is_new && (!source.result || (source.arrived & 1u << i)))
			wrong = "the source says that a file arrived, and it did not";
		else if (!is_new && (!sink.result || (sink.arrived & 1u << i)))
			wrong = "the sink says that a file arrived, and it did not";
	}
	if (!wrong && entries(to_dir, true))
		wrong = "a temporary file stayed behind";
	if (!wrong && entries(to_dir, false) != plan.files)
		wrong = "another number of files";
	if (!wrong && !faults->cut_after && !faults->error_after && !faults->stall_after &&
		!flip.after && !unfit && !*clean)
		wrong = "it failed without a fault";
	if (!wrong && unfit &&
		(*clean || (!faults->cut_after && !faults->error_after && !flip.after &&
				   source.stats.verdict.status != STATUS_UNSUPPORTED)))
		wrong = "an engine that READs without READ";
	if (wrong)
		printf("# engine %u: source %d (%s), sink %d (%s)\n", params.engine, source.result,
			source.stats.verdict.text, sink.result, sink.stats.verdict.text);
	return wrong;
}

/* ---- progress ---- */

struct watched {
	const struct side *sink;
	unsigned looks, partly; /* partly: that said something, and not all */
	bool ahead;
	uint64_t last;
};

/* In the source's thread: never more than the sink has verified by now. */
static void look(void *ctx, const struct transfer_stats *stats)
{
	struct watched *w = ctx;

	w->looks++;
	w->ahead |= stats->verified_bytes > w->sink->stats.bytes;
	w->ahead |= stats->verified_bytes < w->last;
	w->partly += stats->verified_bytes && stats->verified_bytes < stats->total_bytes;
	w->last = stats->verified_bytes;
}

static void progress_is_what_the_sink_has(void)
{
	const uint64_t size = 6u << 20;
	const struct loop_faults none = {0};

	make_dirs();
	for (uint8_t engine = MESSAGE_ENGINE_CREDIT; engine <= MESSAGE_ENGINE_PULL; engine++) {
		struct transfer_params params = {
			.block = 65536,
			.depth = 8,
			.max_block = 1 << 20,
			.max_depth = RAIL_DEPTH,
			.engine = engine,
			.cancel_fd = -1,
		};
		struct side source, sink;
		struct watched watched = {.sink = &sink};
		struct worker other = {0};
		struct fabric *fabric;
		struct bucket bucket;
		struct pair pair;

		wipe(from_dir);
		wipe(to_dir);
		write_file(from_dir, 0, size, 1);
		CHECK_EQ(loop_open(&none, &fabric), 0);
		CHECK_EQ(pair_open(&pair, fabric, 2), 0);
		CHECK_EQ(bucket_init(&bucket, size, 8 * 65536), 0); /* it takes a second */
		sink = (struct side){.link = pair.daemon, .params = params, .dir = to_dir};
		sink.params.bucket = &bucket;
		source = (struct side){.source = true,
			.link = pair.client,
			.params = params,
			.dir = from_dir,
			.files = 1};
		source.params.progress = look;
		source.params.progress_ctx = &watched;
		CHECK_EQ(worker_start(&other, "source", run_side, &source), 0);
		run_side(&sink);
		worker_stop(&other);
		pair_close(&pair);
		bucket_fini(&bucket);
		CHECK_EQ(source.result, 0);
		CHECK(!watched.ahead);
		CHECK(watched.looks > 4);
		CHECK(watched.partly > 2);
		CHECK_EQ(watched.last, size);
		CHECK(!strcmp(source.stats.current, "f0"));
		CHECK(!strcmp(sink.stats.current, "")); /* nobody asked there */
	}
	remove_dirs();
}

static unsigned transfers(void)
{
	const char *s = getenv("RFTP_TRANSFERS");

	return s ? (unsigned)atoi(s) : 2000;
}

enum faulty { FAULTLESS, BREAKS, STALLS, FLIPS };

/* Every other one is in the first bytes, where headers and notices are. */
static struct flip choose_flip(uint64_t *rng)
{
	uint32_t bit = (uint32_t)harness_random(rng);

	return (struct flip){1 + harness_random(rng) % 60, bit & 1 ? bit >> 1 : (bit >> 1) % 512};
}

static void run_many(unsigned count, enum faulty faulty)
{
	uint64_t rng = harness_seed();
	unsigned clean_ones = 0;

	make_dirs();
	for (unsigned i = 0; i < count; i++) {
		uint64_t seed = harness_random(&rng), choice = seed;
		struct loop_faults faults = {
			.seed = seed,
			.delay_us = harness_random(&choice) % 4 ? 0 : harness_random(&choice) % 30,
			.reorder_permille = harness_random(&choice) % 2 ? 300 : 0,
			.no_imm = harness_random(&choice) & 1,
			.no_watch = seed & 1,
			.no_read = harness_random(&choice) % 16 == 0,
		};
		struct flip flip = {0};
		const char *wrong;
		bool clean;

		if (faulty == FLIPS)
			flip = choose_flip(&choice);
		else if (faulty == STALLS)
			faults.stall_after = 1 + harness_random(&choice) % 30;
		else if (faulty == BREAKS && harness_random(&choice) & 1)
			faults.cut_after = 1 + harness_random(&choice) % 60;
		else if (faulty == BREAKS)
			faults.error_after = 1 + harness_random(&choice) % 60;
		wrong = one(seed, &faults, flip, &clean);
		clean_ones += clean;
		if (wrong) {
			printf("# transfer %u, seed %" PRIu64 ": %s (cut %" PRIu64
			       ", error %" PRIu64 ", flip %" PRIu64 ", bit %" PRIu32
			       ", delay %u us, reorder %u, no_imm %d)\n",
				i, seed, wrong, faults.cut_after, faults.error_after, flip.after,
				flip.bit, faults.delay_us, faults.reorder_permille, faults.no_imm);
			remove_dirs();
			CHECK(!"the property does not hold");
		}
	}
	remove_dirs();
	printf("# %u transfers, %u of them without an error\n", count, clean_ones);
}

static void without_faults(void)
{
	run_many(transfers() / 4, FAULTLESS);
}

static void with_cuts_and_errors(void)
{
	run_many(transfers(), BREAKS);
}

/* One of the data channels moves nothing any more, and all others live. */
static void with_a_channel_that_stalls(void)
{
	run_many(transfers() / 160, STALLS);
}

/* In frames, notices, headers, payloads, status bytes and credits alike. */
static void with_a_bit_that_changes(void)
{
	run_many(transfers() / 10, FLIPS);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"transfers without faults", without_faults},
		{"transfers with cuts and errors", with_cuts_and_errors},
		{"transfers with a channel that stalls", with_a_channel_that_stalls},
		{"transfers with a bit that changes", with_a_bit_that_changes},
		{"progress is what the sink has verified", progress_is_what_the_sink_has},
		{NULL, NULL},
	};

	/* thousands of provoked errors are no news */
	if (!quiet_log("transfers"))
		return 2;
	return harness_run(cases, argc, argv);
}
