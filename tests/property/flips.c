/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/flips: transfers in which one bit of one frame changes between the side that has
 * encoded it and the other one.  control_put is wrapped for that (see Makefile).
 *
 * Property: both sides end; where the source says that a file arrived, it is there under its name,
 * with its bytes, mode and time; and where the frame was a FILE, the source's transfer fails.
 * RFTP_TRANSFERS sets the number of transfers (default 600).
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
#include <ftw.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRANSFERS 600
#define FRAME_MAX 1024u /* longer than any frame here */
#define ANY_FRAMES 30u  /* of a transfer, both sides'; it may have fewer */

/* What is sent: names beneath `from`, in any order; a directory ends in its own FILE, too. */
static const struct {
	const char *name;
	mode_t mode;
	size_t size; /* of what is no directory */
	bool directory;
} objects[] = {
	{"f", 0640, 70000, false},
	{"empty", 0600, 0, false},
	{"d", 0751, 0, true},
	{"d/in", 0444, 20, false},
};
#define OBJECTS (sizeof objects / sizeof *objects)
#define FRAMES (OBJECTS + 1) /* one for each, and one for the directory's end */

/* The flip of this transfer. */
static bool flip_any; /* else FILE alone counts, which the source's thread alone sends */
static unsigned flip_frame, flip_bit;
static _Atomic unsigned frames_sent;
static _Atomic uint16_t flipped; /* the type of the frame; 0: none yet */

int __real_control_put(struct control *, uint16_t, uint16_t, const void *, size_t);
int __wrap_control_put(struct control *, uint16_t, uint16_t, const void *, size_t);

int __wrap_control_put(
	struct control *c, uint16_t type, uint16_t response, const void *data, size_t len)
{
	uint8_t copy[FRAME_MAX];

	if ((!flip_any && type != TRANSFER_FILE) || !len || frames_sent++ != flip_frame)
		return __real_control_put(c, type, response, data, len);
	assert(len <= sizeof copy);
	memcpy(copy, data, len);
	flip_bit %= 8 * (unsigned)len;
	copy[flip_bit / 8] ^= 1u << flip_bit % 8;
	flipped = type;
	return __real_control_put(c, type, response, copy, len);
}

struct side {
	struct link *link;
	struct transfer_params params;
	struct transfer_stats stats;
	bool arrived[OBJECTS]; /* as `done` said */
	int result;
};

static char top[200], from_dir[240], to_dir[240];

static void object_path(char path[512], const char *dir, unsigned i)
{
	snprintf(path, 512, "%s/%s", dir, objects[i].name);
}

static void fill(uint8_t *data, unsigned i)
{
	memset(data, 'a' + (int)i, objects[i].size);
}

static void set_times(const char *path, unsigned i)
{
	const struct timespec times[2] = {{1000000000 + i, 123456789}, {1000000000 + i, 123456789}};

	assert(!utimensat(AT_FDCWD, path, times, 0));
}

static void make_source(void)
{
	char path[512];

	for (unsigned i = 0; i < OBJECTS; i++) {
		uint8_t data[1 << 17];
		int fd;

		object_path(path, from_dir, i);
		if (objects[i].directory) {
			assert(!mkdir(path, 0700));
			continue;
		}
		fill(data, i);
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
		assert(fd >= 0);
		assert(write(fd, data, objects[i].size) == (ssize_t)objects[i].size);
		close(fd);
	}
	for (unsigned i = OBJECTS; i--;) { /* what is inside first */
		object_path(path, from_dir, i);
		assert(!chmod(path, objects[i].mode));
		set_times(path, i);
	}
}

/* `ended`: a directory, too: it is made first, and gets its mode and time at its end. */
static bool object_is_right(unsigned i, bool ended)
{
	uint8_t want[1 << 17], have[1 << 17];
	struct stat a, b;
	char path[512];
	ssize_t n;
	int fd;

	object_path(path, from_dir, i);
	assert(!lstat(path, &a));
	object_path(path, to_dir, i);
	if (objects[i].directory && !ended)
		return !lstat(path, &b) && S_ISDIR(b.st_mode);
	if (lstat(path, &b) || a.st_mode != b.st_mode || a.st_mtim.tv_sec != b.st_mtim.tv_sec ||
		a.st_mtim.tv_nsec != b.st_mtim.tv_nsec)
		return false;
	if (objects[i].directory)
		return true;
	fill(want, i);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, have, sizeof have);
	if (fd >= 0)
		close(fd);
	return n == (ssize_t)objects[i].size && !memcmp(want, have, objects[i].size);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	return ftw->level ? remove(path) : 0;
}

static int make_writable(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)ftw;
	(void)flag;
	return S_ISDIR(st->st_mode) ? chmod(path, 0700) : 0;
}

