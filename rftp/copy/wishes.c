/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/wishes: see wishes.h.
 */
#include "rftp/copy/wishes.h"

#include "end/end.h"
#include "proto/transfer.h"
#include "tree/walk.h"

bool wishes_replaces(const struct settings *s)
{
	return s->replace && !s->ignore_existing;
}

uint16_t wishes_keeps(const struct settings *s)
{
	return (uint16_t)((s->owner ? TRANSFER_HAS_OWNER : 0) |
			  (s->group ? TRANSFER_HAS_GROUP : 0) |
			  (s->xattrs ? TRANSFER_HAS_XATTRS : 0) |
			  (s->acls ? TRANSFER_HAS_ACLS : 0));
}

bool wishes_rereads(const struct settings *s)
{
	return s->verify == SETTINGS_VERIFY_FILE || s->verify == SETTINGS_VERIFY_ALL;
}

enum incoming_fsync wishes_incoming_fsync(const struct settings *s)
{
	switch (s->fsync) {
	case SETTINGS_FSYNC_NEVER:
		return INCOMING_FSYNC_NEVER;
	case SETTINGS_FSYNC_END:
		return INCOMING_FSYNC_END;
	default:
		return INCOMING_FSYNC_FILE;
	}
}

static uint32_t fsync_flags(const struct settings *s)
{
	switch (s->fsync) {
	case SETTINGS_FSYNC_FILE:
		return MESSAGE_DATA_FSYNC_FILE;
	case SETTINGS_FSYNC_END:
		return MESSAGE_DATA_FSYNC_END;
	case SETTINGS_FSYNC_NEVER:
		return MESSAGE_DATA_FSYNC_NEVER;
	default:
		return 0;
	}
}

uint32_t wishes_store_flags(const struct settings *s)
{
	return (wishes_replaces(s) ? 0 : MESSAGE_DATA_NO_REPLACE) |
	       (s->update ? MESSAGE_DATA_UPDATE : 0) | fsync_flags(s);
}

uint32_t wishes_owner_flags(const struct settings *s)
{
	return (s->owner ? MESSAGE_DATA_OWNER : 0) | (s->group ? MESSAGE_DATA_GROUP : 0) |
	       (s->numeric_ids ? MESSAGE_DATA_NUMERIC : 0);
}

static uint8_t direct(const struct settings *s)
{
	return s->direct == END_DIRECT_ON ? 1 : s->direct == END_DIRECT_OFF ? 2 : 0;
}

void wishes_store(const struct settings *s, struct message_data_request *request)
{
	request->direct = direct(s);
	request->block = s->block;
	request->depth = s->depth;
	if (s->in_place) { /* a file that is there, and that nobody replaces */
		request->flags |= fsync_flags(s) | MESSAGE_DATA_IN_PLACE;
		request->resume = s->offset;
		return;
	}
	request->flags |= wishes_store_flags(s) |
			  (s->verify >= SETTINGS_VERIFY_READBACK ? MESSAGE_DATA_READBACK : 0) |
			  (s->preallocate ? MESSAGE_DATA_PREALLOCATE : 0);
	request->resume = s->resume_bytes;
}

void wishes_retrieve(const struct settings *s, struct message_data_request *request)
{
	request->direct = direct(s);
	request->block = s->block;
	request->depth = s->depth;
	request->engine = s->engine;
	request->flags |= wishes_rereads(s) ? MESSAGE_DATA_REREAD : 0;
	request->flags |= s->links == WALK_LINKS_FOLLOW ? MESSAGE_DATA_FOLLOW_LINKS
			  : s->links == WALK_LINKS_SKIP ? MESSAGE_DATA_SKIP_LINKS
							: 0;
	request->flags |= wishes_owner_flags(s) | (s->xattrs ? MESSAGE_DATA_XATTRS : 0) |
			  (s->acls ? MESSAGE_DATA_ACLS : 0) |
			  (s->hard_links ? MESSAGE_DATA_HARD_LINKS : 0) |
			  s->compress << MESSAGE_DATA_SQUEEZE_SHIFT;
}
