/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/change: mode, time and owner of a name that is there, and symbolic links that are made.
 */
#ifndef TREE_CHANGE_H
#define TREE_CHANGE_H

#include "proto/message_seen.h"

#include <stdbool.h>
#include <sys/types.h>

struct change {
	bool has_mode, has_mtime; /* which of these it gets */
	/* Only of the regular file that was seen, or one that has the time already: else -ESTALE,
	 * and nothing is changed.  With has_mtime. */
	bool has_seen;
	struct message_seen seen;
	bool now;    /* the time is now's; without has_mtime */
	bool create; /* an empty file is made where nothing is */
	bool link;   /* a symbolic link itself; with a mode that is -ELOOP */
	/* A file may get set-user-ID and set-group-ID.  Without it, it keeps those that it has and
	 * gets none, nor any with another owner or group: -EPERM, and nothing is changed.  A
	 * directory always may. */
	bool set_id;
	bool but_top; /* not the top itself: -EPERM */
	bool has_owner, has_group;
	uid_t uid;
	gid_t gid;
	mode_t mode; /* at most 07777 */
	int64_t mtime_s;
	uint32_t mtime_ns;
};

/* As tree/beneath resolves them.  0 or -errno; -ENXIO: neither a file nor a directory. */
int change_run(int top, const char *path, const struct change *);
/* -EEXIST: something has that name. */
int change_make_link(int top, const char *target, const char *path);

#endif
