/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/end.h: the seam to where bytes come from or go to: file, stream, null.
 *
 * An `end` is one open file, pipe or nothing.  An `end_queue` is one worker's I/O queue (it owns
 * the libaio context): blocks of any number of ends are submitted to it and reaped from it, so one
 * queue serves one big file or a hundred small ones.  The block says what to move:
 * owner-independent `offset`, `length` (payload bytes) and `payload`; after the reap `length` is
 * what was moved and `error` is 0 or -errno.
 *
 * Reading: a short length means end of file at offset + length (for a stream: end of stream); that
 * is no error here.  Writing: short never happens, it is an error (-EIO, -ENOSPC, ...).
 *
 * Threads: a queue belongs to one thread.  An end may be used from several queues at once, except a
 * stream, whose blocks go through one queue, in order.  Freeing an end needs all its blocks reaped.
 */
#ifndef END_END_H
#define END_END_H

#include "block/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct end;
struct end_queue;

enum end_direct {
	END_DIRECT_AUTO, /* O_DIRECT where it works and pays: block devices' file systems, files of
			    at least 1 GiB that are not in the page cache; else buffered */
	END_DIRECT_ON,   /* O_DIRECT, or -EINVAL when the file system refuses */
	END_DIRECT_OFF,  /* buffered */
};

/* ---- queue ---- */

/* `depth`: most blocks submitted and not reaped.  libaio is set up on first need. */
int end_queue_new(unsigned depth, struct end_queue **out);
void end_queue_free(struct end_queue *); /* nothing may be outstanding */

/* Never fails: an error shows in the block when it is reaped.  The block is the queue's until then.
 * May do the I/O at once (buffered files, streams, null), or begin it as late as the next end_reap.
 */
void end_submit(struct end_queue *, struct end *, struct block *);
unsigned end_outstanding(const struct end_queue *);
/* From any thread: stream I/O that waits for its peer, now or later, gives -ECANCELED. */
void end_queue_cancel(struct end_queue *);
/*
 * Blocks that are done, at most `max`.  Without `wait` it does not block beyond buffered I/O.  With
 * `wait` it blocks until one is done; 0 then means that nothing is outstanding.
 */
unsigned end_reap(struct end_queue *, struct block **done, unsigned max, bool wait);

/* ---- ends ---- */

bool end_is_stream(const struct end *); /* blocks must be submitted in order */
bool end_is_direct(const struct end *); /* O_DIRECT is in use: for reports */
/* Flushes to stable storage (fsync; nothing for null and pipes).  Blocks.  0 or -errno. */
int end_sync(struct end *);
/* Closes what the end owns.  0, or the close's -errno. */
int end_free(struct end *);

/*
 * A regular file, to read or to write.  Takes over `fd` also on error.  Offsets are absolute;
 * writes may come in any order.  `size`: expected bytes (for AUTO and preallocation), UINT64_MAX =
 * unknown.  O_DIRECT is used through a second descriptor (/proc/self/fd), the unaligned tail
 * through the first.  Writing with known size preallocates where the file system can do so without
 * writing; a full disk is then -ENOSPC here.  -EISDIR, -EINVAL (not a regular file, or
 * END_DIRECT_ON refused).
 */
int end_file_open(int fd, bool writing, uint64_t size, enum end_direct direct, struct end **out);

struct end_file_params {
	bool writing;
	uint64_t size;
	enum end_direct direct;
	/* writing: the file is new and gets its size at once; zeros are not written, and stay
	 * holes.  Nothing is preallocated then */
	bool sparse;
	/* writing: the space is taken at once, whatever the size and the file system */
	bool preallocate;
	/* writing: asked before so many bytes are written, in whose thread they are: 0, or the
	 * block's error.  NULL: they may be. */
	int (*claim)(void *ctx, uint64_t bytes);
	void *claim_ctx;
};
/* The same, with more to say about the file. */
int end_file_open_as(int fd, const struct end_file_params *, struct end **out);

/* A file to read: where the next data at `offset` or behind it begin and end, as far as the file
 * system knows of holes.  Both are UINT64_MAX when there are no more. */
void end_file_data(struct end *, uint64_t offset, uint64_t *from, uint64_t *to);
/* A new descriptor of a regular file's end, for reading, with O_DIRECT where the file system has
 * it; the caller closes it.  -EINVAL: it is none; -errno. */
int end_file_again(const struct end *);

/* A pipe, socket, terminal or character device.  Ignores offsets; keeps order.  Takes over `fd`
 * unless `borrowed` (stdin, stdout).  Fills a block wholly unless the stream ends.  The program
 * must ignore SIGPIPE.  -EISDIR; -EBADF (not open for that direction). */
int end_stream_open(int fd, bool writing, bool borrowed, struct end **out);

/* The descriptor that a stream is read from, for whoever reads it instead of a queue; -1: not open
 * to be read, or no stream. */
int end_stream_fd(const struct end *);

/*
 * An end made of calls.  Each block is given to `write` in its turn, which gives 0 or -errno; in
 * order, as a stream's.  Or with `fill` an end to read from.  `sync` and `free` may be NULL.
 */
struct end_calls {
	/* In place of `write`: an end to read from.  Fills a block in any way it likes, sets its
	 * length, and its error; blocks may be filled in any order, by several queues at once. */
	void (*fill)(void *ctx, struct block *);
	int (*write)(void *ctx, const struct block *);
	int (*sync)(void *ctx);
	int (*free)(void *ctx);
};
int end_calls_open(
	const struct end_calls *, void *ctx, struct end **out); /* the calls are not copied */

/* Reading: `size` bytes of whatever is in the block (memory to memory; nothing is copied).
 * Writing: nothing (give UINT64_MAX). */
int end_null_open(uint64_t size, struct end **out);

#endif
