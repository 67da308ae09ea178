/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landing: one arriving file: a hidden temporary name beside the real one, then the rename.
 *
 * The temporary name is tree/temporary's, in the directory of the real one.  Until commit the old
 * file is untouched.
 */
#ifndef TREE_LANDING_H
#define TREE_LANDING_H

#include "transfer/transfer.h"
#include "tree/metadata.h"
#include "tree/space.h"

#include <stdbool.h>
#include <stdint.h>

struct landing;

struct landing_params {
	int top;          /* beneath.h; not owned */
	const char *path; /* the real name beneath it */
	/* What the file gets; what it points to lives until the commit.  Without `keep`, only a new
	 * file its mode, less umask; an existing one keeps its own, and the time is that of the
	 * last write. */
	struct metadata metadata;
	bool keep;
	bool beneath;  /* a name in a tree: a link to a directory is replaced as others are */
	bool replace;  /* an existing file may be replaced; else -EEXIST, at open and at commit */
	bool parents;  /* make missing directories */
	bool unsynced; /* its directory is not flushed */
	/* Goes on with what an earlier landing left of this file, and leaves it behind if it is
	 * suspended; if that cannot be had, it begins afresh.  NULL: it always does. */
	const struct transfer_file *resume;
	/* What it may fill; of that, what the file will take, as far as that is known: the rest is
	 * claimed as it comes (landing_claim).  NULL: nobody counts. */
	struct space_share *space;
	uint64_t claim_bytes;
};

/* -EISDIR: the real name is a directory, -ENXIO: a device, FIFO or socket (or, but for `beneath`, a
 * link to one); -EINVAL ends in '/' or has no name.  A symbolic link to anything else is
 * replaced, never written through.  -EDQUOT: there is no room in `space`.  Holds two descriptors.
 */
int landing_open(const struct landing_params *, struct landing **out);
/* What has its name keeps it when the host crashes: flushes the directory.  0 or -ENOTRECOVERABLE,
 * as of landing_commit. */
int landing_sync(int dir, char text[512]);
/* Before so many bytes more than `claim_bytes` are written.  0 or -EDQUOT.  In any thread. */
int landing_claim(struct landing *, uint64_t bytes);
/* A new descriptor of the temporary file, read-write; the caller closes it. */
int landing_fd(const struct landing *);
/* The one that the landing has: it closes it. */
int landing_own_fd(const struct landing *);
/* Writes all there is of the file, and fsyncs it.  0, or -errno with what failed in `text`. */
int landing_fill(struct landing *, const void *data, uint64_t bytes, char text[512]);
/* Writes `bytes` bytes to a file from its beginning.  0 or -errno. */
int landing_write(int fd, const void *data, uint64_t bytes);
/* Sets mode and time, renames, fsyncs the directory.  The caller has fsynced the file.  0: freed,
 * with a note in `text` as of metadata_set.  -errno: the temporary file is removed and the landing
 * freed, `text` may say more; only with -ENOTRECOVERABLE the file has its name, since it was the
 * fsync of the directory that failed, as `text` says. */
int landing_commit(struct landing *, char text[512]);
void landing_discard(struct landing *); /* removes the temporary file */
/* Whether it can be suspended: these three are for such ones (transfer_resume, tree/journal). */
bool landing_resumes(const struct landing *);
bool landing_recall(struct landing *, uint32_t block_bytes, struct transfer_notes *found);
void landing_note(struct landing *, const struct transfer_note *, size_t count);
/* Leaves what was noted to the next landing of the file; without any it is as landing_discard. */
void landing_suspend(struct landing *);

/* The steps before a name is taken, for tree/landing_link as well: the directory that it goes to,
 * whose descriptor is the caller's to close, and its name there; and what bears that name now, if
 * anything: *mode is its mode, or stays.  Errors as of landing_open. */
int landing_open_parent(const struct landing_params *, char last[256]);
int landing_look(
	const struct landing_params *, int dir, const char *last, mode_t *mode, bool *exists);

#endif
