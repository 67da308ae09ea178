/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/trees: whole trees of small and large files over the loop fabric with seeded
 * delays, reordering, cuts and failures.
 *
 * Property: whatever happens, each file of the sink is the source's file or what was there before;
 * it is the source's where either side says that it arrived; a transfer that went well copied all;
 * no temporary file stays behind; both sides end.  RFTP_TRANSFERS sets the number of transfers
 * (default 200).
 */
#include "../harness.h"
#include "../quiet.h"
#include "pair.h"

#include "fabric/loop/loop.h"
#include "transfer/transfer.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 400u
#define DIRS 5u

static const char *const dirs[DIRS] = {"", "/a", "/a/b", "/a/b/c", "/z"};

struct side {
	struct link *link;
	struct transfer_params params;
	struct transfer_stats stats;
	bool arrived[FILES_MAX]; /* as `done` said */
	int result;
};

static struct {
	char path[64]; /* beneath the top of the tree */
	uint32_t size, old_size;
	uint64_t seed;
	bool link, had; /* a symbolic link; something was there before */
} files[FILES_MAX];
static unsigned count;

static char top[200], from_dir[240], to_dir[240];

static void content(uint8_t *data, uint32_t size, uint64_t seed)
{
	for (uint32_t i = 0; i < size; i += 8) {
		uint64_t r = harness_random(&seed);

		memcpy(data + i, &r, size - i < 8 ? size - i : 8);
	}
}

static const char *whole_path(char whole[400], const char *dir, const char *path)
{
	size_t length = strlen(dir);

	memcpy(whole, dir, length);
	strcpy(whole + length, path);
	return whole;
}

