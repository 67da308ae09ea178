/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/transfer.h: moves files over a link, in either direction.
 *
 * The one header that rftp and rftpd need for data.  transfer_send is the source, transfer_receive
 * the sink; each runs in the caller's thread (with its own workers) until the transfer is over.  It
 * uses the data channels and the frames of its number; up to MESSAGE_TRANSFERS_MAX of them, each
 * with another number, share the link.  The session messages before it (STORE, RETRIEVE and their
 * replies, CHANNELS) are the caller's; who has both a dialogue and a transfer opens the transfer's
 * port (session/demux) before the request that begins it is sent, or before it is answered, as no
 * frame of it may get lost.  The port is closed when the transfer ends.
 *
 * Files come from, and go to, the caller through callbacks, so names and directories stay out of
 * the middleware; middleware/tree/ has the callbacks that rftp and rftpd use for real files.
 *
 * Outcome: how much failed.  VERDICT_NONE: every file arrived; VERDICT_FILE: single files failed
 * (each was told to `done`), and the session goes on; VERDICT_TRANSFER, VERDICT_SESSION: the
 * transfer was cut short, stats.verdict says why.  ABORT was then exchanged and the data channels
 * are closed; after VERDICT_SESSION the session is of no use any more.
 */
#ifndef TRANSFER_TRANSFER_H
#define TRANSFER_TRANSFER_H

#include "base/verdict.h"
#include "end/end.h"
#include "proto/status.h"
#include "proto/transfer.h"
#include "session/link.h"
#include "transfer/bucket.h"

#include <stdatomic.h>

#define TRANSFER_WINDOW_MAX                                                                        \
	(512ull << 20) /* memory for a transfer's blocks, unless told otherwise */
#define TRANSFER_TEXT VERDICT_TEXT

/* What the engine asked of the data channels, and of the control channel. */
struct transfer_requests {
	uint64_t writes, sends, reads; /* posted; WRITE_IMM is a write */
	uint64_t signalled;            /* of these: with a completion */
	uint64_t receives;             /* posted */
	uint64_t frames;               /* on the control channel */
	uint32_t send_queue,
		receive_queue; /* the most that was outstanding at once on one channel */
};

#define TRANSFER_CURRENT_MAX 256u

struct transfer_stats {
	_Atomic uint64_t bytes;     /* source: sent; sink: verified and handed to the end */
	_Atomic uint64_t had_bytes; /* that were there, from a transfer before: not of these */
	/* of `bytes`: the sink has verified them, and written or given them on: at least so many.
	 * As of the last call of `progress`, as is `current`: the name of a file that is under way,
	 * the end of it where it is long; "": none was yet */
	uint64_t verified_bytes;
	char current[TRANSFER_CURRENT_MAX];
	uint64_t hole_bytes;    /* of `bytes`: in holes, which did not cross */
	uint64_t crossed_bytes; /* of payloads, as they crossed: fewer where they were compressed */
	_Atomic uint64_t files; /* finished well; directories are none */
	_Atomic uint64_t errors;      /* files that failed */
	_Atomic uint64_t total_bytes; /* hint, MESSAGE_UNKNOWN if not known */
	_Atomic uint64_t total_files;
	/* fixed once `block` is not 0 */
	const char *fabric, *engine;
	uint32_t channels, block, depth; /* depth: the sink's blocks */
	uint8_t notice;                  /* enum transfer_notice */
	bool imm;                        /* its notices are WRITE_IMM */
	uint8_t protect;                 /* enum message_protect */
	_Atomic bool direct;             /* O_DIRECT was used for at least one file on this side */
	uint64_t started_ns, ended_ns;
	uint64_t moved_ns; /* when it last moved, or had only its own disk or stream to wait for */
	uint64_t starved;  /* times the source had a full block and no credit */
	uint64_t early_bytes; /* of `bytes`: source: sent before their file was READY; sink: came so
			       */
	struct transfer_requests requests; /* at the end */
	/* why the transfer was cut short, on this side or on the peer's; nothing else */
	struct verdict verdict;
	bool told; /* the peer cut it short, or one file that took the others with it: `done` may
		      have been told of the reason */
};

/* Why a transfer is stopped. */
struct transfer_cancel {
	uint16_t status;
	const char *text; /* ends before TRANSFER_TEXT */
};

