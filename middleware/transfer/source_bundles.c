/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_bundles: see source_bundles.h.
 */
#include "transfer/source_bundles.h"

#include "block/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is in one ---- */

void source_bundle_free(struct source_bundle *bundle)
{
	if (!bundle)
		return;
	for (unsigned i = 0; i < bundle->count; i++)
		free(bundle->entries[i].text);
	free(bundle->entries);
	free(bundle->frame);
	free(bundle);
}

struct source_bundle *source_bundle_new(void)
{
	struct source_bundle *bundle = calloc(1, sizeof *bundle);

	if (!bundle)
		return NULL;
	bundle->entries = malloc(BUNDLE_FILES_MAX * sizeof *bundle->entries);
	bundle->frame = malloc(MESSAGE_DATA_MAX);
	if (!bundle->entries || !bundle->frame) {
		source_bundle_free(bundle);
		return NULL;
	}
	bundle_begin(&bundle->writer, bundle->frame, MESSAGE_DATA_MAX);
	return bundle;
}

int source_bundle_put(struct source_bundle *bundle, struct source_entry *e, const uint8_t *data)
{
	struct bundle_entry entry = {.status = e->status};
	uint8_t file[TRANSFER_FILE_MAX];
	uint64_t sum;
	ssize_t len;

	e->item.file.file = bundle->count + 1;
	len = transfer_put_file(&e->item.file, file, sizeof file);
	if (len < 0)
		return -EMSGSIZE;
	sum = digest_leaf(file, (size_t)len);
	if (transfer_is_bare(&e->item.file))
		e->root = digest_entry_root(sum);
	else
		e->root = digest_small_root(
			e->item.file.size, digest_leaf(data, e->item.file.size), sum);
	if (e->status)
		e->root = 0;
	entry.data = (struct wire_bytes){file, (size_t)len};
	entry.digest = e->root;
	return bundle_add(&bundle->writer, &entry);
}

void source_bundle_fail(struct source_entry *e, int error)
{
	e->status = status_from_errno(error);
	if (error == -ESTALE)
		e->text = strdup("changed while it was read");
	else if (e->status == STATUS_OTHER || e->status == STATUS_IO)
		e->text = strdup(strerror(-error)); /* others say it themselves */
	e->item.file.kind = TRANSFER_FILE_REGULAR;
	e->item.file.size = 0;
	e->item.file.target.len = 0;
	e->item.file.has = 0;
}

struct wire_bytes source_bundle_name(const struct source_file *f)
{
	return f->bundle->count ? f->bundle->entries[0].item.file.name : (struct wire_bytes){0};
}

/* ---- how they ended ---- */

void source_tell_item(
	struct source *s, struct transfer_item *item, uint16_t status, const char *text)
{
	struct transfer_stats *stats = s->run.stats;

	if (status) {
		stats->errors++;
	} else if (transfer_counts(&item->file)) {
		stats->files++;
		s->run.arrived_bytes += item->file.size;
		item->sent_bytes = item->file.size;
	}
	s->from->done(s->from->ctx, item, status, text);
}

static void finish_bundle(struct source *s, struct source_file *f)
{
	struct source_bundle *bundle = f->bundle;

	for (unsigned i = 0; i < bundle->count; i++) {
		struct source_entry *e = &bundle->entries[i];

		source_tell_item(s, &e->item, e->status, e->text ? e->text : "");
	}
	source_bundle_free(bundle);
	f->used = false;
	f->bundle = NULL;
	s->bundles--;
}

static char *copy_text(struct wire_bytes text)
{
	return text.len ? strndup((const char *)text.data, text.len) : NULL;
}

/* 0 or -EBADMSG. */
static int take_result_of(struct source_bundle *bundle, const struct bundle_result *result)
{
	struct source_entry *e;

	if (result->place > bundle->count)
		return -EBADMSG;
	bundle->told = result->place;
	e = &bundle->entries[result->place - 1];
	if (e->status) { /* we know better what is wrong with it */
		bundle->source_lost--;
		return result->status ? 0 : -EBADMSG;
	}
	e->status = result->status;
	e->item.at_sink = result->status;
	e->text = copy_text(result->text);
	return 0;
}

static uint64_t sum_roots(const struct source_bundle *bundle)
{
	uint8_t roots[BUNDLE_FILES_MAX * 8];
	size_t len = 0;

	for (unsigned i = 0; i < bundle->count; i++)
		for (unsigned k = 0; k < 8 && !bundle->entries[i].status; k++)
			roots[len++] = (uint8_t)(bundle->entries[i].root >> (56 - 8 * k));
	return digest_leaf(roots, len);
}

int source_take_results(struct source *s, const uint8_t *data, size_t len)
{
	struct bundle_results_head head;
	struct source_file *f;
	struct wire w;

	if (bundle_get_results_head(&head, &w, data, len))
		return -EBADMSG;
	f = source_find_file(s, head.file);
	if (!f || !f->bundle || f->in_io)
		return -EBADMSG;
	for (unsigned i = 0; i < head.count; i++) {
		struct bundle_result result;

		if (bundle_get_result(&result, &w, f->bundle->told) ||
			take_result_of(f->bundle, &result))
			return -EBADMSG;
	}
	if (wire_finish(&w))
		return -EBADMSG;
	if (head.more)
		return 0;
	if (f->bundle->source_lost)
		return -EBADMSG;
	if (head.digest != sum_roots(f->bundle))
		for (unsigned i = 0; i < f->bundle->count; i++) {
			struct source_entry *e = &f->bundle->entries[i];

			if (e->status)
				continue;
			e->status = STATUS_DIGEST;
			free(e->text);
			e->text = strdup("the sink has other digests of what came with it");
		}
	finish_bundle(s, f);
	return 0;
}

/* ---- cut short ---- */

void source_drop_unsent(struct source *s, struct source_bundle *bundle)
{
	for (unsigned i = 0; i < bundle->count; i++) {
		struct source_entry *e = &bundle->entries[i];

		source_tell_item(s, &e->item, e->status ? e->status : run_cut_status(&s->run),
			e->status ? e->text ? e->text : "" : s->run.verdict.text);
	}
	source_bundle_free(bundle);
}

void source_drop_bundle(struct source *s, struct source_file *f)
{
	source_drop_unsent(s, f->bundle);
	f->used = false;
	f->bundle = NULL;
	s->bundles--;
}
