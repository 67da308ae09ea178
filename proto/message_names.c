/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_names.c: the frame header and the codec table.
 *
 * Owns which types exist, their names, and how long their data may be.
 */
#include "proto/message.h"
#include "proto/message_sum.h"
#include "proto/message_login.h"
#include "proto/message_change.h"
#include "proto/transfer.h"

#include <errno.h>

#define PATH_FIELD_MIN 3u /* length 16, one byte at least */
#define PATH_FIELD_MAX (2u + MESSAGE_PATH_MAX)
#define TEXT_FIELD_MAX (2u + MESSAGE_TEXT_MAX)

#define REQUEST(type, name, min, max)                                                              \
	{                                                                                          \
		type, name, min, max                                                               \
	}
#define REPLY(type, name, min, max)                                                                \
	{                                                                                          \
		(type) | MESSAGE_REPLY, name " reply", min, max                                    \
	}

static const struct message_row message_rows[] = {
	REQUEST(MESSAGE_HELLO, "HELLO", 28, 28 + MESSAGE_NAME_MAX),
	REPLY(MESSAGE_HELLO, "HELLO", 28, 28 + MESSAGE_NAME_MAX),
	REQUEST(MESSAGE_LOGIN, "LOGIN", 5, 5 + MESSAGE_NAME_MAX + MESSAGE_LOGIN_DATA_MAX),
	REPLY(MESSAGE_LOGIN, "LOGIN", 15, 14 + MESSAGE_NAME_MAX + MESSAGE_PATH_MAX),
	REQUEST(MESSAGE_BYE, "BYE", 0, 0),
	REPLY(MESSAGE_BYE, "BYE", 0, 0),
	REQUEST(MESSAGE_PING, "PING", 8, 8),
	REPLY(MESSAGE_PING, "PING", 8, 8),
	REQUEST(MESSAGE_CHANNELS, "CHANNELS", 2, 2),
	REPLY(MESSAGE_CHANNELS, "CHANNELS", 36, 36),
	REQUEST(MESSAGE_ADMIT, "ADMIT", 14, 14 + MESSAGE_CLASS_MAX),
	REPLY(MESSAGE_ADMIT, "ADMIT", 0, 0),
	REQUEST(MESSAGE_RING, "RING", 0, 0),
	REPLY(MESSAGE_RING, "RING", 16, 16),
	REQUEST(MESSAGE_STAT, "STAT", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_STAT, "STAT", 33, 33),
	REQUEST(MESSAGE_LSTAT, "LSTAT", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_LSTAT, "LSTAT", 35, 35 + MESSAGE_PATH_MAX),
	REQUEST(MESSAGE_LIST, "LIST", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_LIST, "LIST", 3, MESSAGE_DATA_MAX),
	REQUEST(MESSAGE_MKDIR, "MKDIR", 8 + PATH_FIELD_MIN, 8 + PATH_FIELD_MAX),
	REPLY(MESSAGE_MKDIR, "MKDIR", 0, 0),
	REQUEST(MESSAGE_RMDIR, "RMDIR", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_RMDIR, "RMDIR", 0, 0),
	REQUEST(MESSAGE_REMOVE, "REMOVE", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_REMOVE, "REMOVE", 0, 0),
	REQUEST(MESSAGE_RENAME, "RENAME", 4 + 2 * PATH_FIELD_MIN, 4 + 2 * PATH_FIELD_MAX),
	REPLY(MESSAGE_RENAME, "RENAME", 0, 0),
	REQUEST(MESSAGE_STATFS, "STATFS", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_STATFS, "STATFS", 40, 40),
	REQUEST(MESSAGE_REMOVE_TREE, "REMOVE_TREE", PATH_FIELD_MIN, PATH_FIELD_MAX),
	REPLY(MESSAGE_REMOVE_TREE, "REMOVE_TREE", 9, 9),
	REQUEST(MESSAGE_TREE, "TREE", 6 + PATH_FIELD_MIN, MESSAGE_DATA_MAX),
	REPLY(MESSAGE_TREE, "TREE", 3, MESSAGE_DATA_MAX),
	REQUEST(MESSAGE_SUM, "SUM", 3 + PATH_FIELD_MIN, MESSAGE_DATA_MAX),
	REPLY(MESSAGE_SUM, "SUM", 11, 11 + MESSAGE_SUMS_MAX * (14 + MESSAGE_SUM_MAX)),
	REQUEST(MESSAGE_SETATTR, "SETATTR", 19 + PATH_FIELD_MIN, MESSAGE_DATA_MAX),
	REPLY(MESSAGE_SETATTR, "SETATTR", 4, 2 + 2 * MESSAGE_CHANGES_MAX),
	REQUEST(MESSAGE_MAKE_LINK, "MAKE_LINK", 4 + 2 * PATH_FIELD_MIN, 4 + 2 * PATH_FIELD_MAX),
	REPLY(MESSAGE_MAKE_LINK, "MAKE_LINK", 0, 0),
	REQUEST(MESSAGE_GRANT_COPY, "GRANT_COPY", 4 + PATH_FIELD_MIN, 4 + PATH_FIELD_MAX),
	REPLY(MESSAGE_GRANT_COPY, "GRANT_COPY", 11, 10 + MESSAGE_GRANT_MAX),
	REQUEST(MESSAGE_SEND_COPY, "SEND_COPY", 71, MESSAGE_DATA_MAX),
	REPLY(MESSAGE_SEND_COPY, "SEND_COPY", 105, MESSAGE_DATA_MAX),
	REQUEST(MESSAGE_PUT, "PUT", 18 + 31 + PATH_FIELD_MIN, MESSAGE_DATA_MAX),
	REPLY(MESSAGE_PUT, "PUT", 13, 11 + TEXT_FIELD_MAX),
	REQUEST(MESSAGE_GET, "GET", 8 + PATH_FIELD_MIN, 8 + PATH_FIELD_MAX),
	REPLY(MESSAGE_GET, "GET", 1, MESSAGE_DATA_MAX),
	REQUEST(MESSAGE_STORE, "STORE", 43, 43 + MESSAGE_PATH_MAX),
	REPLY(MESSAGE_STORE, "STORE", 0, 0),
	REQUEST(MESSAGE_RETRIEVE, "RETRIEVE", 43, MESSAGE_DATA_MAX),
	REPLY(MESSAGE_RETRIEVE, "RETRIEVE", 0, 0),
	REQUEST(MESSAGE_FEED, "FEED", 22 + PATH_FIELD_MIN, 22 + PATH_FIELD_MAX),
	REPLY(MESSAGE_FEED, "FEED", 0, 0),
	REQUEST(MESSAGE_LEFTOVERS, "LEFTOVERS", 12 + PATH_FIELD_MIN, 12 + PATH_FIELD_MAX),
	REPLY(MESSAGE_LEFTOVERS, "LEFTOVERS", 3, MESSAGE_DATA_MAX),
	REQUEST(MESSAGE_QUEUED, "QUEUED", 22, 22 + MESSAGE_CLASS_MAX),

	REQUEST(TRANSFER_OFFER, "OFFER", 59, TRANSFER_OFFER_MAX),
	REQUEST(TRANSFER_ACCEPT, "ACCEPT", 36, 36),
	REQUEST(TRANSFER_GRANT, "GRANT", 6, 2 + 4 * TRANSFER_GRANTS_MAX),
	REQUEST(TRANSFER_REQUEST, "REQUEST", 0, 0),
	REQUEST(TRANSFER_HOLE, "HOLE", 20, 20),
	REQUEST(TRANSFER_FILE, "FILE", 31, TRANSFER_FILE_MAX),
	REQUEST(TRANSFER_READY, "READY", 12, 12),
	REQUEST(TRANSFER_FILE_END, "FILE_END", 30, 30),
	REQUEST(TRANSFER_RESULT, "RESULT", 24, 22 + TEXT_FIELD_MAX),
	REQUEST(TRANSFER_COMPLETE, "COMPLETE", 28, 28),
	REQUEST(TRANSFER_CLOSED, "CLOSED", 28, 28),
	REQUEST(TRANSFER_HAVE, "HAVE", 22, 14 + 8 * TRANSFER_HAVE_MAX),
	REQUEST(TRANSFER_ABORT, "ABORT", 4, 2 + TEXT_FIELD_MAX),
	REQUEST(TRANSFER_PAUSED, "PAUSED", 22, 22 + MESSAGE_CLASS_MAX),
	REQUEST(TRANSFER_FILES, "FILES", 49, MESSAGE_DATA_MAX),
	REQUEST(TRANSFER_RESULTS, "RESULTS", 15, MESSAGE_DATA_MAX),
	REQUEST(TRANSFER_EXPOSE, "EXPOSE", 44, 44),
};

