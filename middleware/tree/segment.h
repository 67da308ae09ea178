/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/segment: one directory of numbered segments, "00000001.seg" and on: which number comes next,
 * and how a segment begins, grows by whole packets, and gets its name.
 *
 * Knows no devices, no clock and no threads: tree/segments sees to those.
 */
#ifndef TREE_SEGMENT_H
#define TREE_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

struct landing;
struct space_share;

struct segment_dir {
	int fd;                    /* locked (flock); -1: none */
	uint64_t number;           /* of the last segment */
	struct space_share *space; /* as of struct segments_params; set before it is opened */
};

/* Makes the directory beneath `top` (beneath.h) if it is not there, locks it, and finds the highest
 * number.  -EBUSY: somebody else has it locked, which `text` says. */
int segment_dir_open(struct segment_dir *, int top, const char *name, char text[512]);
void segment_dir_close(struct segment_dir *); /* and the lock goes */

/* Begins the next one, under its hidden name. */
int segment_open(struct segment_dir *, struct landing **out);
/* Nothing is in it: the next one has its number. */
void segment_drop(struct segment_dir *, struct landing *);
/* Appends data behind `bytes`: all of it, or nothing.  `device`: for the log. */
int segment_append(
	struct landing *, uint64_t bytes, const void *data, size_t length, const char *device);
/* Gives it its name, on stable storage.  Frees it.  As landing_commit. */
int segment_close(struct landing *);

#endif
