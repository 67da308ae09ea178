/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/plan: block size, window, channels and workers, from what is known when a transfer
 * starts.  Pure.
 */
#ifndef TRANSFER_PLAN_H
#define TRANSFER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct plan_facts {
	/* wishes, 0 = choose */
	uint32_t block, depth;
	uint16_t channels;
	unsigned workers;
	/* limits */
	uint32_t max_block, max_depth;
	uint16_t open_channels;
	uint64_t window_max_bytes;
	/* facts */
	uint64_t largest_bytes; /* of a file; UINT64_MAX = not known */
	uint64_t total_bytes;   /* of all; UINT64_MAX = not known */
	unsigned
		streams; /* of a feed: read at once, each filling a block of its own; 0 = no feed */
	uint64_t rtt_ns; /* 0 = not known */
	uint64_t early_bytes; /* that may leave before the sink is ready: plan_early */
	unsigned cpus;
	bool delivered; /* fabric_caps.write_delivered */
};

struct plan {
	uint32_t block;         /* payload bytes */
	uint32_t depth;         /* blocks at the sink: the window */
	uint32_t source_blocks; /* blocks at the source; the sink may give it fewer slots:
				   plan_source_blocks */
	uint16_t channels;
	unsigned workers;
};

void plan_make(const struct plan_facts *, struct plan *out);

/* Blocks at the source for a window of `depth` blocks of `block` bytes. */
uint32_t plan_source_blocks(const struct plan_facts *, uint32_t block, uint32_t depth);

/* Early data: whether a source that asks another side to take files tells of the first one, and
 * sends blocks of it, before it is answered (transfer/source_early.c).  No way is too short for it:
 * an answer that nobody waits for also saves both sides a wait for a CPU, within one host a third
 * of the time that 128 KiB take (bench-early, at 0 ms). */
enum plan_early_mode {
	PLAN_EARLY_AUTO,
	PLAN_EARLY_ALWAYS,  /* wherever it can be, whether it pays or not */
	PLAN_EARLY_NEVER,   /* nothing leaves before the answer */
	PLAN_EARLY_TIMEOUT, /* what is told leaves at once, blocks once two time-outs have passed
			       without an answer */
};
struct plan_early_facts {
	enum plan_early_mode mode;
	uint32_t area_bytes; /* that the sink has named for it; 0 = none */
	bool feed;
	bool several;          /* files */
	bool stream;           /* its size is not known, and it can be read once */
	uint64_t bytes;        /* of the one file */
	uint64_t resume_bytes; /* of so large a one the sink may have a part; 0 = never */
	unsigned resting;      /* transfers to go since a refusal, which PLAN_EARLY_REST counts */
	bool in_line;          /* the last one waited for admission */
	uint64_t rtt_ns;       /* 0 = not known */
};
#define PLAN_EARLY_REST 8u
struct plan_early {
	bool ahead;        /* OFFER and FILE leave with the request */
	uint64_t bytes;    /* of blocks that may leave then; 0 = none */
	uint64_t after_ns; /* but so much later */
	const char *why;   /* for people: what decided */
};
struct plan_early plan_early(const struct plan_early_facts *);
/* The same of a sink that asks another side for files: whether it has memory for a few blocks
 * before it asks, and says so with it.  Of the facts it looks at mode, several, stream, resting
 * and in_line; `bytes` are those of that memory. */
struct plan_early plan_early_get(const struct plan_early_facts *);
#define PLAN_EARLY_BLOCK (512u << 10)
#define PLAN_EARLY_DEPTH 8u

/* Bytes that the blocks of one side may have, of `wanted`, where the host can spare so many: a part
 * of those, as others need some, and the next transfer; but always what a short link needs. */
uint64_t plan_share(uint64_t wanted, uint64_t spare);

/* I/O threads of one side: the wish, or what suits the CPUs. */
unsigned plan_workers(unsigned wish, unsigned cpus);

/* Files of a transfer that are open at once: the wish, or a share of the descriptors that are left.
 */
unsigned plan_open_files(unsigned wish, uint64_t free_descriptors);

/* Whether a transfer's thread should do buffered I/O in place, rather than hand it to workers.
 * `posts_bytes`: bytes of a block that it posts to a device (fabric_caps.is_device), with
 * completions that say delivered or not; 0: it does not. */
bool plan_in_place(unsigned wish, unsigned cpus, uint32_t posts_bytes, bool delivered);

#endif
