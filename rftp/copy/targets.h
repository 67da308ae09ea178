/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/targets: which source of a command becomes which name in the directory that takes them.
 *
 * Each name may come from one source: of two that land on one name either would be lost, so the
 * command is refused before anything moves.
 */
#ifndef RFTP_TARGETS_H
#define RFTP_TARGETS_H

#include <stddef.h>

struct targets_entry {
	char *name;
	const char *source; /* as the user knows it; the caller keeps it */
};

struct targets {
	struct targets_entry *entries;
	size_t count, room;
};

/*
 * What a source is called in the directory that takes it.  A path that ends in "/", or in "." or
 * "..", has no name of its own: *len is 0, and what is in that directory goes right there, as rsync
 * has it.  So the same command means the same, whatever is there already.
 */
const char *targets_name(const char *path, size_t *len);

void targets_init(struct targets *);
void targets_fini(struct targets *);
/* `name` is copied.  0 or -ENOMEM. */
int targets_add(struct targets *, const char *name, size_t len, const char *source);
/* Adds what is in the local directory `source`, whose entries go right into the target.  One that
 * cannot be read adds nothing: the copy itself will say why.  0 or -ENOMEM. */
int targets_add_directory(struct targets *, const char *source);
/* Two entries of one name stand in [0] and [1] of what is given; NULL: each name is there once.
 * Sorts the entries. */
const struct targets_entry *targets_clash(struct targets *);

#endif
