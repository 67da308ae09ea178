/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/segments.c: devices' directories, and when which segment has its name.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/segments.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#define NEVER (3600 * 1000000000ull)

static char log_text[4096];

static void log_done(void *ctx, const struct outcome *o)
{
	size_t length = strlen(log_text);

	(void)ctx;
	snprintf(log_text + length, sizeof log_text - length, "%s %" PRIu64 " %u\n",
		strrchr(o->path, '/') + 1, o->bytes, o->status);
}

static struct segments *all;
static const struct transfer_sink *sink;
static struct end_queue *queue;
static struct block *block;
static uint32_t numbers;
static char top[256];

/* One device on its way. */
struct device {
	struct transfer_file file;
	struct end *end;
	void *cookie;
	uint32_t sequence;
	char text[512];
};

static int setup(const char *path, uint64_t bytes, uint64_t ns)
{
	struct segments_params params = {.top = AT_FDCWD,
		.path = path,
		.segment_bytes = bytes,
		.segment_ns = ns,
		.done = log_done};
	int err;

	snprintf(top, sizeof top, "%s", path);
	log_text[0] = '\0';
	all = NULL;
	err = segments_new(&params, &all);
	if (err)
		return err;
	sink = segments_sink(all);
	block = scratch_block(65536);
	return end_queue_new(1, &queue);
}

static void teardown(void)
{
	segments_free(all);
	end_queue_free(queue);
	scratch_block_free(block);
}

static int begin(struct device *d, const char *name)
{
	*d = (struct device){.file = {.file = ++numbers,
				     .kind = TRANSFER_FILE_STREAM,
				     .mode = 0644,
				     .size = MESSAGE_UNKNOWN,
				     .name = {(const uint8_t *)name, strlen(name)}}};
	return sink->open(sink->ctx, &d->file, &d->end, &d->cookie, d->text);
}

static int put(struct device *d, const char *text)
{
	struct block *done;

	block->sequence = d->sequence++;
	block->length = (uint32_t)strlen(text);
	memcpy(block->payload, text, block->length);
	end_submit(queue, d->end, block);
	end_reap(queue, &done, 1, true);
	return block->error;
}

static int finish(struct device *d, bool well)
{
	int err = 0;

	end_free(d->end);
	if (well)
		err = sink->commit(sink->ctx, d->cookie, &d->file, 0, d->text);
	else
		sink->discard(sink->ctx, d->cookie);
	sink->done(sink->ctx, &d->file, well ? status_from_errno(err) : STATUS_CHECKSUM, "");
	return err;
}

static bool is(const char *name, const char *text)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", top, name);
	return scratch_is(path, text);
}

static int entries(const char *name)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", top, name);
	return scratch_entries(path);
}

/* The closer's thread does it: soon. */
static bool becomes(const char *name, const char *text)
{
	for (int i = 0; i < 10000 && !is(name, text); i++)
		poll(NULL, 0, 1);
	return is(name, text);
}

static void whole_packets_up_to_the_size(void)
{
	struct device a, b;

	CHECK_EQ(setup(scratch_dir(), 10, 0), 0);
	CHECK(sink->keeps);
	CHECK_EQ(begin(&a, "a"), 0);
	CHECK_EQ(begin(&b, "b"), 0);
	CHECK(end_is_stream(a.end));
	CHECK_EQ(put(&a, "1234"), 0);
	CHECK_EQ(put(&b, "x"), 0);
	CHECK_EQ(put(&a, "5678"), 0);
	CHECK(!is("a/00000001.seg", "12345678")); /* it may grow */
	CHECK_EQ(put(&a, "abc"), 0);              /* 11: too much */
	CHECK(becomes("a/00000001.seg", "12345678"));
	CHECK_EQ(put(&a, "1234567"), 0); /* 10: closed at once */
	CHECK(becomes("a/00000002.seg", "abc1234567"));
	CHECK_EQ(put(&a, "larger than a segment"), 0);
	CHECK(becomes("a/00000003.seg", "larger than a segment"));
	CHECK_EQ(put(&a, "."), 0);
	CHECK_EQ(finish(&a, true), 0);
	CHECK(is("a/00000004.seg", "."));
	CHECK_EQ(entries("a"), 4);
	CHECK(!is("b/00000001.seg", "x"));
	CHECK_EQ(finish(&b, true), 0);
	CHECK(is("b/00000001.seg", "x"));
	CHECK_EQ(entries("b"), 1);
	CHECK(!strcmp(log_text, "a 40 0\nb 1 0\n"));
	teardown();
}

