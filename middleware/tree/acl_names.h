/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/acl_names: the names in an access control list's text, and the numbers in their place.
 *
 * libacl would ask for them itself, but not of another process (base/lookup), and in memory that
 * all threads share: it gets to see numbers only.
 */
#ifndef TREE_ACL_NAMES_H
#define TREE_ACL_NAMES_H

#include <stddef.h>

/* Entries as "u:7:r--", with commas, made ones with names: "u:alice:r--"; a number that has none
 * stays.  0; EINVAL: it is no such text; ENOSPC: `out` is too short. */
int acl_names_put(const char *text, char *out, size_t size);
/* And back.  EINVAL also: it names somebody whom this host does not know. */
int acl_names_get(const char *text, char *out, size_t size);

#endif
