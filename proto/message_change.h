/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_change: SETATTR, which changes modes, times and owners of names that are there, and
 * MAKE_LINK, which makes a symbolic link.
 *
 * Functions as in proto/message.h.
 */
#ifndef PROTO_MESSAGE_CHANGE_H
#define PROTO_MESSAGE_CHANGE_H

#include "proto/message.h"

#define MESSAGE_CHANGES_MAX 1024u /* names in one SETATTR */

#define MESSAGE_CHANGE_MODE 1u
#define MESSAGE_CHANGE_MTIME 2u
#define MESSAGE_CHANGE_NOW 4u    /* the time is the server's, now; without MTIME */
#define MESSAGE_CHANGE_CREATE 8u /* where nothing has that name, an empty file is made */
/* A symbolic link itself, not what it leads to; with MODE, which it has not, it is an error. */
#define MESSAGE_CHANGE_LINK 16u
#define MESSAGE_CHANGE_OWNER 32u
#define MESSAGE_CHANGE_GROUP 64u
/* Only of the regular file that was seen, or one that has the time already: else STATUS_CHANGED,
 * and it stays as it is.  With MTIME, without CREATE and LINK. */
#define MESSAGE_CHANGE_SEEN 128u
#define MESSAGE_CHANGE_NO_ID UINT32_MAX /* only the name counts, and must be known */

struct message_change {
	uint8_t flags;     /* MESSAGE_CHANGE_*, a mode, time, owner or group among them */
	uint32_t mode;     /* permission bits, 07777; 0 without MODE */
	int64_t mtime_s;   /* both 0 without MTIME */
	uint32_t mtime_ns; /* < 1e9 */
	/* with OWNER, with GROUP: as in FILE; else 0 and empty */
	uint32_t uid, gid;
	struct wire_bytes user, group; /* 0..255 bytes, no NUL */
	struct message_seen seen;      /* with SEEN; else all 0 */
	struct wire_bytes path;
};
struct message_set_attr {
	uint16_t count; /* 1..MESSAGE_CHANGES_MAX */
	struct wire_bytes changes;
};
struct message_set_attr_reply {
	uint16_t count;          /* as in the request */
	const uint8_t *statuses; /* of each name, big-endian: message_change_status */
};
struct message_make_link {
	uint32_t flags;                 /* reserved: 0 */
	struct wire_bytes target, path; /* target: 1..4095 bytes, no NUL */
};

/* One change more at the end of `list`, of which *len bytes are used.  0; -EMSGSIZE: it is full;
 * -EBADMSG: the change may not cross. */
int message_add_change(void *list, size_t size, size_t *len, const struct message_change *);
/* The next of the list, which it is taken off; false: there is none, or it is not one. */
bool message_next_change(struct wire_bytes *list, struct message_change *);
uint16_t message_change_status(const struct message_set_attr_reply *, unsigned i);

int message_get_set_attr(struct message_set_attr *, const void *, size_t);
ssize_t message_put_set_attr(const struct message_set_attr *, void *, size_t);
int message_get_set_attr_reply(struct message_set_attr_reply *, const void *, size_t);
/* `statuses` instead of those in the struct. */
ssize_t message_put_set_attr_reply(
	const struct message_set_attr_reply *, const uint16_t *statuses, void *, size_t);
int message_get_make_link(struct message_make_link *, const void *, size_t);
ssize_t message_put_make_link(const struct message_make_link *, void *, size_t);

#endif