struct transfer_params {
	unsigned transfer; /* its number in the session: whose data channels and frames it uses */
	/* wishes; 0 = choose from file size, RTT, cores and limits.  The source offers block,
	 * channels and engine; the sink decides depth and may lower it. */
	uint8_t engine;     /* enum message_engine; 0 = credit */
	uint32_t engines;   /* bit n = enum message_engine n: what HELLO agreed on; 0 = all */
	uint8_t notice;     /* enum transfer_notice; 0 = behind */
	uint8_t protect;    /* enum message_protect; the sink refuses another one */
	uint16_t channels;  /* 0 = all of the link */
	uint32_t block;     /* bytes */
	uint32_t depth;     /* blocks */
	uint32_t max_block; /* negotiated in HELLO */
	uint32_t max_depth;
	uint64_t window_max_bytes; /* most memory for blocks; 0 = 512 MiB.  Also bounded by what the
				       host can spare (plan_share) */
	unsigned workers;          /* threads that do I/O and checksums; 0 = choose */
	unsigned squeeze; /* source: compress with this level, 1 to 9, where it pays; 0 = never */
	uint64_t rtt_ns;  /* measured; 0 = not known */
	int idle_timeout_ms;  /* nothing heard of the peer for so long: -ETIMEDOUT; 0 = 60,000.
				 Keep-alives are heard, but move nothing: without a move it ends
				 after ten times as long, earlier when blocks that were sent are
				 missing.  A stream that waits for its data is not still */
	int stall_timeout_ms; /* without a move it ends after that, where this is sooner; 0 = none
			       */
	bool patient;         /* source: the sink may wait for a stream of its own, and be still
				 for as long as it likes */
	unsigned open_files;  /* most of them at once; 0 = choose */
	unsigned jobs;        /* threads that sync and rename, or read again, at most; 0 = choose */
	/*
	 * The request said EARLY: the source tells of its first file, and ends it, without waiting
	 * for answers.
	 *
	 * Of a get, engine, channels, block and depth are what the sink has memory for: its ACCEPT
	 * and credits follow the request, and if OFFER is of that, blocks follow FILE, of files
	 * below early_resume bytes.
	 *
	 * Of a put's source besides (transfer/plan has plan_early): bytes of blocks that
	 * may leave so early, if it is a while after the request; and how it learns of the answer
	 * to that, from the transfer's thread: 1: it is there; 0: not yet; -EREMOTEIO: refused, and
	 * the transfer ends; another -errno: the session is lost.  NULL: it is answered already.
	 */
	bool early;
	uint64_t early_bytes, early_after_ns, early_resume;
	int (*answered)(void *ctx);
	int cancel_fd; /* readable = stop: ABORT, -ECANCELED; -1 = none */
	/* what the peer is then told; NULL = STATUS_CANCELLED.  Set before cancel_fd is readable */
	_Atomic(const struct transfer_cancel *) cancel;
	struct bucket *bucket; /* how fast it may go; NULL: as fast as it can.  Whoever sets it
				  keeps window and blocks small beside it (bucket_max_window) */
	/* with a bucket that has turns: the peer is told of this side's place in line for the next
	 * one, in a line of this name; NULL: it is not */
	const char *queue_class;
	/* The peer's transfer waits for its next turn, or goes on (position 0): from the transfer's
	 * thread.  NULL: no peer may say so. */
	void (*queued)(void *ctx, const struct message_queued *);
	/* Called from the transfer's thread about every 100 ms and at the end; may be NULL. */
	void (*progress)(void *ctx, const struct transfer_stats *);
	/* It was cut short, and has given back memory, files and threads but its own, which still
	 * waits for the peer to answer: from that thread, once; may be NULL. */
	void (*released)(void *ctx);
	void *progress_ctx; /* of all four */
};

/* ---- source ---- */

struct transfer_item {
	struct transfer_file file; /* all but its number, `file.file`, which the transfer gives.
				      What it points to must live until `done`. */
	struct end *end; /* open for reading; the transfer frees it.  NULL for a directory */
	bool closed;  /* a file of which only the name is known: `open` or `read` says the rest */
	int error;    /* not 0: could not be opened: counted and told to `done`, not sent */
	void *cookie; /* the caller's */
	/* set for `done`: bytes and blocks of it that were sent, or that the sink had; blocks of a
	 * feed that were dropped
	 */
	uint64_t sent_bytes, sent_blocks, dropped_blocks;
	bool at_sink; /* set for `done`, too: that is where it failed */
};

/*
 * Many live streams at once.  One thread reads them all as their data come; a block is sent when it
 * is full, or when its first byte has waited for flush_ms.  Without room at the sink all are slowed
 * alike.  Items are streams: ends of end_stream_open, not borrowed.
 */
