/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/recode.h: every message of proto/ as one function that gets it and puts it again.
 *
 * Shared by the unit tests and the fuzz targets, so that a message that is added to the codec table
 * and not here fails a test.  Each function returns what put returned, or get's error.
 */
#ifndef TESTS_RECODE_H
#define TESTS_RECODE_H

#include "proto/message.h"
#include "proto/message_greeting.h"
#include "proto/message_login.h"
#include "proto/message_sum.h"
#include "proto/bundle.h"
#include "proto/message_change.h"
#include "proto/message_copy.h"
#include "proto/message_inline.h"
#include "proto/message_leftovers.h"
#include "proto/message_tree.h"
#include "proto/transfer_expose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef ssize_t recode_function(const uint8_t *in, size_t len, uint8_t *out, size_t size);

struct recode {
	uint16_t type;
	recode_function *run;
};

#define RECODE(message, room)                                                                      \
	static inline ssize_t recode_##room##_##message(                                           \
		const uint8_t *in, size_t len, uint8_t *out, size_t size)                          \
	{                                                                                          \
		struct room##_##message m;                                                         \
		int error = room##_get_##message(&m, in, len);                                     \
		return error ? error : room##_put_##message(&m, out, size);                        \
	}

RECODE(greeting, message)
RECODE(welcome, message)
RECODE(hello, message)
RECODE(login, message)
RECODE(login_key, message)
RECODE(login_reply, message)
RECODE(ping, message)
RECODE(channels, message)
RECODE(channels_reply, message)
RECODE(ring_reply, message)
RECODE(path, message)
RECODE(attr, message)
RECODE(link_attr, message)
RECODE(mkdir, message)
RECODE(rename, message)
RECODE(statfs_reply, message)
RECODE(removed, message)
RECODE(set_attr, message)
RECODE(make_link, message)
RECODE(data_request, message)
RECODE(tree, message)
RECODE(leftovers, message)
RECODE(sum_request, message)
RECODE(grant_copy, message)
RECODE(grant_copy_reply, message)
RECODE(send_copy, message)
RECODE(copy_reply, message)
RECODE(put, message)
RECODE(put_reply, message)
RECODE(get, message)
RECODE(get_reply, message)
RECODE(feed, message)
RECODE(admit, message)
RECODE(queued, message)
RECODE(offer, transfer)
RECODE(accept, transfer)
RECODE(file, transfer)
RECODE(expose, transfer)
RECODE(ready, transfer)
RECODE(hole, transfer)
RECODE(file_end, transfer)
RECODE(result, transfer)
RECODE(complete, transfer)
RECODE(abort, transfer)

static inline ssize_t recode_have(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct transfer_have m;
	uint64_t leaves[TRANSFER_HAVE_MAX];
	int error = transfer_get_have(&m, in, len);

	if (error)
		return error;
	for (unsigned i = 0; i < m.count; i++)
		leaves[i] = transfer_have_leaf(&m, i);
	return transfer_put_have(&m, leaves, out, size);
}

static inline ssize_t recode_empty(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	(void)in, (void)out, (void)size;
	return len ? -EBADMSG : 0;
}

static inline ssize_t recode_text(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct wire_bytes text;
	int error = message_get_text(&text, in, len);

	return error ? error : message_put_text(text, out, size);
}

static inline ssize_t recode_list(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct message_list_writer writer;
	struct message_list_reply head;
	struct message_entry entry;
	struct wire w;
	int error;

	error = message_get_list_head(&head, &w, in, len);
	if (error)
		return error;
	message_list_begin(&writer, out, size);
	for (unsigned i = 0; i < head.count; i++) {
		error = message_get_list_entry(&entry, &w);
		if (!error)
			error = message_list_add(&writer, &entry);
		if (error)
			return error;
	}
	error = wire_finish(&w);
	return error ? error : message_list_end(&writer, head.more);
}

static inline ssize_t recode_tree(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	static struct message_tree_writer writer;
	static struct message_tree_reader reader;
	struct message_list_reply head;
	struct message_tree_entry entry;
	int error = message_tree_read(&reader, &head, in, len);

	if (error)
		return error;
	message_tree_begin(&writer, out, size);
	for (unsigned i = 0; i < head.count; i++) {
		error = message_tree_next(&reader, &entry);
		if (!error)
			error = message_tree_add(&writer, &entry);
		if (error)
			return error;
	}
	error = message_tree_finish(&reader);
	return error ? error : message_tree_end(&writer, head.more);
}

