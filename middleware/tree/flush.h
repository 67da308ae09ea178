/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/flush: the bytes of many files onto stable storage, at once.
 *
 * There are two ways: fsync of each, all of whose writes were begun before, and syncfs, one flush
 * of the whole file system.  On a file system of our own syncfs is by far the cheaper one, since a
 * journal commits and a device empties its cache once; but it also waits for whatever others have
 * written there.  So both are measured, a file, and the cheaper one is taken; the other one is
 * tried again now and then, since what others write changes.
 *
 * syncfs tells of errors since Linux 5.8, of any file: where it does, each file is asked.
 */
#ifndef TREE_FLUSH_H
#define TREE_FLUSH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What kind of file system a directory is on. */
struct flush_place {
	dev_t dev;
	bool memory; /* there is nothing to flush */
	bool device; /* of a block device of this host: syncfs may be used */
};

/* What was learned, for all threads; zeros at first. */
struct flush_costs {
	atomic_uint_least64_t all_ns, each_ns; /* a file, by syncfs and by fsync; 0: not known */
	atomic_uint turn;
};

enum flush_way {
	FLUSH_EACH,
	FLUSH_ALL,
};

/* Not knowing is neither. */
void flush_look(int dir, struct flush_place *);
/* How `count` files of one place are to be flushed. */
enum flush_way flush_choose(struct flush_costs *, const struct flush_place *, unsigned count);
/* Flushes files that were opened before they were written to, all of one place.  Blocks. errors[i]:
 * 0 or -errno. */
void flush_files(struct flush_costs *, const struct flush_place *, const int *fds, int *errors,
	unsigned count);

#endif
