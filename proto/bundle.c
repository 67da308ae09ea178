/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/bundle.c: the codecs of FILES and RESULTS.
 *
 * Owns their layout and limits.  What may be in a FILE is proto/transfer's.
 */
#include "proto/bundle.h"

#include <errno.h>

#define BUNDLE_HEAD_BYTES 6u    /* file 32, count 16 */
#define BUNDLE_ENTRY_MIN 43u    /* a FILE without a name is 31 bytes */
#define BUNDLE_RESULTS_HEAD 15u /* file 32, more 8, digest 64, count 16 */
#define BUNDLE_RESULT_MIN 6u

static size_t bundle_room(size_t size)
{
	return size < MESSAGE_DATA_MAX ? size : MESSAGE_DATA_MAX;
}

/* ---- FILES ---- */

void bundle_begin(struct bundle_writer *writer, void *buf, size_t size)
{
	wire_init_put(&writer->wire, buf, bundle_room(size));
	writer->count = 0;
	/* the head, written again when both are known */
	wire_put_u32(&writer->wire, 0);
	wire_put_u16(&writer->wire, 0);
}

int bundle_add(struct bundle_writer *writer, const struct bundle_entry *entry)
{
	struct wire w = writer->wire;

	if (writer->count == BUNDLE_FILES_MAX)
		return -EMSGSIZE;
	wire_put_bytes(&w, entry->data, UINT16_MAX);
	wire_put_u16(&w, entry->status);
	wire_put_u64(&w, entry->digest);
	if (w.error)
		return w.error;
	writer->wire = w;
	writer->count++;
	return 0;
}

ssize_t bundle_end(struct bundle_writer *writer, uint32_t file)
{
	struct wire head;

	if (writer->wire.error)
		return writer->wire.error;
	if (!writer->count || !file)
		return -EBADMSG;
	wire_init_put(&head, writer->wire.start, BUNDLE_HEAD_BYTES);
	wire_put_u32(&head, file);
	wire_put_u16(&head, writer->count);
	return wire_put_end(&writer->wire);
}

int bundle_get_head(struct bundle_head *m, struct wire *w, const void *buf, size_t len)
{
	wire_init_get(w, buf, len);
	m->file = wire_get_u32(w);
	m->count = wire_get_u16(w);
	wire_require(w, m->file && m->count >= 1 && m->count <= BUNDLE_FILES_MAX);
	/* a count that its bytes cannot hold is refused before anybody makes room for it */
	if (!w->error && wire_left(w) < (size_t)m->count * BUNDLE_ENTRY_MIN)
		w->error = -EMSGSIZE;
	return w->error;
}

static bool bundle_entry_ok(const struct bundle_entry *e, unsigned place)
{
	if (e->file.file != place)
		return false;
	if (e->status && (e->file.size || e->digest))
		return false;
	/* a hard link names the number of its file, and those of bundles have none */
	return e->file.kind == TRANSFER_FILE_REGULAR ||
	       (transfer_is_bare(&e->file) && e->file.kind != TRANSFER_FILE_HARD_LINK &&
		       !e->file.size);
}

int bundle_get_entry(struct bundle_entry *e, struct wire *w, unsigned place)
{
	e->data = wire_get_bytes(w, UINT16_MAX);
	e->status = wire_get_u16(w);
	e->digest = wire_get_u64(w);
	if (w->error)
		return w->error;
	wire_require(w, !transfer_get_file(&e->file, e->data.data, e->data.len) &&
				bundle_entry_ok(e, place));
	return w->error;
}

/* ---- RESULTS ---- */

void bundle_results_begin(struct bundle_writer *writer, void *buf, size_t size)
{
	wire_init_put(&writer->wire, buf, bundle_room(size));
	writer->count = 0;
	wire_put_u32(&writer->wire, 0);
	wire_put_u8(&writer->wire, 0);
	wire_put_u64(&writer->wire, 0);
	wire_put_u16(&writer->wire, 0);
}

static bool bundle_result_ok(const struct bundle_result *m, unsigned after)
{
	return m->place > after && m->place <= BUNDLE_FILES_MAX && (m->status || m->text.len);
}

int bundle_results_add(struct bundle_writer *writer, const struct bundle_result *m)
{
	struct wire w = writer->wire;

	if (writer->count == BUNDLE_FILES_MAX)
		return -EMSGSIZE;
	wire_require(&w, bundle_result_ok(m, 0));
	wire_put_u16(&w, m->place);
	wire_put_u16(&w, m->status);
	wire_put_bytes(&w, m->text, MESSAGE_TEXT_MAX);
	if (w.error)
		return w.error;
	writer->wire = w;
	writer->count++;
	return 0;
}

static bool bundle_results_ok(const struct bundle_results_head *m)
{
	return m->file && m->count <= BUNDLE_FILES_MAX &&
	       (m->more ? m->more == 1 && m->count && !m->digest : true);
}

ssize_t bundle_results_end(struct bundle_writer *writer, uint32_t file, bool more, uint64_t digest)
{
	const struct bundle_results_head m = {
		.file = file, .more = more, .count = writer->count, .digest = digest};
	struct wire head;

	if (writer->wire.error)
		return writer->wire.error;
	if (!bundle_results_ok(&m))
		return -EBADMSG;
	wire_init_put(&head, writer->wire.start, BUNDLE_RESULTS_HEAD);
	wire_put_u32(&head, file);
	wire_put_u8(&head, more);
	wire_put_u64(&head, digest);
	wire_put_u16(&head, writer->count);
	return wire_put_end(&writer->wire);
}

int bundle_get_results_head(
	struct bundle_results_head *m, struct wire *w, const void *buf, size_t len)
{
	wire_init_get(w, buf, len);
	m->file = wire_get_u32(w);
	m->more = wire_get_u8(w);
	m->digest = wire_get_u64(w);
	m->count = wire_get_u16(w);
	wire_require(w, bundle_results_ok(m));
	if (!w->error && wire_left(w) < (size_t)m->count * BUNDLE_RESULT_MIN)
		w->error = -EMSGSIZE;
	return w->error;
}

int bundle_get_result(struct bundle_result *m, struct wire *w, unsigned after)
{
	m->place = wire_get_u16(w);
	m->status = wire_get_u16(w);
	m->text = wire_get_bytes(w, MESSAGE_TEXT_MAX);
	wire_require(w, bundle_result_ok(m, after));
	return w->error;
}