struct transfer_feed {
	unsigned streams;  /* most of them, 1..TRANSFER_FEED_MAX */
	unsigned flush_ms; /* 0 = 200 */
	bool drop_oldest;  /* nobody is slowed: blocks are dropped at the source, the oldest of
			      whoever has most */
	int stop_fd; /* readable = all streams end where they are, and the transfer ends well; -1 =
			none */
};
#define TRANSFER_FEED_MAX 255u

/* Small files that are read one after another, in one thread, into the memory of a block. */
struct transfer_reading {
	void *state;   /* the callbacks': what one file leaves for the next; NULL at first */
	uint8_t *to;   /* where the bytes go, */
	uint32_t room; /* so many at most */
	uint32_t most; /* a file that is larger is not small */
};

/* What a sink has to have room for. */
struct transfer_room {
	uint64_t bytes; /* without holes; MESSAGE_UNKNOWN: nobody knows */
	uint64_t files; /* likewise; a sink is told */
	bool net;       /* what goes when files are replaced is taken off */
	/* the names beneath the destination that everything is in (message_next_path); none: it may
	 * be anywhere in it */
	struct wire_bytes roots;
};

struct transfer_source {
	/* The next file: 1, 0 (no more), -errno (the transfer is aborted).  Called as files are
	 * started.  The item's `file.file` is the number that it will have if its name can cross.
	 */
	int (*next)(void *ctx, struct transfer_item *);
	/* For those that `next` leaves closed; all three or none.  `open`: sets attributes and end,
	 * or gives -errno.  `read`: sets attributes and gives the bytes of a file that is small,
	 * all of them, of a file that is what it was before, which is closed again; -EFBIG: it is
	 * larger than `most`, and open now; -ENOBUFS: there is not room for it, and it is as it
	 * was; or -errno (-ESTALE: it changed).  Runs in a worker thread, for several readings at
	 * once.  `read_end`: no more of this reading. */
	int (*open)(void *ctx, struct transfer_item *);
	int64_t (*read)(void *ctx, struct transfer_reading *, struct transfer_item *);
	void (*read_end)(void *ctx, struct transfer_reading *);
	/* All of it was read: is the file still what it was?  0 or -errno (-ESTALE: it changed;
	 * -EAGAIN: something about it did, and only its bytes can say whether these have: they are
	 * read again).  May be NULL.  Not for those that `read` has read. */
	int (*check)(void *ctx, const struct transfer_item *);
	/* Exactly once for each item of `next`: status 0, or what failed and where (text may be
	 * "").  A text with status 0 is what could not be kept. */
	void (*done)(void *ctx, const struct transfer_item *, uint16_t status, const char *text);
	void *ctx;
	const struct transfer_feed *feed; /* NULL: files one after the other */
	bool reread; /* a regular file that was sent is read from the disk once more, and compared
		      */
	uint64_t total_files, total_bytes; /* hints, MESSAGE_UNKNOWN */
	uint64_t largest_bytes;            /* of a file, for choosing the block; MESSAGE_UNKNOWN */
	struct transfer_room room;         /* that all of it needs; zeros: nothing is said of it */
};

enum verdict_scope transfer_send(struct link *, const struct transfer_params *,
	const struct transfer_source *, struct transfer_stats *);

/* ---- sink ---- */

/* The text of a file that the source could not read. */
#define TRANSFER_AT_SOURCE "at the source"

/* One name of a bundle: a small file, which is all there, or a link. */
struct transfer_arrival {
	struct transfer_file file; /* name and target are terminated */
	const uint8_t *data;       /* file.size bytes */
	void *cookie;
	/* the outcome */
	uint16_t status;
	char *text; /* malloc'd, or NULL: as commit's */
};

/* Blocks of a file: which, and what they contain. */
struct transfer_note {
	uint64_t index, leaf; /* offset / block size; checksum of the payload (block/digest.h) */
};
struct transfer_notes {
	struct transfer_note *items;
	size_t count, room;
	atomic_bool stop; /* whoever collects them ends early */
};
/* 0 or -ENOMEM. */
int transfer_notes_add(struct transfer_notes *, uint64_t index, uint64_t leaf);

/*
 * Files that outlive a transfer which is cut short, so that another one goes on with them.  Calls
 * for one file never run at the same time.
 */
