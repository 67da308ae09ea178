/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_record: the records of a journal, as rftp-journal(5) says them.  Pure.
 *
 * A journal is a row of records, each with a checksum of its own.  What comes behind the first one
 * that is not whole does not count: the program may have been killed, or the host stopped, while it
 * was written.
 */
#ifndef TREE_JOURNAL_RECORD_H
#define TREE_JOURNAL_RECORD_H

#include "proto/wire.h"

#define JOURNAL_VERSION 1u
#define JOURNAL_NAME_MAX 255u
#define JOURNAL_BLOCKS_MAX 4096u      /* in one record */
#define JOURNAL_RECORD_HEADER 8u      /* length 32, type 16, 16 zeros */
#define JOURNAL_RECORD_MORE (8u + 8u) /* what a record has beside its data: header and checksum */
#define JOURNAL_DATA_MAX (16u * JOURNAL_BLOCKS_MAX)
#define JOURNAL_RECORD_MAX (JOURNAL_DATA_MAX + JOURNAL_RECORD_MORE)

enum journal_type {
	JOURNAL_FILE = 1,   /* what the file is; those that came before count no more */
	JOURNAL_BLOCKS = 2, /* blocks of it that are verified, and written to the partial file */
	JOURNAL_TREE = 3,   /* no file, but a transfer of many (tree/tree_mark) */
};

struct journal_file {
	uint16_t version;
	uint32_t block; /* bytes of a block */
	/* of the source: another one in any of these is another file */
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t identity;
	struct wire_bytes name; /* that the file will have; 1..JOURNAL_NAME_MAX bytes */
};

struct journal_block {
	uint64_t index, leaf; /* offset / block, and XXH3-64 of what is in it */
};

struct journal_record {
	uint16_t type; /* enum journal_type */
	struct journal_file file;
	unsigned count;         /* JOURNAL_BLOCKS */
	const uint8_t *blocks;  /* in the buffer: journal_record_block */
	struct wire_bytes name; /* JOURNAL_TREE: at most JOURNAL_NAME_MAX bytes */
};

/* Bytes of the record that a buffer begins with; 0: it holds none that is whole and right,
 * -EBADMSG: its checksum is right, and it is none of ours. */
ssize_t journal_record_get(struct journal_record *, const void *, size_t);
struct journal_block journal_record_block(const struct journal_record *, unsigned i);

/* Bytes that were written, or -errno: -EMSGSIZE, -EBADMSG. */
ssize_t journal_record_put_file(const struct journal_file *, void *, size_t);
ssize_t journal_record_put_blocks(const struct journal_block *, unsigned count, void *, size_t);
ssize_t journal_record_put_tree(struct wire_bytes name, void *, size_t);

#endif
