/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_message: frame header, codec table, session messages, private data.
 *
 * Input: the 8 bytes of a header, then data, whose length the header need not tell: what is checked
 * is the data as it is.  Types 0 and MESSAGE_REPLY, which no message has, stand for a greeting and
 * a welcome.
 */
#include "proto/message_greeting.h"
#include "tests/fuzz/recode_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a codec takes, the table must allow.  STORE has that of RETRIEVE, which may name more paths
 * and rules than the table has room for in a STORE. */
static bool allows(struct message_header header, const uint8_t *data)
{
	struct message_data_request request;

	if (header.type == MESSAGE_STORE &&
		!message_get_data_request(&request, data, header.length) &&
		(request.more.len || request.rules.len))
		header.type = MESSAGE_RETRIEVE;
	return !message_check(&header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_header header;
	uint8_t again[MESSAGE_HEADER_BYTES];
	struct wire_bytes bytes;
	recode_function *run;
	int error;

	if (size < MESSAGE_HEADER_BYTES || size > MESSAGE_HEADER_BYTES + MESSAGE_DATA_MAX)
		return 0;
	error = message_get_header(&header, data);
	recode_must(error == (header.length > MESSAGE_DATA_MAX ? -EBADMSG : 0));
	message_put_header(&header, again);
	recode_must(!memcmp(again, data, sizeof(again)));
	recode_must(*message_name(header.type) != 0);
	message_check(&header);
	data += MESSAGE_HEADER_BYTES;
	size -= MESSAGE_HEADER_BYTES;

	switch (header.type) {
	case 0:
		recode_fuzz(recode_message_greeting, data, size, MESSAGE_GREETING_BYTES);
		break;
	case MESSAGE_REPLY:
		recode_fuzz(recode_message_welcome, data, size, MESSAGE_WELCOME_BYTES);
		break;
	default:
		run = recode_find(header.type);
		if (!run)
			break;
		if (header.response && header.type & MESSAGE_REPLY)
			run = recode_text;
		else
			header.response = 0;
		header.length = (uint32_t)size;
		if (recode_fuzz(run, data, size, 0))
			recode_must(allows(header, data));
		break;
	}
	bytes.data = data;
	bytes.len = size;
	recode_must(!message_name_ok(bytes) || message_path_ok(bytes));
	return 0;
}
