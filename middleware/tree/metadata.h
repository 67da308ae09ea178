/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/metadata: what a file or directory has beside its bytes: permission bits, modification
 * time, owner and group, extended attributes, access control lists.
 *
 * What the file system or the rights of this process do not allow is no error: it is noted, for the
 * people on the other side, too.
 */
#ifndef TREE_METADATA_H
#define TREE_METADATA_H

#include "proto/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct metadata {
	mode_t mode; /* at most 07777 */
	bool set_id; /* a file may get set-user-ID and set-group-ID; a directory always may */
	int64_t mtime_s;
	uint32_t mtime_ns;
	/* which of these it gets */
	bool has_owner, has_group, has_xattrs, has_acls;
	bool lost; /* the source could not send all of its attributes and lists */
	uid_t uid;
	gid_t gid;
	struct wire_bytes xattrs;      /* tree/xattrs.h */
	const char *acl, *default_acl; /* tree/acls.h */
};

/* Sets all on an open descriptor, whatever umask says.  0, with a note in `note` of what is not
 * kept ("": all is), or -errno. */
int metadata_set(int fd, const struct metadata *, char note[512]);
/* Of a symbolic link, opened with O_PATH: it has an owner and a time.  Likewise. */
int metadata_set_link(int fd, const struct metadata *, char note[512]);

#endif