struct transfer_resume {
	/* Whether this file does; it was just opened.  In the transfer's thread. */
	bool (*wanted)(void *ctx, void *cookie);
	/* Adds the blocks that are there whole, ascending: each was read and is what an earlier
	 * transfer verified.  In a worker thread, before any block comes; may take as long as
	 * reading the file, and so gives back now and then: true: there is more, it is to be called
	 * again.  Ends early when found->stop is set. */
	bool (*recall)(void *ctx, void *cookie, uint32_t block_bytes, struct transfer_notes *found);
	/* Blocks that are verified and written, in any order.  In a worker thread. */
	void (*note)(void *ctx, void *cookie, const struct transfer_note *, size_t count);
	/* In place of `discard`: it failed, and what was noted stays for the next transfer. */
	void (*suspend)(void *ctx, void *cookie);
};

struct transfer_sink {
	/* Before the first file, and before anything crosses that was not sent ahead: whether there
	 * is room.  0, or -errno with `text`: the transfer is refused.  In the transfer's thread;
	 * may take some seconds.  NULL: nobody asks. */
	int (*room)(void *ctx, const struct transfer_room *, char text[512]);
	/* A file is offered; what it points to lives until `done`, each string terminated by a
	 * NUL.  0: *end (open for writing, the transfer frees it; NULL for a
	 * directory) and *cookie are set; -errno: refused, with a text of at most 511 bytes in
	 * `text` (may stay "").  A DIRECTORY_END is offered when what came before it has ended; a
	 * `text` of it is a note as commit's.  Runs in the transfer's thread. */
	int (*open)(void *ctx, const struct transfer_file *, struct end **end, void **cookie,
		char text[512]);
	/* Every range landed, digests agree, the end is synced and freed: make it real (rename,
	 * fsync of the directory).  0, with a note in `text` of what could not be kept ("": all
	 * was), or -errno, with what is to be told instead of its usual text.  Runs in a worker
	 * thread, for several files at once. */
	int (*commit)(void *ctx, void *cookie, const struct transfer_file *, uint64_t size,
		char text[512]);
	/* It failed: remove what was begun.  Same threads as commit.  The end is freed already. */
	void (*discard)(void *ctx, void *cookie);
	/* Exactly once for each file offered, after commit or discard.  Runs in the transfer's
	 * thread. */
	void (*done)(void *ctx, const struct transfer_file *, uint16_t status, const char *text);
	/*
	 * Small files that come together; both NULL: they are not wanted, and come as others do.
	 * Directories of a bundle are offered to `open` as ever.  `admit`: a file or link is
	 * offered; 0, or -errno with `text` as of `open`.  Runs in the transfer's thread.  `land`:
	 * makes those real whose `status` is 0, all that `commit` does included, and sets it for
	 * those that fail.  It holds at most `open_max` descriptors, or two.  Runs in a worker
	 * thread, for several bundles at once.
	 */
	int (*admit)(void *ctx, const struct transfer_file *, void **cookie, char text[512]);
	void (*land)(
		void *ctx, struct transfer_arrival *const *, unsigned count, unsigned open_max);
	/* One file that is all there (transfer/whole), in place of open and commit: 0, with a note
	 * in `text` as of `commit`, or -errno with `text` as of `open` or `commit`.  Blocks.
	 * NULL: files do not come so. */
	int (*whole)(void *ctx, const struct transfer_file *, const uint8_t *data, char text[512]);
	void *ctx;
	/* A regular file is read back from the disk before `commit`, and compared. */
	bool readback;
	/* Files are not flushed before `commit`. */
	bool unsynced;
	/* All files that will be there are: what was not flushed is, before the source is told that
	 * the transfer is over.  0, or -errno: it is cut short.  In a worker thread; NULL: none is.
	 */
	int (*flush)(void *ctx);
	/* The transfer has come to its end and was not cut short, which the source is told next:
	 * what was kept for going on goes.  In the transfer's thread; may be NULL. */
	void (*over)(void *ctx);
	const struct transfer_resume *resume; /* NULL: no file does */
	/* `discard` keeps what was written: when the transfer is cut short, what has landed is
	 * written first.  Ends never wait for a peer of theirs. */
	bool keeps;
};

enum verdict_scope transfer_receive(struct link *, const struct transfer_params *,
	const struct transfer_sink *, struct transfer_stats *);

/* ---- both ---- */

/* The outcome of either as an -errno, for those who have errors of other kinds, too: 0; -EREMOTEIO
 * if single files failed, and only then; else that of the verdict's status. */
int transfer_error(enum verdict_scope, const struct transfer_stats *);

#endif
