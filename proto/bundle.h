/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/bundle: FILES and RESULTS: many small files that cross together.
 *
 * A bundle takes one number of the transfer's files.  FILES announces what is in it; the bytes of
 * its files follow each other, in the same order, in one block of that number (none, if there are
 * no bytes); RESULTS says how all of it ended:
 *
 *     S FILES, S block      in any order: they take different ways
 *     K RESULTS             one or more, the last one with more = 0
 *
 * Both are written and read entry by entry, as LIST replies are: begin, entries while they return 0
 * (-EMSGSIZE: this frame is full, nothing was added), then end, which gives the length of the data.
 * Get: the head, `count` entries, then wire_finish.
 */
#ifndef PROTO_BUNDLE_H
#define PROTO_BUNDLE_H

#include "proto/transfer.h"

#define BUNDLE_FILES_MAX 256u /* entries of a bundle */

struct bundle_head {
	uint32_t file;  /* its number */
	uint16_t count; /* 1..BUNDLE_FILES_MAX */
};

/* One name: a regular file, with all its bytes, or what has none, but for hard links. */
struct bundle_entry {
	struct wire_bytes data;    /* of the FILE that announces it */
	struct transfer_file file; /* what that says; `file`: its place in the bundle, from 1 */
	uint16_t status;           /* not 0: the source could not read it, and its size is 0 */
	uint64_t digest;           /* root, as FILE_END's; 0 with a status */
};

struct bundle_writer {
	struct wire wire;
	uint16_t count;
};
void bundle_begin(struct bundle_writer *, void *, size_t);
/* `data` is the FILE as it stands in memory; `file` is not looked at. */
int bundle_add(struct bundle_writer *, const struct bundle_entry *);
ssize_t bundle_end(struct bundle_writer *, uint32_t file);
int bundle_get_head(struct bundle_head *, struct wire *, const void *, size_t);
/* `place`: that the entry must have, from 1. */
int bundle_get_entry(struct bundle_entry *, struct wire *, unsigned place);

/* RESULTS: of those that are not named all is well. */
struct bundle_results_head {
	uint32_t file;
	uint8_t more;    /* 1: another one of this bundle follows */
	uint16_t count;  /* 0..BUNDLE_FILES_MAX; not 0 with `more` */
	uint64_t digest; /* XXH3-64 of the roots of those that ended with status 0, 64 bits each, in
			    their order; with `more` 0 */
};
struct bundle_result {
	uint16_t place;         /* from 1, ascending, over all RESULTS of a bundle */
	uint16_t status;        /* 0: it is there, and `text`, which is not empty then, says what of
				   it could not be kept */
	struct wire_bytes text; /* 0..512 bytes */
};
void bundle_results_begin(struct bundle_writer *, void *, size_t);
int bundle_results_add(struct bundle_writer *, const struct bundle_result *);
ssize_t bundle_results_end(struct bundle_writer *, uint32_t file, bool more, uint64_t digest);
int bundle_get_results_head(struct bundle_results_head *, struct wire *, const void *, size_t);
/* `after`: the place of the one before it, at first 0. */
int bundle_get_result(struct bundle_result *, struct wire *, unsigned after);

#endif