const struct message_row *message_row(uint16_t type)
{
	for (size_t i = 0; i < sizeof(message_rows) / sizeof(message_rows[0]); i++)
		if (message_rows[i].type == type)
			return &message_rows[i];
	return NULL;
}

const char *message_name(uint16_t type)
{
	const struct message_row *row = message_row(type);

	return row ? row->name : "unknown message";
}

bool message_has_number(uint16_t type)
{
	return type == MESSAGE_CHANNELS || type == MESSAGE_STORE || type == MESSAGE_RETRIEVE ||
	       type == MESSAGE_FEED || type == MESSAGE_SEND_COPY || transfer_is_frame(type);
}

int message_check(const struct message_header *header)
{
	const struct message_row *row = message_row(header->type);
	uint32_t min, max;

	if (!row)
		return -EBADMSG;
	min = row->min;
	max = row->max;
	if (message_has_number(header->type)) {
		if (header->response >= MESSAGE_TRANSFERS_MAX)
			return -EBADMSG;
	} else if (header->response != 0) {
		if (!(header->type & MESSAGE_REPLY))
			return -EBADMSG;
		min = 2;
		max = TEXT_FIELD_MAX;
	}
	return header->length < min || header->length > max ? -EBADMSG : 0;
}

int message_get_header(struct message_header *header, const uint8_t bytes[MESSAGE_HEADER_BYTES])
{
	struct wire w;

	wire_init_get(&w, bytes, MESSAGE_HEADER_BYTES);
	header->type = wire_get_u16(&w);
	header->response = wire_get_u16(&w);
	header->length = wire_get_u32(&w);
	if (header->length > MESSAGE_DATA_MAX)
		wire_refuse(&w);
	return wire_finish(&w);
}

void message_put_header(const struct message_header *header, uint8_t bytes[MESSAGE_HEADER_BYTES])
{
	struct wire w;

	wire_init_put(&w, bytes, MESSAGE_HEADER_BYTES);
	wire_put_u16(&w, header->type);
	wire_put_u16(&w, header->response);
	wire_put_u32(&w, header->length);
}

const char *message_protect_name(unsigned level)
{
	static const char *const names[] = {"clear", "safe", "private"};

	return level < sizeof names / sizeof *names ? names[level] : NULL;
}
