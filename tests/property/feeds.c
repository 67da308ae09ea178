/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/feeds: whole feeds over the loop fabric with seeded delays, reordering, cuts and
 * failures, from pipes that are written to at random.
 *
 * Property: whatever happens, what the segments of a device hold, one behind the other, is what the
 * device wrote, from its beginning; it is all that was sent where the source says that it arrived,
 * and all that was written where nothing went wrong and nobody stopped it; whole packets in each
 * segment of a size; no temporary file stays; both sides end.  With drop_oldest: whole packets, in
 * order, none twice. RFTP_FEEDS sets the number of feeds (default 200).
 */
#include "../harness.h"
#include "../quiet.h"
#include "pair.h"

#include "block/block.h"
#include "fabric/loop/loop.h"
#include "tests/scratch.h"
#include "transfer/transfer.h"
#include "tree/segments.h"

#include <signal.h>
#include <sys/eventfd.h>

#define DEVICES_MAX 8
#define WRITTEN_MAX (24u * BLOCK_BYTES_MIN)

struct device {
	char name[24];
	uint64_t seed; /* of its bytes */
	uint64_t size; /* that it writes, before it ends */
	uint64_t written;
	int fds[2]; /* of its pipe */
	uint64_t sent, dropped, packets;
	bool told, arrived;
};

struct feed {
	struct device devices[DEVICES_MAX];
	unsigned count, next;
	struct link *link;
	struct transfer_params params;
	struct transfer_feed feed;
	struct transfer_stats stats;
	int result;
	/* the writer */
	uint64_t rng, stop_after;
	_Atomic bool over;
	bool stopped;
};

/* Byte `at` of a device: each packet of a feed that drops shows its own number all over. */
static uint8_t byte_at(const struct device *d, uint64_t at)
{
	uint64_t state = d->seed + at / 512;

	return (uint8_t)(harness_random(&state) >> (at % 8 * 8));
}

static int next(void *ctx, struct transfer_item *item)
{
	struct feed *f = ctx;
	struct device *d;

	if (f->next == f->count)
		return 0;
	d = &f->devices[f->next++];
	*item = (struct transfer_item){
		.file = {.kind = TRANSFER_FILE_STREAM,
			.mode = 0644,
			.size = MESSAGE_UNKNOWN,
			.name = {(const uint8_t *)d->name, strlen(d->name)}},
		.cookie = d,
	};
	item->error = end_stream_open(d->fds[0], false, false, &item->end);
	d->fds[0] = -1;
	return 1;
}

static void done(void *ctx, const struct transfer_item *item, uint16_t status, const char *text)
{
	struct device *d = item->cookie;

	(void)ctx;
	(void)text;
	d->told = true;
	d->arrived = !status;
	d->sent = item->sent_bytes;
	d->packets = item->sent_blocks;
	d->dropped = item->dropped_blocks;
}

static void run_source(void *arg)
{
	struct feed *f = arg;
	struct transfer_source from = {.next = next,
		.done = done,
		.ctx = f,
		.feed = &f->feed,
		.total_files = f->count,
		.total_bytes = MESSAGE_UNKNOWN,
		.largest_bytes = MESSAGE_UNKNOWN};

	f->result = transfer_send(f->link, &f->params, &from, &f->stats);
	f->over = true;
}

static void write_some(struct feed *f, struct device *d)
{
	static const uint32_t steps[] = {1, 100, 4096, 10000, 65536};
	uint8_t data[65536];
	uint64_t n = 1 + harness_random(&f->rng) % steps[harness_random(&f->rng) % 5];
	ssize_t w;

	if (f->feed.drop_oldest) /* whole packets */
		n = sizeof data;
	if (n > d->size - d->written)
		n = d->size - d->written;
	for (uint64_t i = 0; i < n; i++)
		data[i] = byte_at(d, d->written + i);
	w = n ? write(d->fds[1], data, n) : 0;
	if (w > 0)
		d->written += (uint64_t)w;
	if (d->written == d->size || (w < 0 && errno != EAGAIN)) {
		close(d->fds[1]);
		d->fds[1] = -1;
	}
}