static inline ssize_t recode_leftovers(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct message_leftovers_writer writer;
	struct message_list_reply head;
	struct message_leftover entry;
	struct wire w;
	int error = message_get_leftovers_head(&head, &w, in, len);

	if (error)
		return error;
	message_leftovers_begin(&writer, out, size);
	for (unsigned i = 0; i < head.count; i++) {
		error = message_get_leftover(&entry, &w);
		if (!error)
			error = message_leftovers_add(&writer, &entry);
		if (error)
			return error;
	}
	error = wire_finish(&w);
	return error ? error : message_leftovers_end(&writer, head.more);
}

static inline ssize_t recode_sum(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct message_sum_writer writer;
	struct message_sum_reply head;
	struct message_sum sum;
	struct wire w;
	int error = message_get_sum_head(&head, &w, in, len);

	if (error)
		return error;
	message_sum_begin(&writer, out, size);
	for (unsigned i = 0; i < head.count; i++) {
		error = message_get_sum(&sum, &w);
		if (!error)
			error = message_sum_add(&writer, &sum);
		if (error)
			return error;
	}
	error = wire_finish(&w);
	return error ? error : message_sum_end(&writer, head.more, head.bytes);
}

static inline ssize_t recode_set_attr_reply(
	const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	static uint16_t statuses[MESSAGE_CHANGES_MAX];
	struct message_set_attr_reply m;
	int error = message_get_set_attr_reply(&m, in, len);

	if (error)
		return error;
	for (unsigned i = 0; i < m.count; i++)
		statuses[i] = message_change_status(&m, i);
	return message_put_set_attr_reply(&m, statuses, out, size);
}

static inline ssize_t recode_grant(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	static uint32_t indices[TRANSFER_GRANTS_MAX];
	struct transfer_grant m;
	int error = transfer_get_grant(&m, in, len);

	if (error)
		return error;
	for (unsigned i = 0; i < m.count; i++)
		indices[i] = transfer_grant_index(&m, i);
	return transfer_put_grant(indices, m.count, out, size);
}

static inline ssize_t recode_notice(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct transfer_notice_msg m;
	int error = transfer_get_notice(&m, in, len);

	return error ? error : transfer_put_notice(&m, out, size);
}

static inline ssize_t recode_bundle(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct bundle_writer writer;
	struct bundle_entry entry;
	struct bundle_head head;
	struct wire w;
	int error = bundle_get_head(&head, &w, in, len);

	bundle_begin(&writer, out, size);
	for (unsigned i = 0; i < head.count && !error; i++) {
		error = bundle_get_entry(&entry, &w, i + 1);
		if (!error)
			error = bundle_add(&writer, &entry);
	}
	if (!error)
		error = wire_finish(&w);
	return error ? error : bundle_end(&writer, head.file);
}

static inline ssize_t recode_bundle_results(
	const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	struct bundle_results_head head;
	struct bundle_result result;
	struct bundle_writer writer;
	unsigned after = 0;
	struct wire w;
	int error = bundle_get_results_head(&head, &w, in, len);

	bundle_results_begin(&writer, out, size);
	for (unsigned i = 0; i < head.count && !error; i++) {
		error = bundle_get_result(&result, &w, after);
		after = result.place;
		if (!error)
			error = bundle_results_add(&writer, &result);
	}
	if (!error)
		error = wire_finish(&w);
	return error ? error : bundle_results_end(&writer, head.file, head.more, head.digest);
}

