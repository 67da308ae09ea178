/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_tree: TREE, the listing of a directory with all that is beneath it.
 *
 * The request names the directory, what is to be done with symbolic links, which names are left
 * out, and whether the directory is wanted, too.  Replies: any number of frames, `more` is 1 in all
 * but the last.  Entries come as the walk of tree/walk comes to them: a directory before what is in
 * it, entries of a directory sorted by their bytes; each name is beneath the directory asked for.
 * A name begins with so many bytes of the one before it in the same frame, and only the rest
 * crosses.
 *
 * Functions as in proto/message.h.
 */
#ifndef PROTO_MESSAGE_TREE_H
#define PROTO_MESSAGE_TREE_H

#include "proto/message.h"

#define MESSAGE_TREE_NAME_MAX 16383u  /* as TRANSFER_NAME_MAX */
#define MESSAGE_TREE_TARGET_MAX 4095u /* as TRANSFER_TARGET_MAX */

#define MESSAGE_TREE_FOLLOW_LINKS 1u /* a link is what it leads to */
#define MESSAGE_TREE_SKIP_LINKS 2u   /* links are left out; without either they are told as links */
#define MESSAGE_TREE_TOP 4u          /* the directory itself is told of, too: first */
/* What is told beside: enum message_tree_has. */
#define MESSAGE_TREE_OWNERS 8u
#define MESSAGE_TREE_XATTRS 16u
#define MESSAGE_TREE_ACLS 32u
#define MESSAGE_TREE_NUMERIC 64u /* users and groups without their names; with one of the above */
#define MESSAGE_TREE_INODES 128u
#define MESSAGE_TREE_CHANGES 256u

enum message_tree_has {
	MESSAGE_TREE_HAS_OWNERS = 1,  /* user and group; their numbers are among the attributes */
	MESSAGE_TREE_HAS_EXTRA = 2,   /* extra */
	MESSAGE_TREE_HAS_INODE = 4,   /* inode */
	MESSAGE_TREE_HAS_GIVEN = 8,   /* who lists may give it to other users and groups */
	MESSAGE_TREE_HAS_CHANGE = 16, /* change */
};
#define MESSAGE_TREE_HAS_ALL 31u
#define MESSAGE_TREE_HAS 0x8000u /* in an entry's count of shared bytes: `has` follows */

struct message_tree {
	uint32_t flags; /* MESSAGE_TREE_*, of those for links one at most */
	struct wire_bytes path;
	uint16_t rule_count; /* as in message_data_request */
	struct wire_bytes rules;
};

struct message_tree_entry {
	struct message_attr attr;
	uint16_t status; /* not 0: it could not be looked at, or into; only the type is known */
	struct wire_bytes name;   /* at most MESSAGE_TREE_NAME_MAX bytes, as transfer_name_ok has
				     it; empty: the directory itself */
	struct wire_bytes target; /* what a link says; else empty */
	uint8_t has;              /* enum message_tree_has; what it does not name is empty or 0 */
	struct wire_bytes user, group; /* names, at most MESSAGE_NAME_MAX bytes; empty: none */
	/* A number of the attributes and lists that were asked for: equal where these are; 0: there
	 * are none. */
	uint64_t extra;
	uint64_t inode;  /* of a file with several names: equal where these are one file; not 0 */
	uint64_t change; /* of a file: struct message_seen's; not 0 */
};

int message_get_tree(struct message_tree *, const void *, size_t);
ssize_t message_put_tree(const struct message_tree *, void *, size_t);

/* A frame that is written: begin, entries while they return 0 (-EMSGSIZE: it is full), end; as
 * message_list_begin and the others. */
struct message_tree_writer {
	struct message_list_writer list;
	size_t len;
	uint8_t name[MESSAGE_TREE_NAME_MAX]; /* of the last entry */
};
void message_tree_begin(struct message_tree_writer *, void *, size_t);
int message_tree_add(struct message_tree_writer *, const struct message_tree_entry *);
ssize_t message_tree_end(struct message_tree_writer *, bool more);

/* And one that is read: begin, `count` entries, whose names are good until the next, finish. */
struct message_tree_reader {
	struct wire wire;
	size_t len;
	uint8_t name[MESSAGE_TREE_NAME_MAX];
};
int message_tree_read(
	struct message_tree_reader *, struct message_list_reply *head, const void *, size_t);
int message_tree_next(struct message_tree_reader *, struct message_tree_entry *);
int message_tree_finish(struct message_tree_reader *);

#endif