static void wipe(const char *dir)
{
	nftw(dir, make_writable, 16, FTW_PHYS);
	nftw(dir, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

static void done(void *ctx, const struct outcome *outcome)
{
	struct side *side = ctx;

	for (unsigned i = 0; i < OBJECTS && !outcome->status; i++) {
		char own[512];

		object_path(own, from_dir, i);
		if (!strcmp(outcome->path, own))
			side->arrived[i] = true;
	}
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
	for (unsigned i = 0; i < OBJECTS; i++) {
		char path[512];

		if (strchr(objects[i].name, '/'))
			continue;
		object_path(path, from_dir, i);
		r = outgoing_add(out, path, objects[i].name);
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
		.path = to_dir,
		.replace = true,
		.set_id = true,
		.direct = END_DIRECT_OFF,
	};
	struct incoming *in;
	int r = incoming_new(&params, &in);

	assert(!r);
	side->result = transfer_receive(side->link, &side->params, incoming_sink(in), &side->stats);
	incoming_free(in);
}

/* One transfer: what was wrong, or NULL. */
static const char *one(uint64_t seed, bool flip, bool any)
{
	const struct loop_faults faults = {.seed = seed, .no_imm = seed & 1};
	const struct transfer_params params = {
		.block = 65536,
		.depth = 4,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.engine = MESSAGE_ENGINE_CREDIT + (seed >> 8) % 4,
		.protect = (seed >> 16) % 3,
		.cancel_fd = -1,
		/* a count that is wrong may be waited for */
		.idle_timeout_ms = any ? 200 : 0,
	};
	bool client_is_source = seed >> 1 & 1;
	struct worker other = {0};
	struct side source, sink;
	struct fabric *fabric;
	struct pair pair;

	wipe(to_dir);
	flip_any = any;
	flip_frame = flip ? (unsigned)(seed >> 16) % (any ? ANY_FRAMES : FRAMES) : UINT_MAX;
	flip_bit = (unsigned)(seed >> 32);
	assert(!loop_open(&faults, &fabric));
	assert(!pair_open(&pair, fabric, 1));
	frames_sent = 0;
	flipped = 0;
	source = (struct side){
		.link = client_is_source ? pair.client : pair.daemon, .params = params};
	sink = (struct side){
		.link = client_is_source ? pair.daemon : pair.client, .params = params};
	assert(!worker_start(&other, "source", run_source, &source));
	run_sink(&sink);
	worker_stop(&other);
	pair_close(&pair);

	for (unsigned i = 0; i < OBJECTS; i++) {
		if (source.arrived[i] && !object_is_right(i, !source.result)) {
			printf("# %s\n", objects[i].name);
			return "the source says that it arrived, and it is not as it was";
		}
		if (!flip && !source.arrived[i])
			return "it did not arrive, without a flip";
	}
	if (!flip)
		return source.result || sink.result ? "it failed without a flip" : NULL;
	if (flipped == TRANSFER_FILE && !source.result)
		return "the source noticed nothing";
	return NULL;
}

static void flips(bool any)
{
	const char *scale = getenv("RFTP_TRANSFERS"), *tmp = getenv("TMPDIR"), *wrong = NULL;
	unsigned count = scale ? (unsigned)atoi(scale) : TRANSFERS, hit = 0;
	uint64_t rng = harness_seed();

	snprintf(top, sizeof top, "%s/rftp-flips-XXXXXX",
		tmp                         ? tmp
		: !access("/dev/shm", W_OK) ? "/dev/shm"
					    : "/tmp");
	CHECK(mkdtemp(top));
	snprintf(from_dir, sizeof from_dir, "%s/from", top);
	snprintf(to_dir, sizeof to_dir, "%s/to", top);
	mkdir(from_dir, 0755);
	mkdir(to_dir, 0755);
	make_source();
	for (unsigned i = 0; i < count && !wrong; i++) {
		uint64_t seed = harness_random(&rng);

		wrong = one(seed, i > 0, any);
		hit += flipped > 0;
		if (wrong)
			printf("# transfer %u, seed %" PRIu64 ", frame %u (%s), bit %u: %s\n", i,
				seed, flip_frame + 1, message_name(flipped), flip_bit, wrong);
	}
	printf("# %u transfers, a bit flipped in %u\n", count, hit);
	wipe(from_dir);
	wipe(to_dir);
	rmdir(from_dir);
	rmdir(to_dir);
	rmdir(top);
	CHECK(!wrong);
}

static void of_a_file(void)
{
	flips(false);
}

static void of_any_frame(void)
{
	flips(true);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"a flipped bit of a FILE is noticed", of_a_file},
		{"a flipped bit of any frame makes nothing wrong", of_any_frame},
		{NULL, NULL},
	};

	/* hundreds of provoked errors are no news */
	if (!quiet_log("flips"))
		return 2;
	return harness_run(cases, argc, argv);
}
