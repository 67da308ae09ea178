/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/end_file.c: files as ends, buffered and with O_DIRECT, against a copy in memory.
 */
#include "tests/harness.h"

#include "end/end.h"
#include "tests/scratch.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BLOCK 65536u
#define DEPTH 8u

static void fill(uint8_t *data, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = harness_random(&seed);

		memcpy(data + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

/* Writes or reads `size` bytes of `image` by blocks in a random order; -errno of the first error.
 */
static int move_all(struct end *end, bool writing, uint8_t *image, uint64_t size, uint32_t bytes,
	unsigned depth, uint64_t *seed)
{
	uint64_t count = (size + bytes - 1) / bytes, next = 0;
	uint64_t *order = malloc((count + 1) * sizeof(*order));
	struct block *idle[64], *done[64];
	unsigned free_count = depth, n;
	struct end_queue *q;
	int err = end_queue_new(depth, &q);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t j = harness_random(seed) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < depth; i++)
		idle[i] = scratch_block(bytes);
	while (!err && (next < count || end_outstanding(q))) {
		while (next < count && free_count && harness_random(seed) % 4) {
			struct block *b = idle[--free_count];

			b->offset = order[next++] * bytes;
			b->length = bytes;
			if (writing) {
				if (b->length > size - b->offset)
					b->length = (uint32_t)(size - b->offset);
				memcpy(b->payload, image + b->offset, b->length);
			}
			b->sequence = b->length;
			end_submit(q, end, b);
		}
		n = end_reap(q, done, 1 + (unsigned)(harness_random(seed) % depth),
			harness_random(seed) % 2);
		for (unsigned i = 0; i < n; i++) {
			struct block *b = done[i];
			uint64_t want = size - b->offset < bytes ? size - b->offset : bytes;

			if (b->error && !err)
				err = b->error;
			else if (b->length != want && !err)
				err = -ENODATA;
			if (!writing && !b->error)
				memcpy(image + b->offset, b->payload, b->length);
			idle[free_count++] = b;
		}
	}
	while (q && end_outstanding(q)) {
		n = end_reap(q, done, depth, true);
		for (unsigned i = 0; i < n; i++)
			idle[free_count++] = done[i];
	}
	for (unsigned i = 0; i < free_count; i++)
		scratch_block_free(idle[i]);
	end_queue_free(q);
	free(order);
	return err;
}

static int open_new(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Whether O_DIRECT can be had in the directory. */
static bool direct_works(const char *dir)
{
	struct end *end;
	int err = end_file_open(
		open_new(scratch_path(dir, "try")), true, UINT64_MAX, END_DIRECT_ON, &end);

	if (!err)
		end_free(end);
	return !err;
}

/* Writes and reads files of many sizes; `write_direct` and `read_direct` as for end_file_open. */
static void round_trips(const char *dir, enum end_direct write_direct, enum end_direct read_direct)
{
	static const uint32_t edges[] = {0, 1, 511, 512, 513, 4095, 4096, 4097, BLOCK - 1, BLOCK,
		BLOCK + 1, 2 * BLOCK + 4096, 5 * BLOCK - 4095};
	const unsigned edge_count = sizeof(edges) / sizeof(edges[0]);
	const char *path = scratch_path(dir, "file");
	uint64_t seed = harness_seed();
	uint8_t *image = malloc(24 * BLOCK + 1), *copy = malloc(24 * BLOCK + 1);
	struct stat st;

	for (unsigned round = 0; round < edge_count + 40; round++) {
		uint64_t size =
			round < edge_count ? edges[round] : harness_random(&seed) % (24 * BLOCK);
		uint32_t bytes = harness_random(&seed) % 2 ? BLOCK : 3 * BLOCK / 2;
		uint64_t announced = harness_random(&seed) % 3 ? size : UINT64_MAX;
		unsigned depth = 1 + (unsigned)(harness_random(&seed) % 40);
		struct end *end;

		fill(image, size, seed);
		CHECK_EQ(end_file_open(open_new(path), true, announced, write_direct, &end), 0);
		CHECK_EQ(end_is_direct(end), write_direct == END_DIRECT_ON);
		CHECK(!end_is_stream(end));
		CHECK_EQ(move_all(end, true, image, size, bytes, depth, &seed), 0);
		CHECK_EQ(end_sync(end), 0);
		CHECK_EQ(end_free(end), 0);
		CHECK_EQ(stat(path, &st), 0);
		CHECK_EQ(st.st_size, size);

		memset(copy, 0, size);
		CHECK_EQ(end_file_open(open(path, O_RDONLY | O_CLOEXEC), false, announced,
				 read_direct, &end),
			0);
		CHECK_EQ(move_all(end, false, copy, size, bytes, depth, &seed), 0);
		CHECK_EQ(end_free(end), 0);
		CHECK(!memcmp(image, copy, size));
	}
	free(image);
	free(copy);
}

static void buffered_round_trips(void)
{
	round_trips(scratch_dir(), END_DIRECT_OFF, END_DIRECT_OFF);
}

static void direct_round_trips(void)
{
	const char *dir = scratch_dir();

	if (!direct_works(dir))
		SKIP("the file system of the temporary directory refuses O_DIRECT");
	round_trips(dir, END_DIRECT_ON, END_DIRECT_ON);
}

static void direct_and_buffered_agree(void)
{
	const char *dir = scratch_dir();

	if (!direct_works(dir))
		SKIP("the file system of the temporary directory refuses O_DIRECT");
	round_trips(dir, END_DIRECT_ON, END_DIRECT_OFF);
	if (!harness_failed)
		round_trips(dir, END_DIRECT_OFF, END_DIRECT_ON);
}

/* As in a sandbox that does not know libaio's calls. */
static bool forbid_kernel_queue(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void direct_without_kernel_queue(void)
{
	const char *dir = scratch_dir();
	uint64_t seed = harness_seed();
	uint8_t *image = calloc(1, 5 * BLOCK);
	struct end *end;
	pid_t child;
	int status;

	if (!direct_works(dir))
		SKIP("the file system of the temporary directory refuses O_DIRECT");
	fflush(stdout);
	child = fork();
	if (!child) {
		if (!forbid_kernel_queue())
			_exit(77);
		if (end_file_open(open_new(scratch_path(dir, "f")), true, UINT64_MAX, END_DIRECT_ON,
			    &end))
			_exit(1);
		if (move_all(end, true, image, 5 * BLOCK - 5, BLOCK, DEPTH, &seed))
			_exit(2);
		_exit(end_free(end) ? 3 : 0);
	}
	free(image);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("may not filter system calls");
	CHECK_EQ(WEXITSTATUS(status), 0);
}

/* Far more blocks at once than are given to the kernel at once. */
static void direct_with_a_deep_queue(void)
{
	enum { MANY = 300 };
	const char *dir = scratch_dir();
	struct block *done[MANY], *blocks[MANY];
	struct end_queue *q;
	struct stat st;
	struct end *end;
	unsigned n = 0;

	if (!direct_works(dir))
		SKIP("the file system of the temporary directory refuses O_DIRECT");
	CHECK_EQ(end_queue_new(MANY, &q), 0);
	CHECK_EQ(end_file_open(
			 open_new(scratch_path(dir, "f")), true, UINT64_MAX, END_DIRECT_ON, &end),
		0);
	for (unsigned i = 0; i < MANY; i++) {
		blocks[i] = scratch_block(4096);
		blocks[i]->offset = (uint64_t)(MANY - 1 - i) * 4096;
		blocks[i]->length = i ? 4096 : 100;
		end_submit(q, end, blocks[i]);
	}
	CHECK_EQ(end_outstanding(q), MANY);
	while (end_outstanding(q))
		n += end_reap(q, done, 7, true);
	CHECK_EQ(n, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		CHECK_EQ(blocks[i]->error, 0);
		scratch_block_free(blocks[i]);
	}
	CHECK_EQ(end_free(end), 0);
	CHECK_EQ(stat(scratch_path(dir, "f"), &st), 0);
	CHECK_EQ(st.st_size, (MANY - 1) * 4096 + 100);
	end_queue_free(q);
}

static void auto_stays_buffered_below_a_gibibyte(void)
{
	const char *path = scratch_path(scratch_dir(), "f");
	struct end *end;

	CHECK_EQ(end_file_open(open_new(path), true, 64u << 20, END_DIRECT_AUTO, &end), 0);
	CHECK(!end_is_direct(end));
	CHECK_EQ(end_free(end), 0);
	CHECK_EQ(end_file_open(open_new(path), true, UINT64_MAX, END_DIRECT_AUTO, &end), 0);
	CHECK(!end_is_direct(end));
	CHECK_EQ(end_free(end), 0);
}

static void reading_past_the_end_is_short(void)
{
	const char *path = scratch_path(scratch_dir(), "f");
	struct block *block = scratch_block(BLOCK), *done;
	struct end_queue *q;
	struct end *end;

	CHECK(scratch_write(path, "twelve bytes"));
	CHECK_EQ(end_queue_new(DEPTH, &q), 0);
	for (int direct = END_DIRECT_AUTO; direct <= END_DIRECT_OFF; direct++) {
		if (end_file_open(
			    open(path, O_RDONLY), false, BLOCK, (enum end_direct)direct, &end))
			continue;
		for (uint64_t offset = 0; offset <= 2 * BLOCK; offset += 4096) {
			block->offset = offset;
			block->length = BLOCK;
			end_submit(q, end, block);
			CHECK_EQ(end_reap(q, &done, 1, true), 1);
			CHECK_EQ(block->error, 0);
			CHECK_EQ(block->length, offset ? 0 : 12);
		}
		block->offset = UINT64_MAX - 10;
		block->length = BLOCK;
		end_submit(q, end, block);
		CHECK_EQ(end_reap(q, &done, 1, true), 1);
		CHECK_EQ(block->error, -EFBIG);
		CHECK_EQ(end_free(end), 0);
	}
	end_queue_free(q);
	scratch_block_free(block);
}

static void refuses_what_is_no_file(void)
{
	const char *dir = scratch_dir(), *fifo = scratch_path(dir, "fifo");
	int fds = scratch_open_fds(), fd;
	struct end *end;

	CHECK_EQ(mkfifo(fifo, 0600), 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	CHECK_EQ(end_file_open(fd, false, 0, END_DIRECT_AUTO, &end), -EISDIR);
	CHECK(!end);
	fd = open(fifo, O_RDWR);
	CHECK_EQ(end_file_open(fd, false, 0, END_DIRECT_AUTO, &end), -EINVAL);
	fd = open("/dev/null", O_RDWR);
	CHECK_EQ(end_file_open(fd, true, 0, END_DIRECT_AUTO, &end), -EINVAL);
	CHECK_EQ(end_file_open(-1, true, 0, END_DIRECT_AUTO, &end), -EBADF);
	CHECK_EQ(scratch_open_fds(), fds); /* they were taken over and closed */
}

static void wrong_direction_is_an_error_of_the_block(void)
{
	const char *path = scratch_path(scratch_dir(), "f");
	struct block *block = scratch_block(BLOCK), *done;
	struct end_queue *q;
	struct end *end;

	CHECK(scratch_write(path, "x"));
	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_file_open(open(path, O_RDONLY), true, UINT64_MAX, END_DIRECT_OFF, &end), 0);
	block->length = 100;
	end_submit(q, end, block);
	CHECK_EQ(end_reap(q, &done, 1, true), 1);
	CHECK_EQ(block->error, -EBADF);
	CHECK_EQ(block->length, 0);
	CHECK_EQ(end_free(end), 0);
	end_queue_free(q);
	scratch_block_free(block);
}

static void full_disk_is_no_space(void)
{
	const char *dir = scratch_small(1u << 20);
	const char *path;
	struct end *end;
	uint8_t *image;
	uint64_t seed = harness_seed();
	int fds = scratch_open_fds();

	if (!dir)
		SKIP("may not mount a small file system");
	path = scratch_path(dir, "f");
	CHECK_EQ(end_file_open(open_new(path), true, 64u << 20, END_DIRECT_AUTO, &end), -ENOSPC);
	CHECK_EQ(scratch_open_fds(), fds);
	image = calloc(1, 2u << 20);
	for (int direct = END_DIRECT_ON; direct <= END_DIRECT_OFF; direct++) {
		if (end_file_open(open_new(path), true, UINT64_MAX, (enum end_direct)direct, &end))
			continue;
		CHECK_EQ(move_all(end, true, image, 2u << 20, BLOCK, DEPTH, &seed), -ENOSPC);
		CHECK_EQ(end_free(end), 0);
	}
	free(image);
}

/* What does not fit is known before the disk is filled with it. */
static void too_large_takes_nothing(void)
{
	const char *path = scratch_path(scratch_dir(), "f");
	int fd = open_new(path), copy = dup(fd), err;
	struct end *end;
	struct stat st;

	err = end_file_open(fd, true, 1ull << 62, END_DIRECT_AUTO, &end);
	CHECK_EQ(fstat(copy, &st), 0);
	CHECK_EQ(st.st_blocks, 0);
	close(copy);
	if (!err) {
		CHECK_EQ(end_free(end), 0);
		SKIP("the temporary directory is on no device: its space is not looked at");
	}
	CHECK_EQ(err, -ENOSPC);
}

struct share {
	struct end *end;
	unsigned first;
	int err;
};

#define SHARE_BLOCKS 64u

/* Writes every second block. */
static void *share_run(void *arg)
{
	struct share *share = arg;
	struct block *block = scratch_block(BLOCK), *done;
	struct end_queue *q;

	share->err = end_queue_new(1, &q);
	for (unsigned i = share->first; i < SHARE_BLOCKS && !share->err; i += 2) {
		memset(block->payload, (int)i, BLOCK);
		block->offset = (uint64_t)i * BLOCK;
		block->length = BLOCK;
		end_submit(q, share->end, block);
		end_reap(q, &done, 1, true);
		share->err = block->error;
	}
	end_queue_free(q);
	scratch_block_free(block);
	return NULL;
}

static void one_file_two_queues(void)
{
	const char *dir = scratch_dir(), *path = scratch_path(dir, "f");
	enum end_direct direct = direct_works(dir) ? END_DIRECT_ON : END_DIRECT_OFF;
	uint8_t *copy = malloc((size_t)SHARE_BLOCKS * BLOCK);
	struct share shares[2];
	pthread_t threads[2];
	struct end *end;
	int fd;

	CHECK_EQ(end_file_open(open_new(path), true, (uint64_t)SHARE_BLOCKS * BLOCK, direct, &end),
		0);
	for (unsigned i = 0; i < 2; i++) {
		shares[i] = (struct share){end, i, 0};
		CHECK_EQ(pthread_create(&threads[i], NULL, share_run, &shares[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(shares[0].err, 0);
	CHECK_EQ(shares[1].err, 0);
	CHECK_EQ(end_free(end), 0);
	fd = open(path, O_RDONLY);
	CHECK_EQ(read(fd, copy, (size_t)SHARE_BLOCKS * BLOCK), (size_t)SHARE_BLOCKS * BLOCK);
	close(fd);
	for (size_t i = 0; i < (size_t)SHARE_BLOCKS * BLOCK; i++)
		CHECK(copy[i] == (uint8_t)(i / BLOCK));
	free(copy);
}

static uint64_t disk_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

/* Zeros of a sparse file stay holes, by pages; all else is what was written. */
static void zeros_stay_holes(void)
{
	const struct end_file_params params = {
		.writing = true, .size = 40 * BLOCK + 5, .direct = END_DIRECT_ON, .sparse = true};
	const char *path = scratch_path(scratch_dir(), "f");
	uint8_t *image = calloc(1, params.size), *copy = malloc(params.size);
	uint64_t seed = harness_seed(), from, to;
	struct end *end;
	int fd;

	CHECK_EQ(end_file_open_as(open_new(path), &params, &end), 0);
	CHECK(!end_is_direct(end));
	for (int i = 0; i < 12; i++) /* single pages, and one that is nearly zero */
		fill(image + harness_random(&seed) % 600 * 4096, 4096, ++seed);
	image[35 * BLOCK + 77] = 1;
	image[params.size - 1] = 2;
	CHECK_EQ(move_all(end, true, image, params.size, BLOCK, DEPTH, &seed), 0);
	CHECK_EQ(end_sync(end), 0);
	CHECK_EQ(end_free(end), 0);
	fd = open(path, O_RDONLY);
	CHECK_EQ(read(fd, copy, params.size), params.size);
	CHECK(!memcmp(image, copy, params.size));
	CHECK(disk_bytes(path) <= 16 * 4096);
	/* and where they are is said */
	CHECK_EQ(end_file_open(fd, false, params.size, END_DIRECT_OFF, &end), 0);
	end_file_data(end, 35 * BLOCK + 4096 + 1, &from, &to);
	CHECK(from > 35 * BLOCK + 4096);
	end_file_data(end, params.size, &from, &to);
	CHECK(from == UINT64_MAX && to == UINT64_MAX);
	end_free(end);
	free(image);
	free(copy);
}

static void space_is_taken_at_once(void)
{
	const struct end_file_params params = {
		.writing = true, .size = 300000, .preallocate = true};
	const char *path = scratch_path(scratch_dir(), "f");
	struct end *end;

	CHECK_EQ(end_file_open_as(open_new(path), &params, &end), 0);
	CHECK(disk_bytes(path) >= 300000);
	CHECK_EQ(end_free(end), 0);
}

HARNESS_MAIN({"zeros_stay_holes", zeros_stay_holes},
	{"space_is_taken_at_once", space_is_taken_at_once},
	{"buffered_round_trips", buffered_round_trips}, {"direct_round_trips", direct_round_trips},
	{"direct_and_buffered_agree", direct_and_buffered_agree},
	{"direct_without_kernel_queue", direct_without_kernel_queue},
	{"direct_with_a_deep_queue", direct_with_a_deep_queue},
	{"auto_stays_buffered_below_a_gibibyte", auto_stays_buffered_below_a_gibibyte},
	{"reading_past_the_end_is_short", reading_past_the_end_is_short},
	{"refuses_what_is_no_file", refuses_what_is_no_file},
	{"wrong_direction_is_an_error_of_the_block", wrong_direction_is_an_error_of_the_block},
	{"full_disk_is_no_space", full_disk_is_no_space},
	{"too_large_takes_nothing", too_large_takes_nothing},
	{"one_file_two_queues", one_file_two_queues})
