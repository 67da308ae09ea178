/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_reader: the records of a journal's file, one after the other.
 *
 * Many of them are small: what is read from the file holds as many as fit.
 */
#ifndef TREE_JOURNAL_READER_H
#define TREE_JOURNAL_READER_H

#include "tree/journal_record.h"

#include <sys/types.h>

struct journal_reader {
	int fd;
	off_t at; /* of the next record: all before is whole and right */
	uint8_t *buffer;
	size_t from, to; /* what of the buffer is not given yet: the file from `at` on */
};

/* From the file's beginning; it stays the caller's.  0 or -ENOMEM.  journal_reader_fini afterwards,
 * also on error. */
int journal_reader_init(struct journal_reader *, int fd);
void journal_reader_fini(struct journal_reader *);
/* 1; 0: the file ends with the last record; -EBADMSG: what follows is none that is whole and right,
 * -errno.  The record's bytes are good until the next call. */
int journal_reader_next(struct journal_reader *, struct journal_record *);

#endif
