/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/end_stream.c: pipes, sockets, terminals and redirected files as ends; cancelling.
 */
#include "tests/harness.h"

#include "end/end.h"
#include "tests/scratch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <termios.h>

#define BLOCK 65536u

/* One block through the end; its length, or its error. */
static long move(struct end_queue *q, struct end *end, struct block *block, uint32_t length)
{
	struct block *done;

	block->length = length;
	end_submit(q, end, block);
	if (end_reap(q, &done, 1, true) != 1 || done != block)
		return -EPROTO;
	return block->error ? block->error : (long)block->length;
}

struct feeder {
	int fd;
	size_t bytes, piece;
};

/* Writes bytes counting up, in pieces, then closes. */
static void *feeder_run(void *arg)
{
	struct feeder *f = arg;
	uint8_t piece[10000];

	for (size_t at = 0; at < f->bytes;) {
		size_t n = f->bytes - at < f->piece ? f->bytes - at : f->piece;

		for (size_t i = 0; i < n; i++)
			piece[i] = (uint8_t)((at + i) % 251);
		if (write(f->fd, piece, n) != (ssize_t)n)
			break;
		at += n;
	}
	close(f->fd);
	return NULL;
}

/* Blocks are full until the stream ends, whatever pieces it comes in. */
static void read_fills_blocks(int fds[2])
{
	struct feeder feeder = {fds[1], 5 * BLOCK + 77, 3333};
	struct block *block = scratch_block(BLOCK);
	struct end_queue *q;
	pthread_t thread;
	struct end *end;
	size_t at = 0;

	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_stream_open(fds[0], false, false, &end), 0);
	CHECK(end_is_stream(end));
	CHECK_EQ(pthread_create(&thread, NULL, feeder_run, &feeder), 0);
	for (int i = 0; i < 7; i++) {
		CHECK_EQ(move(q, end, block, BLOCK), i < 5 ? (long)BLOCK : i == 5 ? 77 : 0);
		for (uint32_t j = 0; j < block->length; j++, at++)
			CHECK(block->payload[j] == (uint8_t)(at % 251));
	}
	pthread_join(thread, NULL);
	CHECK_EQ(end_sync(end), 0);
	CHECK_EQ(end_free(end), 0);
	end_queue_free(q);
	scratch_block_free(block);
}

static void pipe_is_read_in_full_blocks(void)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	read_fills_blocks(fds);
}

static void socket_is_read_in_full_blocks(void)
{
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	read_fills_blocks(fds);
}

struct eater {
	int fd;
	size_t bytes;
	bool good;
};

static void *eater_run(void *arg)
{
	struct eater *e = arg;
	uint8_t piece[7000];
	ssize_t n;

	e->good = true;
	while ((n = read(e->fd, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n; i++)
			e->good &= piece[i] == (uint8_t)(e->bytes++ % 251);
	close(e->fd);
	return NULL;
}

static void write_is_whole(int fds[2], bool borrowed)
{
	struct eater eater = {fds[0], 0, false};
	struct block *block = scratch_block(BLOCK);
	struct end_queue *q;
	pthread_t thread;
	struct end *end;
	size_t at = 0;
	int flags = fcntl(fds[1], F_GETFL);

	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_stream_open(fds[1], true, borrowed, &end), 0);
	CHECK_EQ(pthread_create(&thread, NULL, eater_run, &eater), 0);
	for (int i = 0; i < 40; i++) {
		for (uint32_t j = 0; j < BLOCK; j++)
			block->payload[j] = (uint8_t)(at++ % 251);
		CHECK_EQ(move(q, end, block, BLOCK), BLOCK);
	}
	if (borrowed) /* others share its flags */
		CHECK_EQ(fcntl(fds[1], F_GETFL), flags);
	CHECK_EQ(end_free(end), 0);
	if (borrowed)
		CHECK_EQ(close(fds[1]), 0);
	pthread_join(thread, NULL);
	CHECK(eater.good);
	CHECK_EQ(eater.bytes, 40 * BLOCK);
	end_queue_free(q);
	scratch_block_free(block);
}

static void pipe_is_written_whole(void)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	write_is_whole(fds, false);
	CHECK_EQ(pipe(fds), 0);
	write_is_whole(fds, true);
}

