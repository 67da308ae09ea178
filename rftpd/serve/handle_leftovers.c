/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_leftovers: LEFTOVERS.
 */
#include "base/clock.h"
#include "proto/message_leftovers.h"
#include "proto/status.h"
#include "proto/transfer.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/listing.h"
#include "tree/leftovers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFTOVERS_FRAME_NS UINT64_C(200000000) /* then a frame leaves though it is not full */

struct seeking {
	struct listing listing; /* first */
	bool remove;
	uint64_t age_s;
	struct leftovers *leftovers;
	/* one that did not fit the last frame */
	bool has_item;
	struct leftovers_item item;
	int failed; /* 0, or what the next frame says: this one tells what was done before */
	struct message_leftovers_writer writer;
};

_Static_assert((int)LEFTOVERS_DIRECTORY == MESSAGE_LEFTOVER_DIRECTORY &&
		       (int)LEFTOVERS_FILE == MESSAGE_LEFTOVER_FILE &&
		       (int)LEFTOVERS_PART == MESSAGE_LEFTOVER_PART &&
		       (int)LEFTOVERS_TREE == MESSAGE_LEFTOVER_TREE,
	"kinds have one number");
_Static_assert((int)LEFTOVERS_IDLE == MESSAGE_LEFTOVER_IDLE &&
		       (int)LEFTOVERS_BUSY == MESSAGE_LEFTOVER_BUSY &&
		       (int)LEFTOVERS_UNSURE == MESSAGE_LEFTOVER_UNSURE &&
		       (int)LEFTOVERS_REMOVED == MESSAGE_LEFTOVER_REMOVED,
	"states have one number");

static void seeking_free(struct listing *listing)
{
	struct seeking *s = (struct seeking *)listing;

	leftovers_free(s->leftovers);
	free(s);
}

static int seeking_open(struct seeking *s)
{
	struct leftovers_params params = {
		.path = s->listing.beneath, .remove = s->remove, .age_s = s->age_s};
	int err = s->listing.found == VIEW_TOP ? -EACCES : 0;

	if (!err)
		err = place_top(s->listing.place,
			s->remove ? PLACE_LIST | PLACE_DELETE : PLACE_LIST, &params.top);
	if (err)
		return err;
	params.space = s->listing.place->space;
	return leftovers_new(&params, &s->leftovers);
}

static bool item_is_told(const struct leftovers_item *item)
{
	return transfer_name_ok(
		(struct wire_bytes){(const uint8_t *)item->path, strlen(item->path)});
}

static int item_add(struct seeking *s)
{
	const struct leftovers_item *item = &s->item;
	struct message_leftover m = {
		.kind = (uint8_t)item->kind,
		.state = (uint8_t)item->state,
		.status = status_from_errno(item->error),
		.changed_s = item->changed_s,
		.disk_bytes = item->disk_bytes,
		.verified_bytes = item->verified_bytes,
		.size = item->size_bytes,
		.path = {(const uint8_t *)item->path, strlen(item->path)},
		.name = {(const uint8_t *)item->name, strlen(item->name)},
	};

	/* a file that somebody else has made with such a name may say anything */
	if (m.name.len && !message_name_ok(m.name))
		m.name.len = 0;
	return message_leftovers_add(&s->writer, &m);
}

/* What is removed is noted, as with any other request that does it. */
static void item_audit(const struct seeking *s)
{
	const struct daemon_session *session = s->listing.task.session;
	const struct leftovers_item *item = &s->item;
	size_t len = strlen(s->listing.beneath), room = len + strlen(item->path) + 2;
	char *path = item->state == LEFTOVERS_REMOVED ? malloc(room) : NULL;

	if (item->state != LEFTOVERS_REMOVED)
		return;
	if (path)
		snprintf(path, room, "%s%s%s", s->listing.beneath,
			len && s->listing.beneath[len - 1] != '/' ? "/" : "", item->path);
	audit_write(&session->daemon->audit, &(struct audit_event){.event = "rm",
						     .session = session->number,
						     .peer = session->peer,
						     .user = daemon_session_user(session),
						     .export_name = s->listing.export_name,
						     .path = path ? path : item->path,
						     .status = STATUS_OK,
						     .text = ""});
	free(path);
}

static void seeking_fill(struct listing *listing)
{
	struct seeking *s = (struct seeking *)listing;
	const uint64_t until_ns = clock_now_ns() + LEFTOVERS_FRAME_NS;
	int n = s->failed ? s->failed : s->leftovers ? 1 : seeking_open(s);

	if (n < 0) {
		listing->result = n;
		return;
	}
	message_leftovers_begin(&s->writer, listing->frame, sizeof listing->frame);
	for (;;) {
		if (!s->has_item) {
			n = leftovers_next(s->leftovers, until_ns, &s->item);
			if (n != 1)
				break;
			item_audit(s);
			if (!item_is_told(&s->item))
				continue;
			s->has_item = true;
		}
		if (item_add(s) == -EMSGSIZE && s->writer.count)
			break;
		s->has_item = false;
	}
	if (n < 0 && n != -EAGAIN && s->writer.count) {
		s->failed = n;
		n = 1;
	}
	listing->result = n == -EAGAIN ? 1 : n;
	listing->frame_bytes = message_leftovers_end(&s->writer, listing->result == 1);
}

static const struct listing_ops seeking_ops = {
	.type = MESSAGE_LEFTOVERS, .fill = seeking_fill, .free = seeking_free};

int handle_leftovers(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_leftovers m;
	struct seeking *seeking;
	int err = message_get_leftovers(&m, data, len);

	if (err)
		return err;
	seeking = calloc(1, sizeof *seeking);
	if (!seeking)
		return -ENOMEM;
	seeking->remove = m.flags & MESSAGE_LEFTOVERS_REMOVE;
	seeking->age_s = m.age_s;
	handle_path(seeking->listing.path, m.path);
	return listing_start(s, &seeking->listing, &seeking_ops);
}
