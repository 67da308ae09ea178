/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal: what is verified of a file that arrives, beside its partial file, so that another
 * transfer of the same file goes on from there.
 *
 * Both are hidden beside the real name, named after it: ".rftp-" + 16 hex digits of XXH3-64 of the
 * name + ".journal" and ".partial".  Who writes holds a lock (flock) on the journal; so two never
 * share one, and one without a lock was left behind.  The journal is written behind the data and
 * neither is flushed: what it says is believed only when the partial file, read again, agrees
 * (journal_recall).
 *
 * One thread at a time.
 */
#ifndef TREE_JOURNAL_H
#define TREE_JOURNAL_H

#include "transfer/transfer.h"

#include <stdbool.h>
#include <stdint.h>

#define JOURNAL_PATH_BYTES sizeof(".rftp-0123456789abcdef.journal")

struct journal;

/* Whether a name is one of these; `journal`: a journal's, else a partial file's. */
bool journal_is_name(const char *name, bool journal);
/* Of the file that will have this name. */
void journal_path_of(const char *name, char path[JOURNAL_PATH_BYTES]);
/* The one that belongs to the other. */
void journal_other_name(const char *name, char other[JOURNAL_PATH_BYTES]);

/* Opens and locks a hidden file of mode 0600, made if it is not there.  0; -EBUSY: somebody has the
 * lock, also after some milliseconds; -EPERM: it is not ours alone; -errno. */
int journal_lock_file(int dir, const char *path, int *fd);

/*
 * Begins one for the file that will be `name` in `dir`, or goes on with what is there if it is of
 * the same source, as `file` says it.  `partial` gets the partial file's name, *fd that file, open
 * for reading and writing, which the caller closes.  `dir` must stay open as long as the journal.
 * -EBUSY: somebody writes to it; other -errno: it cannot be, for want of locks or of rights.
 */
int journal_open(int dir, const char *name, const struct transfer_file *file,
	char partial[JOURNAL_PATH_BYTES], int *fd, struct journal **out);
/* Gives up lock and memory; the files stay. */
void journal_close(struct journal *);
/* The partial file has its real name, or is gone: the journal goes, too. */
void journal_remove(struct journal *);

/* Reads the partial file, for a while: adds what the journal says of it and is true, in blocks of
 * that size.  true: there is more, it is to be called again; false: that was all, and the journal
 * says the same; of a file with holes nothing else is in the partial file, unless there is a fault.
 */
bool journal_recall(struct journal *, int fd, uint32_t block_bytes, struct transfer_notes *found);
/* Adds to it.  What cannot be written is not noted, and sent again by the next transfer. */
void journal_note(struct journal *, const struct transfer_note *, size_t count);
/* -errno: what is not proved could not be emptied, and the file may not get its name.  0: it may.
 * Takes NULL. */
int journal_fault(const struct journal *);
/* Whether it says anything that is of use to another transfer. */
bool journal_is_of_use(const struct journal *);

#endif
