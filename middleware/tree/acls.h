/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/acls: the access control lists of an open file or directory, as text: acl(5)'s short form,
 * with commas ("u::rw-,u:alice:r--,g::r--,m::r--,o::---").  "": there is none beyond the permission
 * bits.
 */
#ifndef TREE_ACLS_H
#define TREE_ACLS_H

#include <stdbool.h>
#include <stddef.h>

struct acls_text {
	char *access, *standard; /* the latter of directories: what is made in them gets */
	size_t size;             /* room for each, with its NUL */
};

/* `numeric`: numbers in place of names.  0; 1: one does not fit, or cannot be read, and is left
 * out (""). */
int acls_read(int fd, bool directory, bool numeric, const struct acls_text *);

/* Removes both, before the permission bits are set.  0 or an errno.  What has none is fine. */
int acls_remove(int fd, bool directory);
/* Sets those that are not "", after the permission bits.  0 or an errno: EINVAL: it is none, or
 * names somebody that this host does not know. */
int acls_write(int fd, bool directory, const char *access, const char *standard);

#endif