static void write_file(const char *dir, const char *path, uint32_t size, uint64_t seed)
{
	uint8_t *data = malloc(size + 1u);
	char whole[400];
	int fd;

	content(data, size, seed);
	whole_path(whole, dir, path);
	fd = open(whole, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	free(data);
}

static bool file_is(unsigned i, uint32_t size, uint64_t seed)
{
	uint8_t *want = malloc(size + 1u), *have = malloc(size + 1u);
	char whole[400];
	ssize_t n = -1;
	bool same;
	int fd;

	whole_path(whole, to_dir, files[i].path);
	fd = open(whole, O_RDONLY | O_NOFOLLOW);
	content(want, size, seed);
	if (fd >= 0) {
		n = read(fd, have, size + 1u);
		close(fd);
	}
	same = n == (ssize_t)size && !memcmp(want, have, size);
	free(want);
	free(have);
	return same;
}

static bool is_new(unsigned i)
{
	char whole[400], target[80] = "";

	if (!files[i].link)
		return file_is(i, files[i].size, files[i].seed);
	whole_path(whole, to_dir, files[i].path);
	return readlink(whole, target, sizeof target - 1) > 0 && !strcmp(target, files[i].path);
}

static bool is_old(unsigned i)
{
	char whole[400];

	if (files[i].had)
		return file_is(i, files[i].old_size, files[i].seed + 1);
	whole_path(whole, to_dir, files[i].path);
	return access(whole, F_OK) && errno == ENOENT;
}

static unsigned hidden;

static int look(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	hidden += path[ftw->base] == '.';
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	return ftw->level ? remove(path) : 0;
}

static void wipe(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

/* In a directory that is made when there is something for it. */
static void make_dirs_of(const char *dir, const char *path)
{
	char whole[400];

	for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
		snprintf(whole, sizeof whole, "%s%.*s", dir, (int)(slash - path), path);
		assert(!mkdir(whole, 0755) || errno == EEXIST);
	}
}

static void make_files(uint64_t *rng)
{
	static const uint32_t edges[] = {0, 1, 32767, 32768, 32769, 65536, 65537};

	count = 1 + harness_random(rng) % (harness_random(rng) % 4 ? 40 : FILES_MAX);
	for (unsigned i = 0; i < count; i++) {
		uint64_t pick = harness_random(rng);

		snprintf(files[i].path, sizeof files[i].path, "%s/f%u",
			dirs[harness_random(rng) % DIRS], i);
		files[i].size = pick % 10 < 8    ? (uint32_t)(harness_random(rng) % 3000)
				: pick % 10 == 8 ? edges[pick / 10 % 7]
						 : (uint32_t)(harness_random(rng) % 200000);
		files[i].seed = harness_random(rng) & ~1ull;
		files[i].link = harness_random(rng) % 16 == 0;
		files[i].had = harness_random(rng) % 3 == 0;
		files[i].old_size = (uint32_t)(harness_random(rng) % 2000);
		make_dirs_of(from_dir, files[i].path);
		if (files[i].link) {
			char whole[400];

			whole_path(whole, from_dir, files[i].path);
			assert(!symlink(files[i].path, whole));
		} else {
			write_file(from_dir, files[i].path, files[i].size, files[i].seed);
		}
		if (files[i].had) {
			make_dirs_of(to_dir, files[i].path);
			write_file(to_dir, files[i].path, files[i].old_size, files[i].seed + 1);
		}
	}
}

/* The number of a file is at the end of its name. */
static void done(void *ctx, const struct outcome *outcome)
{
	struct side *side = ctx;
	const char *name = strrchr(outcome->path, '/');

	if (!outcome->status && !outcome->directory && name && name[1] == 'f')
		side->arrived[atoi(name + 2)] = true;
}

static void run_source(void *arg)
{
	struct side *side = arg;
	struct outgoing_params params = {.top = AT_FDCWD,
		.recursive = true,
		.done = done,
		.ctx = side,
		.direct = END_DIRECT_OFF};
	struct outgoing *out;
	int r = outgoing_new(&params, &out);

	assert(!r);
	r = outgoing_add(out, from_dir, "");
	assert(!r);
	side->result = transfer_send(side->link, &side->params, outgoing_source(out), &side->stats);
	outgoing_free(out);
}

static void run_sink(struct side *side)
{
	struct incoming_params params = {.kind = INCOMING_INTO,
		.top = AT_FDCWD,
		.path = to_dir,
		.replace = true,
		.direct = END_DIRECT_OFF,
		.done = done,
		.ctx = side};
	struct incoming *in;
	int r = incoming_new(&params, &in);

	assert(!r);
	side->result = transfer_receive(side->link, &side->params, incoming_sink(in), &side->stats);
	incoming_free(in);
}

static const char *judge(const struct side *source, const struct side *sink, bool faultless)
{
	for (unsigned i = 0; i < count; i++) {
		bool new = is_new(i);

		if (!new && !is_old(i))
			return "a file is neither the new one nor what was there";
		if (!new && source->arrived[i])
			return "the source says that a file arrived, and it did not";
		if (!new && sink->arrived[i])
			return "the sink says that a file arrived, and it did not";
		if (!new && (!source->result || !sink->result))
			return "a transfer that went well left a file behind";
	}
	hidden = 0;
	nftw(to_dir, look, 16, FTW_PHYS);
	if (hidden)
		return "a temporary file stayed behind";
	return faultless && (source->result || sink->result) ? "it failed without a fault" : NULL;
}

/* One transfer; what was wrong, or NULL. */
static const char *one(uint64_t seed, const struct loop_faults *faults, bool *clean)
{
	uint64_t rng = seed;
	bool client_is_source = harness_random(&rng) & 1;
	struct transfer_params params = {
		.block = 65536,
		.depth = 2 + harness_random(&rng) % 14,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.workers = harness_random(&rng) % 4, /* 0: chosen, in place on few CPUs */
		.open_files = harness_random(&rng) % 3 ? 0 : 1 + harness_random(&rng) % 9,
		.engine = MESSAGE_ENGINE_CREDIT + harness_random(&rng) % 4,
		.protect = harness_random(&rng) % 3,
		.cancel_fd = -1,
	};
	bool faultless = !faults->cut_after && !faults->error_after;
	struct worker other = {0};
	static struct side source, sink;
	const char *wrong;
	struct fabric *fabric;
	struct pair pair;
	int r;

	wipe(from_dir);
	wipe(to_dir);
	make_files(&rng);
	r = loop_open(faults, &fabric);
	assert(!r);
	*clean = false;
	r = pair_open(&pair, fabric, 1 + harness_random(&rng) % 4);
	if (r) {
		pair_close(&pair);
		return faultless ? "no connection without a fault" : NULL;
	}
	memset(&source, 0, sizeof source);
	memset(&sink, 0, sizeof sink);
	source.params = sink.params = params;
	source.link = client_is_source ? pair.client : pair.daemon;
	sink.link = client_is_source ? pair.daemon : pair.client;
	r = worker_start(&other, "source", run_source, &source);
	assert(!r);
	run_sink(&sink);
	worker_stop(&other);
	pair_close(&pair);
	*clean = !source.result && !sink.result;
	wrong = judge(&source, &sink, faultless);
	if (wrong)
		printf("# engine %u: source %d (%s), sink %d (%s)\n", params.engine, source.result,
			source.stats.verdict.text, sink.result, sink.stats.verdict.text);
	return wrong;
}

static unsigned transfers(void)
{
	const char *s = getenv("RFTP_TRANSFERS");

	return s ? (unsigned)atoi(s) : 200;
}

static void run_many(unsigned many, bool faulty)
{
	const char *tmp = getenv("TMPDIR");
	uint64_t rng = harness_seed();
	const char *wrong = NULL;
	unsigned clean_ones = 0;

	snprintf(top, sizeof top, "%s/rftp-trees-XXXXXX",
		tmp                         ? tmp
		: !access("/dev/shm", W_OK) ? "/dev/shm"
					    : "/tmp");
	assert(mkdtemp(top));
	snprintf(from_dir, sizeof from_dir, "%s/from", top);
	snprintf(to_dir, sizeof to_dir, "%s/to", top);
	mkdir(from_dir, 0755);
	mkdir(to_dir, 0755);
	for (unsigned i = 0; i < many && !wrong; i++) {
		uint64_t seed = harness_random(&rng), choice = seed;
		struct loop_faults faults = {
			.seed = seed,
			.delay_us = harness_random(&choice) % 4 ? 0 : harness_random(&choice) % 30,
			.reorder_permille = harness_random(&choice) % 2 ? 300 : 0,
			.no_imm = harness_random(&choice) & 1,
		};
		bool clean;

		if (faulty && harness_random(&choice) & 1)
			faults.cut_after = 1 + harness_random(&choice) % 60;
		else if (faulty)
			faults.error_after = 1 + harness_random(&choice) % 60;
		wrong = one(seed, &faults, &clean);
		clean_ones += clean;
		if (wrong)
			printf("# transfer %u, seed %" PRIu64 ": %s\n", i, seed, wrong);
	}
	wipe(top);
	rmdir(top);
	printf("# %u transfers, %u of them without an error\n", many, clean_ones);
	CHECK(!wrong);
}

static void without_faults(void)
{
	run_many(transfers() / 4, false);
}

static void with_cuts_and_errors(void)
{
	run_many(transfers(), true);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"trees without faults", without_faults},
		{"trees with cuts and errors", with_cuts_and_errors},
		{NULL, NULL},
	};

	/* hundreds of provoked errors are no news */
	if (!quiet_log("trees"))
		return 2;
	return harness_run(cases, argc, argv);
}