static void numbers_go_on(void)
{
	const char *dir = scratch_dir();
	struct device d;
	char path[300];

	CHECK_EQ(setup(dir, 4, 0), 0);
	snprintf(path, sizeof path, "%s/d", dir);
	CHECK_EQ(mkdir(path, 0755), 0);
	scratch_write(scratch_path(path, "00000041.seg"), "old");
	scratch_write(scratch_path(path, "99.seg"), "too few digits");
	scratch_write(scratch_path(path, "99999999.segment"), "another name");
	scratch_write(scratch_path(path, "9999999999999999999999.seg"), "no number of ours");
	CHECK_EQ(begin(&d, "d"), 0);
	CHECK_EQ(put(&d, "1234"), 0);
	CHECK(becomes("d/00000042.seg", "1234"));
	scratch_write(scratch_path(path, "00000043.seg"), "taken meanwhile");
	CHECK_EQ(put(&d, "5678"), 0);
	CHECK_EQ(finish(&d, true), 0);
	CHECK(is("d/00000044.seg", "5678"));
	CHECK(is("d/00000043.seg", "taken meanwhile"));
	CHECK(is("d/00000041.seg", "old"));
	teardown();
}

static void time_closes_what_stalls(void)
{
	struct device d, other;

	CHECK_EQ(setup(scratch_dir(), 0, 30 * 1000000), 0);
	CHECK_EQ(begin(&d, "d"), 0);
	CHECK_EQ(begin(&other, "other"), 0);
	for (int i = 0; i < 3; i++) {
		char name[32];

		CHECK_EQ(put(&d, "some"), 0);
		snprintf(name, sizeof name, "d/%08d.seg", i + 1);
		CHECK(becomes(name, "some"));
	}
	poll(NULL, 0, 100);
	CHECK_EQ(entries("d"), 3); /* nothing comes of nothing */
	CHECK_EQ(entries("other"), 0);
	CHECK_EQ(finish(&d, true), 0);
	CHECK_EQ(finish(&other, true), 0);
	teardown();
}

static void what_was_good_is_kept(void)
{
	struct device d;

	CHECK_EQ(setup(scratch_dir(), 0, NEVER), 0);
	CHECK_EQ(begin(&d, "d"), 0);
	CHECK_EQ(put(&d, "good"), 0);
	d.sequence++; /* its checksum was wrong: nobody wrote it */
	CHECK_EQ(put(&d, "behind the gap"), -EILSEQ);
	finish(&d, false);
	teardown(); /* waits for it */
	CHECK(is("d/00000001.seg", "good"));
	CHECK_EQ(entries("d"), 1);
	CHECK(!strncmp(log_text, "d 4 ", 4));
}

