/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/xattrs: the extended attributes of an open file or directory that cross: those of users
 * ("user.").
 *
 * What the system keeps there, "security.", "system." and "trusted.", is neither sent nor taken
 * from a peer: it would give programs rights that nobody here gave them.
 */
#ifndef TREE_XATTRS_H
#define TREE_XATTRS_H

#include "proto/attributes.h"

/*
 * Reads them into a list (proto/attributes.h) of at most `size` bytes; *len is what it has.  0; 1:
 * some do not fit, or cannot be read, and are left out; -ENOMEM.  A file system without any is an
 * empty list.
 */
int xattrs_read(int fd, uint8_t *list, size_t size, size_t *len);

/*
 * Makes them what the list says, and removes others.  0; else the errno of the first that could not
 * be set or removed, whose name is in `which`, cut to fit; the others are set.  EPERM is also what
 * one that is not "user." gives.
 */
int xattrs_write(int fd, struct wire_bytes list, char which[64]);

#endif
