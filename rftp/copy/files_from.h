/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/files_from: the names that --files-from lists, of a directory; and a copy of these
 * alone.
 */
#ifndef RFTP_FILES_FROM_H
#define RFTP_FILES_FROM_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"

/* Reads the list that the setting names, sorted, into a zeroed selection.  Without `recursive` of
 * the settings, a name with a '/' behind is a directory itself, without what is in it.  0 or
 * -errno, reported. */
int files_from_read(struct client *, struct selection *);

/* Names of a listing that are neither in the selection, nor beneath, nor on the way to one of it,
 * leave the list; of what is on the way only that part belongs to it.  `source`: the listing is of
 * what is copied. */
void files_from_restrict(struct compare_list *, const struct selection *, bool source);

#endif