static const struct recode recode_table[] = {
	{MESSAGE_HELLO, recode_message_hello},
	{MESSAGE_HELLO | MESSAGE_REPLY, recode_message_hello},
	{MESSAGE_LOGIN, recode_message_login},
	{MESSAGE_LOGIN | MESSAGE_REPLY, recode_message_login_reply},
	{MESSAGE_BYE, recode_empty},
	{MESSAGE_BYE | MESSAGE_REPLY, recode_empty},
	{MESSAGE_PING, recode_message_ping},
	{MESSAGE_PING | MESSAGE_REPLY, recode_message_ping},
	{MESSAGE_CHANNELS, recode_message_channels},
	{MESSAGE_CHANNELS | MESSAGE_REPLY, recode_message_channels_reply},
	{MESSAGE_STAT, recode_message_path},
	{MESSAGE_STAT | MESSAGE_REPLY, recode_message_attr},
	{MESSAGE_LSTAT, recode_message_path},
	{MESSAGE_LSTAT | MESSAGE_REPLY, recode_message_link_attr},
	{MESSAGE_LIST, recode_message_path},
	{MESSAGE_LIST | MESSAGE_REPLY, recode_list},
	{MESSAGE_TREE, recode_message_tree},
	{MESSAGE_TREE | MESSAGE_REPLY, recode_tree},
	{MESSAGE_MKDIR, recode_message_mkdir},
	{MESSAGE_MKDIR | MESSAGE_REPLY, recode_empty},
	{MESSAGE_RMDIR, recode_message_path},
	{MESSAGE_RMDIR | MESSAGE_REPLY, recode_empty},
	{MESSAGE_REMOVE, recode_message_path},
	{MESSAGE_REMOVE | MESSAGE_REPLY, recode_empty},
	{MESSAGE_RENAME, recode_message_rename},
	{MESSAGE_RENAME | MESSAGE_REPLY, recode_empty},
	{MESSAGE_STATFS, recode_message_path},
	{MESSAGE_STATFS | MESSAGE_REPLY, recode_message_statfs_reply},
	{MESSAGE_REMOVE_TREE, recode_message_path},
	{MESSAGE_REMOVE_TREE | MESSAGE_REPLY, recode_message_removed},
	{MESSAGE_SUM, recode_message_sum_request},
	{MESSAGE_SUM | MESSAGE_REPLY, recode_sum},
	{MESSAGE_SETATTR, recode_message_set_attr},
	{MESSAGE_SETATTR | MESSAGE_REPLY, recode_set_attr_reply},
	{MESSAGE_MAKE_LINK, recode_message_make_link},
	{MESSAGE_MAKE_LINK | MESSAGE_REPLY, recode_empty},
	{MESSAGE_GRANT_COPY, recode_message_grant_copy},
	{MESSAGE_GRANT_COPY | MESSAGE_REPLY, recode_message_grant_copy_reply},
	{MESSAGE_SEND_COPY, recode_message_send_copy},
	{MESSAGE_SEND_COPY | MESSAGE_REPLY, recode_message_copy_reply},
	{MESSAGE_PUT, recode_message_put},
	{MESSAGE_PUT | MESSAGE_REPLY, recode_message_put_reply},
	{MESSAGE_GET, recode_message_get},
	{MESSAGE_GET | MESSAGE_REPLY, recode_message_get_reply},
	{MESSAGE_STORE, recode_message_data_request},
	{MESSAGE_STORE | MESSAGE_REPLY, recode_empty},
	{MESSAGE_RETRIEVE, recode_message_data_request},
	{MESSAGE_RETRIEVE | MESSAGE_REPLY, recode_empty},
	{MESSAGE_FEED, recode_message_feed},
	{MESSAGE_FEED | MESSAGE_REPLY, recode_empty},
	{MESSAGE_LEFTOVERS, recode_message_leftovers},
	{MESSAGE_LEFTOVERS | MESSAGE_REPLY, recode_leftovers},
	{MESSAGE_ADMIT, recode_message_admit},
	{MESSAGE_ADMIT | MESSAGE_REPLY, recode_empty},
	{MESSAGE_RING, recode_empty},
	{MESSAGE_RING | MESSAGE_REPLY, recode_message_ring_reply},
	{MESSAGE_QUEUED, recode_message_queued},
	{TRANSFER_PAUSED, recode_message_queued},
	{TRANSFER_OFFER, recode_transfer_offer},
	{TRANSFER_ACCEPT, recode_transfer_accept},
	{TRANSFER_EXPOSE, recode_transfer_expose},
	{TRANSFER_GRANT, recode_grant},
	{TRANSFER_REQUEST, recode_empty},
	{TRANSFER_FILE, recode_transfer_file},
	{TRANSFER_HOLE, recode_transfer_hole},
	{TRANSFER_HAVE, recode_have},
	{TRANSFER_READY, recode_transfer_ready},
	{TRANSFER_FILE_END, recode_transfer_file_end},
	{TRANSFER_RESULT, recode_transfer_result},
	{TRANSFER_COMPLETE, recode_transfer_complete},
	{TRANSFER_CLOSED, recode_transfer_complete},
	{TRANSFER_ABORT, recode_transfer_abort},
	{TRANSFER_FILES, recode_bundle},
	{TRANSFER_RESULTS, recode_bundle_results},
};
#define RECODE_COUNT (sizeof(recode_table) / sizeof(recode_table[0]))

static inline recode_function *recode_find(uint16_t type)
{
	for (size_t i = 0; i < RECODE_COUNT; i++)
		if (recode_table[i].type == type)
			return recode_table[i].run;
	return NULL;
}

/* Runs over copies of exactly the given sizes, so that a sanitizer sees one byte too far. */
static inline ssize_t recode_exact(
	recode_function *run, const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	uint8_t *from = malloc(len ? len : 1), *to = malloc(size ? size : 1);
	ssize_t n;

	if (!from || !to)
		abort();
	if (len)
		memcpy(from, in, len);
	n = run(len ? from : NULL, len, to, size);
	if (n > 0)
		memcpy(out, to, (size_t)n);
	free(from);
	free(to);
	return n;
}

#endif
