/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/segments: where the devices of a feed go: a directory for each, its stream in segments.
 *
 * A segment is a file of whole packets, in their order, "00000001.seg" and on.  It has a hidden
 * temporary name (tree/landing) until it is complete and on stable storage.  It is closed before it
 * would be larger than segment_bytes, and once it is older than segment_ns, whether or not more
 * comes; fsync and rename are a thread's of this module, so that those of one device hold no other
 * up.  What was written before a failure is kept, as a last segment.
 *
 * A device's directory is locked (flock) while it is written to: one feed at a time.
 */
#ifndef TREE_SEGMENTS_H
#define TREE_SEGMENTS_H

#include "tree/outcome.h"

struct segments;

struct segments_params {
	int top;          /* beneath.h; not owned */
	const char *path; /* the directory beneath it that devices' directories are in; made if
			     missing */
	uint64_t segment_bytes, segment_ns; /* 0 = no limit */
	struct space_share *space;          /* as of struct incoming_params */
	/* Exactly once for each device.  Runs in the transfer's thread.  May be NULL. */
	void (*done)(void *ctx, const struct outcome *);
	void *ctx;
};

/* 0 or -errno: what is wrong with the path. */
int segments_new(const struct segments_params *, struct segments **out);
/* Waits until every segment has its name.  After the transfer.  Takes NULL. */
void segments_free(struct segments *);
const struct transfer_sink *segments_sink(struct segments *);

#endif
