/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/feeder.c: many streams in one thread: whose blocks come, when, and in what turn.
 */
#include "tests/harness.h"

#include "base/queue.h"
#include "proto/transfer.h"
#include "tests/scratch.h"
#include "transfer/io_pool.h"
#include "transfer/feeder.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#define BLOCK 4096u
#define BLOCKS 8
#define STREAMS 4

struct bench {
	struct feeder *feeder;
	struct queue *done;
	struct block *blocks[BLOCKS];
	struct io_pool_target targets[STREAMS];
	int writers[STREAMS]; /* of pipes */
	int stop_fd;
	_Atomic unsigned hungry;
};
static struct bench b;

static void out(void *ctx, struct block *block)
{
	(void)ctx;
	if (queue_push(b.done, (void *const *)&block, 1))
		abort();
}

static void hungry(void *ctx)
{
	(void)ctx;
	b.hungry++;
}

static void setup(uint64_t flush_ns)
{
	struct feeder_params params = {.streams = STREAMS,
		.blocks = BLOCKS,
		.flush_ns = flush_ns,
		.tell_hungry = true,
		.out = out,
		.hungry = hungry};

	memset(&b, 0, sizeof b);
	params.stop_fd = b.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (queue_new(BLOCKS, &b.done) || feeder_new(&params, &b.feeder))
		abort();
	for (int i = 0; i < BLOCKS; i++)
		b.blocks[i] = scratch_block(65536);
	for (int i = 0; i < STREAMS; i++)
		b.writers[i] = -1;
}

static void teardown(void)
{
	feeder_free(b.feeder);
	queue_free(b.done);
	for (int i = 0; i < BLOCKS; i++)
		scratch_block_free(b.blocks[i]);
	for (int i = 0; i < STREAMS; i++) {
		end_free(b.targets[i].end);
		if (b.writers[i] >= 0)
			close(b.writers[i]);
	}
	close(b.stop_fd);
}

static void give(struct block *block)
{
	block->length = BLOCK;
	block->owner = NULL;
	block->error = -1;
	feeder_submit(b.feeder, block);
}

static void give_all(void)
{
	for (int i = 0; i < BLOCKS; i++)
		give(b.blocks[i]);
}

static void add(int i, int fd)
{
	if (end_stream_open(fd, false, false, &b.targets[i].end))
		abort();
	feeder_add(b.feeder, &b.targets[i]);
}

static void add_pipe(int i)
{
	int fds[2];

	if (pipe(fds))
		abort();
	b.writers[i] = fds[1];
	add(i, fds[0]);
}

static void put(int i, const void *data, size_t bytes)
{
	if (write(b.writers[i], data, bytes) != (ssize_t)bytes)
		abort();
}

static void hang_up(int i)
{
	close(b.writers[i]);
	b.writers[i] = -1;
}

static struct block *take(void)
{
	struct block *block = NULL;

	queue_pop(b.done, (void **)&block, 1, true);
	return block;
}

static bool nothing_comes(void)
{
	struct block *block;

	poll(NULL, 0, 60);
	return !queue_pop(b.done, (void **)&block, 1, false);
}

static void until_hungry(unsigned count)
{
	while (b.hungry < count)
		poll(NULL, 0, 1);
}

static int owner(const struct block *block)
{
	return (int)((struct io_pool_target *)block->owner - b.targets);
}

static void full_blocks_and_the_last(void)
{
	uint8_t data[2 * BLOCK + 100];
	struct block *block;
	uint64_t seed = 1;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)harness_random(&seed);
	setup(3600 * 1000000000ull);
	give_all();
	add_pipe(1);
	put(1, data, sizeof data);
	for (unsigned i = 0; i < 2; i++) {
		block = take();
		CHECK_EQ(owner(block), 1);
		CHECK_EQ(block->length, BLOCK);
		CHECK_EQ(block->error, 0);
		CHECK_EQ(block->flags, 0);
		CHECK(!memcmp(block->payload, data + i * BLOCK, BLOCK));
	}
	CHECK(nothing_comes());
	hang_up(1);
	block = take();
	CHECK_EQ(block->length, 100);
	CHECK_EQ(block->flags, TRANSFER_BLOCK_LAST);
	CHECK(!memcmp(block->payload, data + 2 * BLOCK, 100));
	CHECK(nothing_comes());
	add_pipe(2); /* the end alone */
	hang_up(2);
	block = take();
	CHECK_EQ(owner(block), 2);
	CHECK_EQ(block->length, 0);
	CHECK_EQ(block->flags, TRANSFER_BLOCK_LAST);
	teardown();
}

static void what_waits_is_flushed(void)
{
	struct block *block;

	setup(20 * 1000000);
	give_all();
	add_pipe(0);
	put(0, "abc", 3);
	block = take();
	CHECK_EQ(block->length, 3);
	CHECK_EQ(block->flags, 0);
	CHECK(nothing_comes());
	put(0, "defg", 4);
	CHECK_EQ(take()->length, 4);
	teardown();
}

/* One block for all: who has nothing more gives it up. */
static void a_stalled_stream_holds_nobody_up(void)
{
	struct block *block;
	uint8_t data[BLOCK] = {0};

	setup(10 * 1000000);
	give(b.blocks[0]);
	add_pipe(0);
	add_pipe(1);
	put(0, "x", 1);
	block = take();
	CHECK_EQ(owner(block), 0);
	for (int i = 0; i < 5; i++) {
		give(block);
		put(1, data, BLOCK);
		block = take();
		CHECK_EQ(owner(block), 1);
		CHECK_EQ(block->length, BLOCK);
	}
	teardown();
}