static void socket_is_written_whole(void)
{
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	write_is_whole(fds, true);
}

static void reader_gone_is_epipe(void)
{
	struct block *block = scratch_block(BLOCK);
	struct end_queue *q;
	struct end *end;
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(end_queue_new(1, &q), 0);
	for (int kind = 0; kind < 2; kind++) {
		CHECK_EQ(kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, fds) : pipe(fds), 0);
		CHECK_EQ(end_stream_open(fds[1], true, false, &end), 0);
		close(fds[0]);
		CHECK_EQ(move(q, end, block, BLOCK), -EPIPE);
		CHECK_EQ(end_free(end), 0);
	}
	end_queue_free(q);
	scratch_block_free(block);
}

struct canceller {
	struct end_queue *q;
	pthread_barrier_t *barrier;
};

static void *canceller_run(void *arg)
{
	struct canceller *c = arg;

	pthread_barrier_wait(c->barrier);
	end_queue_cancel(c->q);
	return NULL;
}

/* Nobody at the other side moves; the cancel comes before, while or after it waits. */
static void cancelled(bool writing, bool socket)
{
	struct block *block = scratch_block(BLOCK);
	pthread_barrier_t barrier;
	struct end_queue *q;
	struct canceller c;
	pthread_t thread;
	struct end *end;
	int fds[2], n = 0;
	long moved;

	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, fds) : pipe(fds), 0);
	CHECK_EQ(end_stream_open(fds[writing], writing, false, &end), 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
	c = (struct canceller){q, &barrier};
	CHECK_EQ(pthread_create(&thread, NULL, canceller_run, &c), 0);
	pthread_barrier_wait(&barrier);
	do /* a pipe takes some before it is full */
		moved = move(q, end, block, BLOCK);
	while (moved > 0 && n++ < 1000);
	CHECK_EQ(moved, -ECANCELED);
	pthread_join(thread, NULL);
	CHECK_EQ(move(q, end, block, BLOCK), -ECANCELED); /* and from now on */
	CHECK_EQ(end_free(end), 0);
	close(fds[!writing]);
	pthread_barrier_destroy(&barrier);
	end_queue_free(q);
	scratch_block_free(block);
}

static void waiting_is_cancelled(void)
{
	for (int i = 0; i < 40 && !harness_failed; i++)
		cancelled(i & 1, i & 2);
}

static void fifo_whose_writer_left_ends(void)
{
	const char *path = scratch_path(scratch_dir(), "fifo");
	struct block *block = scratch_block(BLOCK);
	struct end_queue *q;
	struct end *end;
	int in, out;

	CHECK_EQ(mkfifo(path, 0600), 0);
	in = open(path, O_RDONLY | O_NONBLOCK);
	out = open(path, O_WRONLY);
	CHECK_EQ(fcntl(in, F_SETFL, 0), 0);
	CHECK_EQ(write(out, "some", 4), 4);
	close(out);
	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_stream_open(in, false, true, &end), 0);
	CHECK_EQ(move(q, end, block, BLOCK), 4);
	CHECK_EQ(move(q, end, block, BLOCK), 0);
	CHECK_EQ(end_free(end), 0);
	CHECK_EQ(close(in), 0); /* borrowed: still ours */
	end_queue_free(q);
	scratch_block_free(block);
}

