/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/space: how much lies beneath a directory, for file systems that do not count it: measured
 * now and then, and kept in between by whoever changes something there; and how much of it a
 * session may fill.
 *
 * Bytes are those that files take on the disk, so holes are none; of a file with several names each
 * has its part.  Files are names, directories and links, too, but for the hidden ones of what
 * arrives or was left behind (their bytes count).
 *
 * What is to arrive is claimed first.  Any thread may call anything here; only space_measure
 * blocks.  A share of NULL counts nothing and allows everything.
 */
#ifndef TREE_SPACE_H
#define TREE_SPACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SPACE_NO_MAX UINT64_MAX

struct space {
	pthread_mutex_t lock;
	bool known;            /* it has been measured */
	uint64_t bytes, files; /* that are there */
	uint64_t claimed_bytes, claimed_files;
	/* while it is measured: what came and went, which the measuring may have seen or not */
	uint64_t came_bytes, went_bytes, came_files, went_files;
};

struct space_share {
	_Atomic(struct space *) space;         /* NULL: nobody counts (yet) */
	_Atomic uint64_t max_bytes, max_files; /* of all that is there, whoever put it there */
};

/* What bears a name: nothing, where both are 0. */
struct space_item {
	uint64_t bytes, files;
};

void space_init(struct space *);
void space_fini(struct space *);

/* 0; -EDQUOT: not so much is left (of what is not known yet nothing is refused). */
int space_claim(struct space_share *, uint64_t bytes, uint64_t files);
/* It does not come. */
void space_unclaim(struct space_share *, uint64_t bytes, uint64_t files);
/* So it is there now, and that was there before; what was claimed for it is to be unclaimed. */
void space_change(
	struct space_share *, const struct space_item *before, const struct space_item *now);
/* How much of that is left; SPACE_NO_MAX: nothing limits it. */
void space_left(struct space_share *, uint64_t *bytes, uint64_t *files);
/* For people: "quota: 1.5 GiB of 10.0 GiB are left" or the like. */
void space_say(struct space_share *, char *text, unsigned size);
#define SPACE_TEXT_BYTES 32u
void space_say_bytes(uint64_t bytes, char out[SPACE_TEXT_BYTES]); /* "1.5 GiB" */

/* What a name in an open directory, or a descriptor, stands for. */
void space_look(struct space_share *, int dir, const char *name, struct space_item *);
void space_look_fd(struct space_share *, int fd, struct space_item *);

/* Measures what lies beneath a directory: takes as long as it takes, and ends early once `stop` is
 * set.  What cannot be read counts as nothing.  0, -ECANCELED or -ENOMEM: all is as it was. */
int space_measure(struct space *, int top, const atomic_bool *stop);

/* What something takes on the disk. */
uint64_t space_disk_bytes(const struct stat *);
/* The part of that which is one name's; a directory's own is the file system's affair: 0. */
uint64_t space_name_bytes(const struct stat *);

#endif
