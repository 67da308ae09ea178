/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/landing: one arriving file: a hidden temporary name beside the real one, then the rename.
 *
 * The temporary name is ".rftp-" + 16 hex digits + ".part" in the directory of the real name. Until
 * commit the old file is untouched.
 */
#ifndef TREE_LANDING_H
#define TREE_LANDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct landing;

struct landing_params {
	int top;          /* beneath.h; not owned */
	const char *path; /* the real name beneath it */
	mode_t mode;  /* permission bits of a new file, less umask; an existing one keeps its own */
	bool replace; /* an existing file may be replaced; else -EEXIST, at open and at commit */
	bool parents; /* make missing directories */
};

/* -EISDIR: the real name is a directory (or a link to one); -ENXIO: a device, FIFO or socket;
 * -EINVAL ends in '/' or has no name.  A symbolic link to anything else is replaced, never written
 * through. Holds two descriptors. */
int landing_open(const struct landing_params *, struct landing **out);
/* A new descriptor of the temporary file, read-write; the caller closes it. */
int landing_fd(const struct landing *);
/* The one that the landing has: it closes it. */
int landing_own_fd(const struct landing *);
/* Sets times (mtime_ns == UINT32_MAX: leaves them) and mode, renames, fsyncs the directory.  The
 * caller has fsynced the file.  0: freed.  -errno: the temporary file is removed and the landing
 * freed. */
int landing_commit(struct landing *, int64_t mtime_s, uint32_t mtime_ns);
void landing_discard(struct landing *); /* removes the temporary file */
/* Whether a name is of the form of temporary names. */
bool landing_is_temporary(const char *name);

#endif
