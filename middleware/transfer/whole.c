/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/whole: see whole.h.
 */
#include "transfer/whole.h"

#include "block/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- source ---- */

/* How a file's FILE, and its bytes, are one. */
static uint64_t root_of(const struct message_whole *m)
{
	if (transfer_is_bare(&m->file))
		return digest_entry_root(digest_leaf(m->file_data.data, m->file_data.len));
	return digest_small_root(m->data.len, digest_leaf(m->data.data, m->data.len),
		digest_leaf(m->file_data.data, m->file_data.len));
}

int whole_read(const struct transfer_source *from, struct transfer_reading *reading, uint32_t most,
	struct transfer_item *item, struct whole_room *room, struct message_whole *out)
{
	int64_t n;
	ssize_t len;

	if (item->error)
		return item->error;
	if (transfer_is_bare(&item->file) && item->file.kind != TRANSFER_FILE_HARD_LINK) {
		n = 0;
	} else if (!item->closed || !from->read) {
		return -EFBIG;
	} else {
		reading->to = room->data;
		reading->room = reading->most = most;
		n = from->read(from->ctx, reading, item);
	}
	if (n == -EFBIG)
		item->closed = false;
	if (n < 0)
		return n == -ENOBUFS ? -EFBIG : (int)n;
	item->file.file = 1;
	len = transfer_put_file(&item->file, room->file_data, sizeof room->file_data);
	if (len < 0)
		return -ENAMETOOLONG;
	*out = (struct message_whole){
		.file_data = {room->file_data, (size_t)len},
		.file = item->file,
		.data = {room->data, (size_t)n},
	};
	out->digest = root_of(out);
	item->sent_bytes = (uint64_t)n;
	return 0;
}

void whole_read_end(const struct transfer_source *from, struct transfer_reading *reading)
{
	if (from->read_end)
		from->read_end(from->ctx, reading);
}

/* ---- sink ---- */

static void set_outcome(struct whole_arrival *a, uint16_t status, const char *text)
{
	a->status = status;
	free(a->text);
	a->text = *text ? strdup(text) : NULL;
}

/* Its strings, each terminated, in memory of their own: behind each is a field that was read. */
static int copy_file(struct whole_arrival *a)
{
	const struct wire_bytes *data = &a->whole.file_data;
	struct transfer_file *file = &a->arrival.file;

	a->memory = malloc(data->len + 1);
	if (!a->memory)
		return -ENOMEM;
	memcpy(a->memory, data->data, data->len);
	if (transfer_get_file(file, a->memory, data->len))
		return -EBADMSG;
	transfer_file_terminate(file);
	if (a->name)
		file->name = (struct wire_bytes){(const uint8_t *)a->name, strlen(a->name)};
	a->arrival.data = a->whole.data.data;
	return 0;
}

static void check(struct whole_arrival *a)
{
	uint64_t root = root_of(&a->whole);
	char text[VERDICT_TEXT];
	int err = copy_file(a);

	if (err) {
		set_outcome(a, status_from_errno(err), "");
	} else if (root != a->whole.digest) {
		snprintf(text, sizeof text,
			"digest %016llx of what it is and holds, the source has %016llx",
			(unsigned long long)root, (unsigned long long)a->whole.digest);
		set_outcome(a, STATUS_DIGEST, text);
	}
}

static void open_bare(const struct transfer_sink *to, struct whole_arrival *a)
{
	char text[VERDICT_TEXT] = "";
	struct end *end = NULL;
	int err = to->open(to->ctx, &a->arrival.file, &end, &a->arrival.cookie, text);

	set_outcome(a, err ? status_from_errno(err) : STATUS_OK, text);
}

/* Directories and what is only told, in their order: before what is in them, or after. */
static void open_all(
	const struct transfer_sink *to, struct whole_arrival *list, unsigned count, bool ends)
{
	for (unsigned i = 0; i < count; i++) {
		const uint8_t kind = list[i].arrival.file.kind;

		if (!list[i].status &&
			(ends ? kind == TRANSFER_FILE_DIRECTORY_END
			      : kind == TRANSFER_FILE_DIRECTORY || kind == TRANSFER_FILE_SPECIAL))
			open_bare(to, &list[i]);
	}
}

static bool lands(const struct whole_arrival *a)
{
	const uint8_t kind = a->arrival.file.kind;

	return !a->status && (kind == TRANSFER_FILE_REGULAR || kind == TRANSFER_FILE_LINK);
}

static void land_one(const struct transfer_sink *to, struct whole_arrival *a)
{
	char text[VERDICT_TEXT] = "";
	int err;

	if (a->arrival.file.kind == TRANSFER_FILE_LINK) {
		open_bare(to, a);
		return;
	}
	err = to->whole(to->ctx, &a->arrival.file, a->arrival.data, text);
	set_outcome(a, err ? status_from_errno(err) : STATUS_OK, text);
}

/* Those that are whole, with one flush. */
static void land_many(const struct transfer_sink *to, struct whole_arrival *list, unsigned count,
	unsigned open_max, struct transfer_arrival **arrivals)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		struct whole_arrival *a = &list[i];
		char text[VERDICT_TEXT] = "";
		int err;

		if (!lands(a))
			continue;
		err = to->admit(to->ctx, &a->arrival.file, &a->arrival.cookie, text);
		if (err)
			set_outcome(a, status_from_errno(err), text);
		else
			arrivals[n++] = &a->arrival;
	}
	to->land(to->ctx, arrivals, n, open_max);
	for (unsigned i = 0; i < count; i++) {
		struct whole_arrival *a = &list[i];

		if (!lands(a))
			continue;
		a->status = a->arrival.status;
		a->text = a->arrival.text;
	}
}

void whole_land(const struct transfer_sink *to, struct whole_arrival *list, unsigned count,
	unsigned open_max)
{
	struct transfer_arrival **arrivals = count > 1 && to->land && !(to->unsynced && !to->flush)
						     ? calloc(count, sizeof(*arrivals))
						     : NULL;

	for (unsigned i = 0; i < count; i++)
		check(&list[i]);
	open_all(to, list, count, false);
	if (arrivals)
		land_many(to, list, count, open_max, arrivals);
	for (unsigned i = 0; i < count && !arrivals; i++)
		if (lands(&list[i]))
			land_one(to, &list[i]);
	open_all(to, list, count, true);
	for (unsigned i = 0; i < count; i++) {
		struct whole_arrival *a = &list[i];

		if (!a->status)
			a->digest = a->whole.digest;
		to->done(to->ctx, &a->arrival.file, a->status, a->text ? a->text : "");
	}
	free(arrivals);
}

void whole_arrival_fini(struct whole_arrival *a)
{
	free(a->memory);
	free(a->text);
	a->memory = NULL;
	a->text = NULL;
}
