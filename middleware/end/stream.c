/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/stream.c: a pipe, socket, terminal or character device as an end; a regular file too, where
 * the shell made it stdin or stdout.
 *
 * Owns how to wait for the other side without being caught there: it waits in poll together with
 * the queue's cancel descriptor, and no read or write after that may block.  A borrowed descriptor
 * shares its flags with other processes (a terminal with the shell), so O_NONBLOCK is never set on
 * it: a pipe to write is opened once more, a socket has MSG_DONTWAIT, and whatever is left is
 * written in pieces that fit when poll says so.  A read takes what poll announced, so a stream must
 * have no other reader.  A write whose reader is gone is -EPIPE; the program must ignore SIGPIPE.
 */
#include "end/end_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM_PIPE_BYTES (1 << 20) /* of a pipe's buffer, where the limit for users allows it */

struct end_stream {
	struct end end; /* first */
	int fd;         /* the caller's */
	int io_fd;      /* what is read or written: `fd`, or the same pipe opened once more */
	bool writing, borrowed;
	bool socket;
	bool disk;     /* a regular file or block device: never waits, can be synced */
	bool nonblock; /* io_fd is */
	bool ended;
};

static struct end_stream *stream_of(struct end *end)
{
	return (struct end_stream *)end;
}

/* Waits until the stream can move: 0; -ECANCELED once cancelled; -errno. */
static int stream_wait(const struct end_stream *s, int cancel_fd)
{
	struct pollfd fds[2] = {
		{.fd = cancel_fd, .events = POLLIN},
		{.fd = s->io_fd, .events = s->writing ? POLLOUT : POLLIN},
	};

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	if (fds[0].revents)
		return -ECANCELED;
	return fds[1].revents & POLLNVAL ? -EBADF
					 : 0; /* hang-ups show in what is read or written */
}

static ssize_t stream_move_once(const struct end_stream *s, uint8_t *data, size_t bytes)
{
	int flags = s->nonblock ? 0 : MSG_DONTWAIT;

	if (!s->writing)
		return s->socket ? recv(s->io_fd, data, bytes, flags) : read(s->io_fd, data, bytes);
	if (s->socket)
		return send(s->io_fd, data, bytes, flags | MSG_NOSIGNAL);
	/* poll promises room for this much in a pipe, not for more */
	if (!s->nonblock && !s->disk && bytes > PIPE_BUF)
		bytes = PIPE_BUF;
	return write(s->io_fd, data, bytes);
}

static int stream_start(struct end *end, struct block *block, struct iocb *iocb, int cancel_fd)
{
	struct end_stream *s = stream_of(end);
	uint32_t moved = 0;
	int err = 0;

	(void)iocb;
	while (moved < block->length && !s->ended) {
		ssize_t n;

		err = stream_wait(s, cancel_fd);
		if (err)
			break;
		n = stream_move_once(s, block->payload + moved, block->length - moved);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0) {
			err = -errno;
			break;
		}
		if (n == 0 && s->writing) {
			err = -EIO;
			break;
		}
		/* remembered: a terminal would go on after its end-of-file key */
		s->ended = n == 0;
		moved += (uint32_t)n;
	}
	block->length = moved;
	block->error = err;
	return 0;
}

static int stream_sync(struct end *end)
{
	const struct end_stream *s = stream_of(end);
	int n;

	if (!s->disk)
		return 0;
	do
		n = fsync(s->fd);
	while (n && errno == EINTR);
	return n ? -errno : 0;
}

static int stream_free(struct end *end)
{
	struct end_stream *s = stream_of(end);
	int err = 0;

	if (s->io_fd != s->fd)
		close(s->io_fd);
	if (!s->borrowed && close(s->fd) && errno != EINTR)
		err = -errno;
	free(s);
	return err;
}

static const struct end_ops stream_ops = {
	.start = stream_start, .sync = stream_sync, .free = stream_free, .is_stream = true};

int end_stream_fd(const struct end *end)
{
	const struct end_stream *s = (const struct end_stream *)end;

	return end->ops == &stream_ops && !s->writing ? s->io_fd : -1;
}

/* A larger buffer, and to write an open file of our own on the same pipe, for O_NONBLOCK. */
static void stream_prepare_pipe(struct end_stream *s)
{
	char path[32];
	int fd, size;

	size = fcntl(s->fd, F_GETPIPE_SZ);
	if (size >= 0 && size < STREAM_PIPE_BYTES)
		(void)fcntl(s->fd, F_SETPIPE_SZ, STREAM_PIPE_BYTES);
	/* reading needs none: what poll announced is there; and poll on a FIFO that is opened after
	 * its last writer left would never see the end */
	if (s->nonblock || !s->writing)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return; /* no /proc, or not ours: pieces of PIPE_BUF */
	s->io_fd = fd;
	s->nonblock = true;
}

int end_stream_open(int fd, bool writing, bool borrowed, struct end **out)
{
	struct end_stream *s;
	struct stat st;
	int flags, err;

	*out = NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		if (!borrowed)
			close(fd);
		return -ENOMEM;
	}
	s->end.ops = &stream_ops;
	s->fd = s->io_fd = fd;
	s->writing = writing;
	s->borrowed = borrowed;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st)) {
		err = -errno;
		goto err_free;
	}
	err = S_ISDIR(st.st_mode) ? -EISDIR : 0;
	if (!err && (flags & O_ACCMODE) == (writing ? O_RDONLY : O_WRONLY))
		err = -EBADF;
	if (err)
		goto err_free;
	s->nonblock = flags & O_NONBLOCK;
	s->socket = S_ISSOCK(st.st_mode);
	s->disk = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	if (S_ISFIFO(st.st_mode))
		stream_prepare_pipe(s);
	*out = &s->end;
	return 0;

err_free:
	(void)stream_free(&s->end);
	return err;
}