static void half_a_packet_is_none(void)
{
	struct rlimit old, limit;
	struct device d;
	char text[5001];
	int err;

	memset(text, 'x', 5000);
	text[5000] = '\0';
	CHECK_EQ(setup(scratch_dir(), 0, NEVER), 0);
	CHECK_EQ(begin(&d, "d"), 0);
	CHECK_EQ(put(&d, "whole"), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 4000;
	setrlimit(RLIMIT_FSIZE, &limit);
	err = put(&d, text);
	setrlimit(RLIMIT_FSIZE, &old);
	CHECK_EQ(err, -EFBIG);
	finish(&d, false);
	teardown();
	CHECK(is("d/00000001.seg", "whole"));
}

/* An open segment without a byte would have the closer look at it again and again. */
static void a_first_write_that_fails_leaves_no_segment(void)
{
	struct rlimit old, limit;
	struct device d;
	char text[5001];
	int err;

	memset(text, 'x', 5000);
	text[5000] = '\0';
	CHECK_EQ(setup(scratch_dir(), 0, 1), 0);
	CHECK_EQ(begin(&d, "d"), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 4000;
	setrlimit(RLIMIT_FSIZE, &limit);
	err = put(&d, text);
	setrlimit(RLIMIT_FSIZE, &old);
	CHECK_EQ(err, -EFBIG);
	CHECK_EQ(entries("d"), 0);
	CHECK_EQ(put(&d, "behind the gap"), -EFBIG);
	CHECK_EQ(entries("d"), 0);
	CHECK_EQ(finish(&d, true), -EFBIG);
	teardown();
	CHECK_EQ(entries("d"), 0);
}

static void names_and_kinds_are_refused(void)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "/a"};
	const char *dir = scratch_dir();
	struct transfer_file file;
	struct device d, again;
	struct segments *second;
	struct segments_params params = {.top = AT_FDCWD, .path = dir};
	char path[300];

	CHECK_EQ(setup(dir, 0, 0), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_EQ(begin(&d, bad[i]), -EINVAL);
	CHECK_EQ(begin(&d, "d"), 0);
	CHECK_EQ(begin(&again, "d"), -EBUSY);
	CHECK(strstr(again.text, "another feed"));
	file = d.file;
	file.kind = TRANSFER_FILE_REGULAR;
	file.size = 0;
	CHECK_EQ(sink->open(sink->ctx, &file, &again.end, &again.cookie, again.text), -EINVAL);
	CHECK_EQ(segments_new(&params, &second), 0); /* another feed, of the same device */
	CHECK_EQ(segments_sink(second)->open(segments_sink(second)->ctx, &d.file, &again.end,
			 &again.cookie, again.text),
		-EBUSY);
	segments_free(second);
	CHECK_EQ(finish(&d, true), 0);
	CHECK_EQ(begin(&again, "d"), 0); /* free again */
	CHECK_EQ(finish(&again, true), 0);
	snprintf(path, sizeof path, "%s/file", dir);
	scratch_write(path, "");
	CHECK(begin(&d, "file") < 0);
	CHECK(d.text[0]);
	teardown();
	params.path = path; /* not a directory */
	CHECK_EQ(segments_new(&params, &second), -ENOTDIR);
}

static void a_directory_is_made_and_none_is_left(void)
{
	int fds = scratch_open_fds();
	struct device d;
	char path[300];

	snprintf(path, sizeof path, "%s/one/two", scratch_dir());
	CHECK_EQ(setup(path, 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		while (begin(&d, "d")) /* the closer still has the one before */
			poll(NULL, 0, 1);
		CHECK_EQ(put(&d, "abc"), 0);
		finish(&d, i % 2);
	}
	teardown();
	CHECK_EQ(entries("d"), 3);
	CHECK_EQ(scratch_open_fds(), fds);
}

static void a_lost_segment_is_told(void)
{
	const char *dir = scratch_dir();
	struct device d;
	char path[300];

	CHECK_EQ(setup(dir, 0, 0), 0);
	CHECK_EQ(begin(&d, "d"), 0);
	CHECK_EQ(put(&d, "abc"), 0);
	snprintf(path, sizeof path, "%s/d", dir);
	scratch_write(scratch_path(path, "00000001.seg"), "somebody took its name");
	CHECK_EQ(finish(&d, true), -EEXIST);
	CHECK(is("d/00000001.seg", "somebody took its name"));
	teardown();
}

HARNESS_MAIN({"whole packets up to the size", whole_packets_up_to_the_size},
	{"numbers go on", numbers_go_on}, {"time closes what stalls", time_closes_what_stalls},
	{"what was good is kept", what_was_good_is_kept},
	{"half a packet is none", half_a_packet_is_none},
	{"a first write that fails leaves no segment", a_first_write_that_fails_leaves_no_segment},
	{"names and kinds are refused", names_and_kinds_are_refused},
	{"a directory is made, and no descriptor left", a_directory_is_made_and_none_is_left},
	{"a lost segment is told", a_lost_segment_is_told})
