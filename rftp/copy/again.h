/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/again: the list that --failures writes and --retry-from reads: what of a copy failed.
 *
 * A line is a name beneath the destination; or, with '/' or "./" in front, which no such name has,
 * a source as it was given: what it is called there is not known, as of a pattern that matches
 * nothing, or it has no name of its own there, as of one file that gets the destination's.
 */
#ifndef RFTP_AGAIN_H
#define RFTP_AGAIN_H

#include "rftp/ui/text.h"
#include "tree/filter.h"

struct again {               /* zeroed: nothing was read, and all is copied */
	struct text sources; /* as lines, each ended by NUL: to be copied whole */
	bool names;          /* there are names, too, which rules say */
};

void again_fini(struct again *);
/* Reads a list: adds rules by which of names only those in it are copied.  0 or -errno; `why` then
 * says it. */
int again_read(struct again *, const char *path, struct filter *, char *why, size_t size);
/* Whether a source is to be copied whole, without the rules of the names. */
bool again_has(const struct again *, const char *source);
/* Whether only sources are in it, so that no others are copied. */
bool again_is_sources(const struct again *);
/* The line of a source. */
void again_source(struct text *, const char *source);

#endif
