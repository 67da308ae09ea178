/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_leftovers.c: see calls_leftovers.h.
 */
#include "session/calls_leftovers.h"

/* Those of one frame.  1: more frames follow. */
static int calls_leftovers_frame(
	struct calls *c, const uint8_t *reply, size_t len, calls_leftover *found, void *ctx)
{
	struct message_list_reply head;
	struct message_leftover m;
	struct wire wire;
	int err = 0;

	if (message_get_leftovers_head(&head, &wire, reply, len))
		return calls_bad_reply(c, MESSAGE_LEFTOVERS);
	for (unsigned i = 0; i < head.count && !err; i++) {
		if (message_get_leftover(&m, &wire))
			return calls_bad_reply(c, MESSAGE_LEFTOVERS);
		err = found(ctx, &m);
	}
	if (!err && head.more)
		err = found(ctx, NULL);
	if (err) {
		if (head.more)
			calls_too_long(c, MESSAGE_LEFTOVERS);
		return err;
	}
	return wire_finish(&wire) ? calls_bad_reply(c, MESSAGE_LEFTOVERS) : head.more;
}

int calls_leftovers(
	struct calls *c, const struct message_leftovers *request, calls_leftover *found, void *ctx)
{
	uint8_t data[MESSAGE_PATH_MAX + 64];
	const uint8_t *reply;
	size_t len;
	int err = calls_ask(c, MESSAGE_LEFTOVERS, data,
		message_put_leftovers(request, data, sizeof data), &reply, &len);

	while (!err) {
		err = calls_leftovers_frame(c, reply, len, found, ctx);
		if (err <= 0)
			break;
		err = calls_reply(c, MESSAGE_LEFTOVERS, &reply, &len);
	}
	return err;
}
