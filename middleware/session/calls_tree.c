/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_tree.c: see calls_tree.h.
 */
#include "session/calls_tree.h"

#include "session/calls_impl.h"

#include <errno.h>
#include <stdlib.h>

/* The frames that still come would be taken for other replies: the session is over, for the reason
 * that no more of them is wanted. */
static void calls_tree_leave(struct calls *c, int err)
{
	if (err == -ECANCELED || err == -EPROTO)
		calls_lose(c, err, message_name(MESSAGE_TREE | MESSAGE_REPLY));
	else
		calls_too_long(c, MESSAGE_TREE);
}

/* The entries of one frame; `top`: it may begin with the directory itself.  1: more frames follow.
 */
static int calls_tree_frame(struct calls *c, struct message_tree_reader *reader, bool top,
	const uint8_t *reply, size_t len, calls_tree_entry *told, void *ctx)
{
	struct message_list_reply head;
	struct message_tree_entry entry;

	if (message_tree_read(reader, &head, reply, len))
		return calls_bad_reply(c, MESSAGE_TREE);
	for (unsigned i = 0; i < head.count; i++) {
		int err;

		if (message_tree_next(reader, &entry) || (!entry.name.len && (!top || i)))
			return calls_bad_reply(c, MESSAGE_TREE);
		err = told(ctx, &entry);
		if (err) {
			if (head.more)
				calls_tree_leave(c, err);
			return err;
		}
	}
	return message_tree_finish(reader) ? calls_bad_reply(c, MESSAGE_TREE) : head.more;
}

int calls_tree(
	struct calls *c, const struct message_tree *request, calls_tree_entry *entry, void *ctx)
{
	uint8_t *data = malloc(MESSAGE_DATA_MAX);
	struct message_tree_reader *reader = malloc(sizeof *reader);
	bool top = request->flags & MESSAGE_TREE_TOP;
	const uint8_t *reply;
	size_t len;
	int err = data && reader ? 0 : -ENOMEM;

	if (!err)
		err = calls_ask(c, MESSAGE_TREE, data,
			message_put_tree(request, data, MESSAGE_DATA_MAX), &reply, &len);
	while (!err) {
		err = calls_tree_frame(c, reader, top, reply, len, entry, ctx);
		top = false;
		if (err <= 0)
			break;
		err = calls_reply(c, MESSAGE_TREE, &reply, &len);
	}
	free(data);
	free(reader);
	return err;
}
