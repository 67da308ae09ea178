/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/bundle_files: see bundle_files.h.
 */
#include "transfer/bundle_files.h"

#include "block/digest.h"
#include "proto/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bundle_files_fini(struct bundle_files *files)
{
	for (unsigned i = 0; i < files->count; i++)
		free(files->entries[i].arrival.text);
	free(files->entries);
	free(files->frame);
}

void bundle_files_fail(struct bundle_file *f, uint16_t status, const char *text)
{
	struct transfer_arrival *a = &f->arrival;

	if (a->status)
		return;
	a->status = status;
	free(a->text);
	a->text = *text ? strdup(text) : NULL;
}

static int parse_entry(struct bundle_files *files, struct wire *w, uint32_t block)
{
	struct bundle_file *f = &files->entries[files->count];
	struct bundle_entry entry;

	if (bundle_get_entry(&entry, w, files->count + 1) || entry.file.size > block - files->bytes)
		return -EBADMSG;
	*f = (struct bundle_file){
		.arrival.file = entry.file,
		.digest = entry.digest,
		.sum = digest_leaf(entry.data.data, entry.data.len),
	};
	if (entry.status)
		bundle_files_fail(f, entry.status, TRANSFER_AT_SOURCE);
	files->bytes += (uint32_t)entry.file.size;
	files->count++;
	return 0;
}

int bundle_files_parse(struct bundle_files *files, const uint8_t *data, size_t len, uint32_t block,
	uint32_t *number)
{
	struct bundle_head head = {0};
	struct wire w;
	int err = 0;

	*files = (struct bundle_files){.frame = malloc(len)};
	if (!files->frame)
		return -ENOMEM;
	memcpy(files->frame, data, len);
	if (bundle_get_head(&head, &w, files->frame, len))
		return -EBADMSG;
	files->entries = malloc(head.count * sizeof *files->entries);
	if (!files->entries)
		return -ENOMEM;
	for (unsigned i = 0; i < head.count && !err; i++)
		err = parse_entry(files, &w, block);
	if (!err && wire_finish(&w))
		err = -EBADMSG;
	if (err)
		return err;
	/* the byte behind each of them has been read, and is always there */
	for (unsigned i = 0; i < files->count; i++) {
		struct transfer_file *file = &files->entries[i].arrival.file;

		file->file = head.file; /* a number that no file beside the bundle has */
		transfer_file_terminate(file);
	}
	*number = head.file;
	return 0;
}

uint64_t bundle_files_sum(const struct bundle_files *files)
{
	uint8_t roots[BUNDLE_FILES_MAX * 8];
	size_t len = 0;

	for (unsigned i = 0; i < files->count; i++)
		for (unsigned k = 0; k < 8 && !files->entries[i].arrival.status; k++)
			roots[len++] = (uint8_t)(files->entries[i].root >> (56 - 8 * k));
	return digest_leaf(roots, len);
}