/* The last block goes to a stream that then has nothing, while another one waits for it. */
static void a_block_that_is_not_needed_goes_to_who_waits(void)
{
	uint8_t data[2 * BLOCK] = {0};

	setup(3600 * 1000000000ull);
	add_pipe(0);
	add_pipe(1);
	put(0, data, BLOCK);
	put(1, data, 2 * BLOCK);
	until_hungry(1);
	poll(NULL, 0, 50); /* both are known to be readable, and have had nothing */
	give(b.blocks[0]);
	CHECK_EQ(owner(take()), 0);
	give(b.blocks[1]);
	CHECK_EQ(owner(take()), 1);
	give(b.blocks[2]); /* it is the first one's turn, which is empty */
	CHECK_EQ(owner(take()), 1);
	teardown();
}

static int make_file(const char *dir, const char *name, off_t size)
{
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, size))
		abort();
	return fd;
}

/* Gives one block over and over, until each of the streams was served. */
static void serve_all(unsigned streams)
{
	for (unsigned seen = 0; seen != (1u << streams) - 1;) {
		give(b.blocks[0]);
		seen |= 1u << owner(take());
	}
}

static void count_turns(unsigned turns, unsigned counts[STREAMS])
{
	memset(counts, 0, STREAMS * sizeof counts[0]);
	while (turns--) {
		give(b.blocks[0]);
		counts[owner(take())]++;
	}
}

static void bytes_are_shared_alike(void)
{
	const char *dir = scratch_dir();
	unsigned blocks[STREAMS];

	setup(3600 * 1000000000ull);
	for (int i = 0; i < 3; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		add(i, make_file(dir, name, 1 << 20));
	}
	serve_all(3);
	count_turns(30, blocks);
	for (int i = 0; i < 3; i++)
		CHECK(blocks[i] >= 9 && blocks[i] <= 11);
	/* one that comes late does not claim what it did not use */
	add(3, make_file(dir, "d", 1 << 20));
	serve_all(4);
	count_turns(40, blocks);
	for (int i = 0; i < 4; i++)
		CHECK(blocks[i] >= 8 && blocks[i] <= 12);
	teardown();
}

static void the_stop_takes_what_is_there(void)
{
	uint8_t data[BLOCK + 10] = {7};
	uint64_t one = 1;
	struct block *block;
	unsigned ends = 0, bytes = 0;

	setup(3600 * 1000000000ull);
	add_pipe(0);
	add_pipe(1);
	add(2, open("/dev/zero", O_RDONLY));
	put(0, data, sizeof data);
	until_hungry(1);
	CHECK_EQ(write(b.stop_fd, &one, sizeof one), sizeof one);
	poll(NULL, 0, 50);
	give_all();
	add_pipe(3); /* too late: it ends at once */
	while (ends < 4) {
		block = take();
		if (owner(block) == 0)
			bytes += block->length;
		else
			CHECK_EQ(block->length, 0);
		ends += block->flags == TRANSFER_BLOCK_LAST;
		CHECK_EQ(block->error, 0);
	}
	CHECK_EQ(bytes, sizeof data);
	CHECK(nothing_comes());
	teardown();
}

static void one_stream_is_stopped(void)
{
	struct block *block;

	setup(3600 * 1000000000ull);
	give_all();
	add_pipe(0);
	add_pipe(1);
	put(0, "abc", 3);
	put(1, "de", 2);
	CHECK(nothing_comes());
	feeder_stop(b.feeder, &b.targets[0]);
	block = take();
	CHECK_EQ(owner(block), 0);
	CHECK_EQ(block->length, 0);
	CHECK_EQ(block->flags, TRANSFER_BLOCK_LAST);
	feeder_stop(b.feeder, &b.targets[0]); /* late: nothing happens */
	hang_up(1);
	block = take();
	CHECK_EQ(owner(block), 1);
	CHECK_EQ(block->length, 2);
	teardown();
}

static void an_error_comes_behind_what_was_read(void)
{
	struct block *block;

	setup(3600 * 1000000000ull);
	give_all();
	add(0, open("/proc/self/mem", O_RDONLY)); /* nothing is mapped at 0 */
	block = take();
	CHECK_EQ(block->length, 0);
	CHECK_EQ(block->error, -EIO);
	CHECK_EQ(block->flags, TRANSFER_BLOCK_LAST);
	teardown();
}

static void hunger_is_told_once(void)
{
	setup(10 * 1000000);
	CHECK(!feeder_hungry(b.feeder));
	add_pipe(0);
	add_pipe(1);
	put(0, "abc", 3);
	until_hungry(1);
	CHECK(feeder_hungry(b.feeder));
	put(1, "abc", 3);
	CHECK(nothing_comes());
	CHECK_EQ(b.hungry, 1);
	give(b.blocks[0]);
	until_hungry(2);
	give(b.blocks[1]);
	take();
	take();
	CHECK(!feeder_hungry(b.feeder));
	teardown();
}

HARNESS_MAIN({"full blocks, and the last", full_blocks_and_the_last},
	{"what waits is flushed", what_waits_is_flushed},
	{"a stalled stream holds nobody up", a_stalled_stream_holds_nobody_up},
	{"a block that is not needed goes to who waits",
		a_block_that_is_not_needed_goes_to_who_waits},
	{"bytes are shared alike", bytes_are_shared_alike},
	{"the stop takes what is there", the_stop_takes_what_is_there},
	{"one stream is stopped", one_stream_is_stopped},
	{"an error comes behind what was read", an_error_comes_behind_what_was_read},
	{"hunger is told once", hunger_is_told_once})
