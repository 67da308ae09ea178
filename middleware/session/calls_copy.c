/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/calls_copy.c: see calls_copy.h.
 */
#include "session/calls_copy.h"

#include "session/calls_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int calls_grant_copy(struct calls *c, const char *path, uint32_t flags, struct calls_grant *grant)
{
	const struct message_grant_copy request = {
		.flags = flags,
		.path = {(const uint8_t *)path, strlen(path)},
	};
	struct message_grant_copy_reply granted;
	uint8_t data[MESSAGE_PATH_MAX + 16];
	const uint8_t *reply;
	size_t len;
	int err = calls_ask(c, MESSAGE_GRANT_COPY, data,
		message_put_grant_copy(&request, data, sizeof data), &reply, &len);

	if (err)
		return err;
	if (message_get_grant_copy_reply(&granted, reply, len))
		return calls_bad_reply(c, MESSAGE_GRANT_COPY);
	memcpy(grant->bytes, granted.grant.data, granted.grant.len);
	grant->len = granted.grant.len;
	grant->expires_s = granted.expires_s;
	return 0;
}

struct copying {
	calls_copied_function *copied;
	void *ctx;
	int error; /* of `copied` */
};

/* One reply: 1: more follow; 0; -EPROTO. */
static int calls_copy_reply(struct copying *k, const uint8_t *data, size_t len)
{
	struct message_copy_reply reply;

	if (message_get_copy_reply(&reply, data, len))
		return -EPROTO;
	if (!k->error || !reply.more)
		k->error = k->copied(k->ctx, &reply) || k->error ? -ECANCELED : 0;
	return reply.more;
}

static int calls_copy_left(void *ctx, const uint8_t *data, size_t len)
{
	int more = calls_copy_reply(ctx, data, len);

	return more < 0 ? more : 0;
}

int calls_send_copy(struct calls *c, unsigned transfer, const struct message_send_copy *request,
	calls_copied_function *copied, void *ctx)
{
	struct copying copying = {.copied = copied, .ctx = ctx};
	uint8_t *data = malloc(MESSAGE_DATA_MAX); /* of many paths */
	const uint8_t *reply;
	size_t len;
	int err = -ENOMEM, more;

	if (data)
		err = calls_ask_for(c, transfer, MESSAGE_SEND_COPY, data,
			message_put_send_copy(request, data, MESSAGE_DATA_MAX), &reply, &len);
	free(data);
	while (!err) {
		more = calls_copy_reply(&copying, reply, len);
		if (more < 0)
			return calls_bad_reply(c, MESSAGE_SEND_COPY);
		if (!more)
			return 0;
		err = copying.error;
		if (!err)
			err = calls_reply(c, MESSAGE_SEND_COPY, &reply, &len);
	}
	if (err == -ECANCELED && !calls_lost(c))
		return calls_leave(c, transfer, MESSAGE_SEND_COPY, calls_copy_left, &copying);
	if (err == -ECONNRESET) /* two servers take part: which one is lost */
		return calls_fail(c, err, STATUS_DISCONNECTED, "connection lost (to the source)");
	return err;
}