static void run_writer(void *arg)
{
	struct feed *f = arg;
	uint64_t one = 1;
	unsigned open = f->count;

	for (uint64_t step = 0; open && !f->over; step++) {
		struct device *d = &f->devices[harness_random(&f->rng) % f->count];

		if (step == f->stop_after) {
			f->stopped = true;
			if (write(f->feed.stop_fd, &one, sizeof one) < 0)
				abort();
		}
		if (d->fds[1] >= 0) {
			write_some(f, d);
			open -= d->fds[1] < 0;
		}
		if (harness_random(&f->rng) % 64 == 0)
			sched_yield();
	}
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* What a device's segments hold; UINT64_MAX: something is wrong with them. */
static uint64_t read_segments(const char *dir, const struct device *d, uint8_t *out, uint64_t most,
	uint64_t segment_bytes)
{
	struct dirent **entries;
	char path[600];
	uint64_t total = 0;
	int count, number = 0;

	snprintf(path, sizeof path, "%s/%s", dir, d->name);
	count = scandir(path, &entries, NULL, by_name);
	for (int i = 0; i < count; i++) {
		char expected[32];
		struct stat st;
		int fd;

		if (!strcmp(entries[i]->d_name, ".") || !strcmp(entries[i]->d_name, "..")) {
			free(entries[i]);
			continue;
		}
		snprintf(expected, sizeof expected, "%08d.seg", ++number);
		snprintf(path, sizeof path, "%s/%s/%s", dir, d->name, entries[i]->d_name);
		fd = open(path, O_RDONLY);
		if (strcmp(entries[i]->d_name, expected) || fd < 0 || fstat(fd, &st) ||
			!st.st_size || (segment_bytes && (uint64_t)st.st_size > segment_bytes) ||
			total + (uint64_t)st.st_size > most ||
			read(fd, out + total, (size_t)st.st_size) != st.st_size)
			total = UINT64_MAX / 2;
		else
			total += (uint64_t)st.st_size;
		close(fd);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return total > most ? UINT64_MAX : total;
}

/* Whether these are packets of the device, in order; all of them when none was dropped. */
static bool right(const struct device *d, const uint8_t *data, uint64_t size, bool drops)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < size; i++, at++) {
		if (drops && i % BLOCK_BYTES_MIN == 0)
			while (at < d->size &&
				memcmp((uint8_t[]){byte_at(d, at), byte_at(d, at + 1),
					       byte_at(d, at + 2), byte_at(d, at + 3),
					       byte_at(d, at + 4)},
					data + i, size - i < 5 ? size - i : 5))
				at += BLOCK_BYTES_MIN;
		if (at >= d->size || data[i] != byte_at(d, at))
			return false;
	}
	return true;
}

static const char *judge(
	const struct feed *f, int sink_result, const char *dir, uint64_t segment_bytes)
{
	static uint8_t data[WRITTEN_MAX];
	bool clean = !f->result && !sink_result;

	for (unsigned i = 0; i < f->count; i++) {
		const struct device *d = &f->devices[i];
		uint64_t size = read_segments(dir, d, data, sizeof data, segment_bytes);

		if (size == UINT64_MAX)
			return "the segments are not what they should be";
		if (!right(d, data, size, f->feed.drop_oldest))
			return "other bytes than the device wrote";
		if (d->arrived && size != d->sent)
			return "the source says that all arrived, and it did not";
		if (clean && !d->told)
			return "a device's outcome was not told";
		if (clean && !d->arrived)
			return "a device failed in a feed that did not";
		if (clean && !f->stopped && !f->feed.drop_oldest && (size != d->size || d->dropped))
			return "bytes are missing";
		if (clean && !f->stopped && f->feed.drop_oldest &&
			d->packets + d->dropped !=
				(d->size + BLOCK_BYTES_MIN - 1) / BLOCK_BYTES_MIN)
			return "packets were neither sent nor dropped";
	}
	return NULL;
}

static void close_pipes(struct feed *f)
{
	for (unsigned i = 0; i < f->count; i++)
		for (int k = 0; k < 2; k++)
			if (f->devices[i].fds[k] >= 0)
				close(f->devices[i].fds[k]);
	close(f->feed.stop_fd);
}

static void make_feed(struct feed *f, uint64_t *rng)
{
	*f = (struct feed){
		.count = 1 + harness_random(rng) % DEVICES_MAX, .rng = harness_random(rng)};
	f->params = (struct transfer_params){
		.block = BLOCK_BYTES_MIN,
		.depth = 2 + harness_random(rng) % 14,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.workers = 1 + harness_random(rng) % 3,
		.engine = (uint8_t)(harness_random(rng) % 4),
		.protect = (uint8_t)(harness_random(rng) % 3),
		.cancel_fd = -1,
	};
	f->feed = (struct transfer_feed){
		.streams = f->count,
		.flush_ms = 1 + harness_random(rng) % 5,
		.drop_oldest = harness_random(rng) % 4 == 0,
		.stop_fd = eventfd(0, EFD_CLOEXEC),
	};
	if (f->feed.drop_oldest)
		f->feed.flush_ms = 3600 * 1000; /* packets as they were written */
	f->stop_after = harness_random(rng) % 4 ? UINT64_MAX : harness_random(rng) % 100;
	for (unsigned i = 0; i < f->count; i++) {
		struct device *d = &f->devices[i];
		uint64_t most = harness_random(rng) % 3 ? WRITTEN_MAX / 4 : WRITTEN_MAX;

		snprintf(d->name, sizeof d->name, "device-%u", i);
		d->seed = harness_random(rng);
		d->size = harness_random(rng) % most;
		if (pipe2(d->fds, O_CLOEXEC | O_NONBLOCK))
			abort();
	}
}

