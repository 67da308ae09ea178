/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/attributes: the extended attributes of a file as one run of bytes: for each its name, 1 to
 * ATTRIBUTES_NAME_MAX bytes without NUL, and its value, each behind 16 bits of length.  Pure.
 */
#ifndef PROTO_ATTRIBUTES_H
#define PROTO_ATTRIBUTES_H

#include "proto/wire.h"

#include <stdbool.h>

#define ATTRIBUTES_NAME_MAX 255u

struct attribute {
	struct wire_bytes name, value;
};

/* Appends one to `size` bytes, of which *len are used.  0, or -EMSGSIZE: there is no room, or
 * -EBADMSG: it has no such name; nothing is added then. */
int attributes_add(uint8_t *list, size_t size, size_t *len, const struct attribute *);
/* Takes the first one off the list.  false: the list is empty, or not one. */
bool attributes_next(struct wire_bytes *list, struct attribute *);
/* Whether it is a list to its end. */
bool attributes_ok(struct wire_bytes list);

#endif
