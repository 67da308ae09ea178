/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_inline: see calls_inline.h.
 */
#include "session/calls_inline.h"

#include <errno.h>
#include <stdlib.h>

int calls_put_send(struct calls *c, const struct message_put *m, size_t *len)
{
	uint8_t *frame = malloc(MESSAGE_DATA_MAX);
	ssize_t n;
	int err;

	if (!frame)
		return -ENOMEM;
	n = message_put_put(m, frame, MESSAGE_DATA_MAX);
	err = n < 0 ? (int)n : calls_send(c, MESSAGE_PUT, frame, n);
	*len = n < 0 ? 0 : (size_t)n;
	free(frame);
	return err;
}

int calls_put_take(struct calls *c, struct message_put_reply *m)
{
	const uint8_t *reply;
	size_t len;
	int err = calls_reply(c, MESSAGE_PUT, &reply, &len);

	if (!err && message_get_put_reply(m, reply, len))
		err = calls_bad_reply(c, MESSAGE_PUT);
	return err;
}

int calls_get_send(struct calls *c, const struct message_get *m)
{
	uint8_t data[16 + MESSAGE_PATH_MAX];

	return calls_send(c, MESSAGE_GET, data, message_put_get(m, data, sizeof data));
}

void calls_get_ahead(struct calls *c, const struct message_get *m)
{
	uint8_t data[16 + MESSAGE_PATH_MAX];

	calls_ahead(c, 0, MESSAGE_GET, data, message_put_get(m, data, sizeof data));
}

int calls_get_take(struct calls *c, struct message_get_reply *m)
{
	const uint8_t *reply;
	size_t len;
	int err = calls_reply(c, MESSAGE_GET, &reply, &len);

	if (!err && message_get_get_reply(m, reply, len))
		err = calls_bad_reply(c, MESSAGE_GET);
	return err;
}