/* One feed under `faults`; what was wrong, or NULL. */
static const char *one(
	uint64_t seed, const struct loop_faults *faults, const char *dir, bool *clean)
{
	uint64_t rng = seed;
	unsigned channels = harness_random(&rng) % 3 ? 1 : 3;
	struct segments_params where = {.top = AT_FDCWD, .path = dir};
	struct worker source = {0}, writer = {0};
	struct transfer_params params;
	struct transfer_stats stats;
	struct segments *segments;
	struct fabric *fabric;
	struct pair pair;
	struct feed f;
	const char *wrong;
	int r;

	make_feed(&f, &rng);
	if (harness_random(&rng) & 1)
		where.segment_bytes = BLOCK_BYTES_MIN * (1 + harness_random(&rng) % 4);
	if (harness_random(&rng) & 1)
		where.segment_ns = 1000000 * (1 + harness_random(&rng) % 10);
	r = loop_open(faults, &fabric);
	assert(!r);
	r = pair_open(&pair, fabric, channels);
	if (r) {
		*clean = false;
		pair_close(&pair);
		close_pipes(&f);
		return faults->cut_after || faults->error_after ? NULL
								: "no connection without a fault";
	}
	f.link = pair.client;
	params = f.params;
	r = segments_new(&where, &segments);
	assert(!r);
	r = worker_start(&source, "source", run_source, &f);
	assert(!r);
	r = worker_start(&writer, "writer", run_writer, &f);
	assert(!r);
	r = transfer_receive(pair.daemon, &params, segments_sink(segments), &stats);
	segments_free(segments);
	worker_stop(&source);
	worker_stop(&writer);
	pair_close(&pair);
	close_pipes(&f);
	*clean = !f.result && !r;
	wrong = judge(&f, r, dir, where.segment_bytes);
	if (!wrong && !faults->cut_after && !faults->error_after && !*clean)
		wrong = "it failed without a fault";
	if (wrong)
		printf("# source %d (%s), sink %d (%s); %u devices, engine %u, depth %u%s%s\n",
			f.result, f.stats.verdict.text, r, stats.verdict.text, f.count,
			f.params.engine, f.params.depth, f.feed.drop_oldest ? ", drops" : "",
			f.stopped ? ", stopped" : "");
	return wrong;
}

static unsigned feeds(void)
{
	const char *s = getenv("RFTP_FEEDS");

	return s ? (unsigned)atoi(s) : 200;
}

static void run_many(unsigned count, bool cuts)
{
	uint64_t rng = harness_seed();
	unsigned clean_ones = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t seed = harness_random(&rng), choice = seed;
		struct loop_faults faults = {
			.seed = seed,
			.delay_us = harness_random(&choice) % 4 ? 0 : harness_random(&choice) % 30,
			.reorder_permille = harness_random(&choice) % 2 ? 300 : 0,
			.no_imm = harness_random(&choice) & 1,
			.no_watch = seed & 1,
		};
		const char *wrong;
		bool clean;

		if (cuts && harness_random(&choice) & 1)
			faults.cut_after = 1 + harness_random(&choice) % 100;
		else if (cuts)
			faults.error_after = 1 + harness_random(&choice) % 100;
		wrong = one(seed, &faults, scratch_dir(), &clean);
		scratch_remove_all();
		clean_ones += clean;
		if (wrong) {
			printf("# feed %u, seed %" PRIu64 ": %s (cut %" PRIu64 ", error %" PRIu64
			       ", delay %u us, reorder %u, no_imm %d)\n",
				i, seed, wrong, faults.cut_after, faults.error_after,
				faults.delay_us, faults.reorder_permille, faults.no_imm);
			CHECK(!"the property does not hold");
		}
	}
	printf("# %u feeds, %u of them without an error\n", count, clean_ones);
}

static void without_faults(void)
{
	run_many(feeds() / 2, false);
}

static void with_cuts_and_errors(void)
{
	run_many(feeds(), true);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"feeds without faults", without_faults},
		{"feeds with cuts and errors", with_cuts_and_errors},
		{NULL, NULL},
	};

	signal(SIGPIPE, SIG_IGN);
	if (!access("/dev/shm", W_OK)) /* thousands of fsyncs */
		setenv("TMPDIR", "/dev/shm", 0);
	/* thousands of provoked errors are no news */
	if (!quiet_log("feeds"))
		return 2;
	return harness_run(cases, argc, argv);
}