static void redirected_file_keeps_its_position(void)
{
	const char *path = scratch_path(scratch_dir(), "f");
	struct block *block = scratch_block(BLOCK);
	struct end_queue *q;
	struct end *end;
	int fd;

	CHECK(scratch_write(path, "head, "));
	CHECK_EQ(end_queue_new(1, &q), 0);
	fd = open(path, O_WRONLY | O_APPEND);
	CHECK_EQ(end_stream_open(fd, true, true, &end), 0);
	memcpy(block->payload, "body", 4);
	block->offset = 12345; /* means nothing here */
	CHECK_EQ(move(q, end, block, 4), 4);
	CHECK_EQ(end_sync(end), 0);
	CHECK_EQ(end_free(end), 0);
	CHECK_EQ(write(fd, ", tail", 6), 6);
	close(fd);
	CHECK(scratch_is(path, "head, body, tail"));

	fd = open(path, O_RDONLY);
	CHECK_EQ(lseek(fd, 6, SEEK_SET), 6);
	CHECK_EQ(end_stream_open(fd, false, false, &end), 0);
	CHECK_EQ(move(q, end, block, BLOCK), 10);
	CHECK(!memcmp(block->payload, "body, tail", 10));
	CHECK_EQ(end_free(end), 0);
	end_queue_free(q);
	scratch_block_free(block);
}

static void terminal_ends_at_its_key(void)
{
	struct block *block = scratch_block(BLOCK);
	struct termios tio;
	struct end_queue *q;
	struct end *end;
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	if (master < 0 || grantpt(master) || unlockpt(master)) {
		scratch_block_free(block);
		SKIP("no pseudo-terminals here");
	}
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	CHECK(slave >= 0);
	CHECK_EQ(tcgetattr(slave, &tio), 0);
	tio.c_lflag = ICANON;
	CHECK_EQ(tcsetattr(slave, TCSANOW, &tio), 0);
	CHECK_EQ(write(master, "one\ntwo\n\004more\n", 14), 14);
	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_stream_open(slave, false, true, &end), 0);
	CHECK_EQ(move(q, end, block, BLOCK), 8);
	CHECK(!memcmp(block->payload, "one\ntwo\n", 8));
	CHECK_EQ(move(q, end, block, BLOCK), 0);
	CHECK_EQ(end_free(end), 0);
	close(slave);
	close(master);
	end_queue_free(q);
	scratch_block_free(block);
}

static void refuses_the_wrong_thing(void)
{
	int fds = scratch_open_fds(), pair[2];
	struct block *block = scratch_block(BLOCK);
	struct end_queue *q;
	struct end *end;

	CHECK_EQ(end_stream_open(open("/", O_RDONLY | O_DIRECTORY), false, false, &end), -EISDIR);
	CHECK(!end);
	CHECK_EQ(end_stream_open(-1, false, false, &end), -EBADF);
	CHECK_EQ(pipe(pair), 0);
	CHECK_EQ(end_stream_open(pair[0], true, false, &end), -EBADF);
	CHECK_EQ(end_stream_open(pair[1], false, false, &end), -EBADF);
	CHECK_EQ(scratch_open_fds(), fds);

	CHECK_EQ(end_queue_new(1, &q), 0);
	CHECK_EQ(end_stream_open(open("/dev/null", O_RDWR), true, false, &end), 0);
	CHECK_EQ(move(q, end, block, BLOCK), BLOCK);
	CHECK_EQ(end_sync(end), 0);
	CHECK_EQ(end_free(end), 0);
	CHECK_EQ(end_stream_open(open("/dev/full", O_RDWR), true, false, &end), 0);
	CHECK_EQ(move(q, end, block, BLOCK), -ENOSPC);
	CHECK_EQ(end_free(end), 0);
	end_queue_free(q);
	CHECK_EQ(scratch_open_fds(), fds);
	scratch_block_free(block);
}

HARNESS_MAIN({"pipe_is_read_in_full_blocks", pipe_is_read_in_full_blocks},
	{"socket_is_read_in_full_blocks", socket_is_read_in_full_blocks},
	{"pipe_is_written_whole", pipe_is_written_whole},
	{"socket_is_written_whole", socket_is_written_whole},
	{"reader_gone_is_epipe", reader_gone_is_epipe},
	{"waiting_is_cancelled", waiting_is_cancelled},
	{"fifo_whose_writer_left_ends", fifo_whose_writer_left_ends},
	{"redirected_file_keeps_its_position", redirected_file_keeps_its_position},
	{"terminal_ends_at_its_key", terminal_ends_at_its_key},
	{"refuses_the_wrong_thing", refuses_the_wrong_thing})
