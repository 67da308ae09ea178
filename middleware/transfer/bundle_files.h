/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/bundle_files: the entries of one bundle that arrives, as FILES tells of them, and what
 * became of each.  Pure.
 */
#ifndef TRANSFER_BUNDLE_FILES_H
#define TRANSFER_BUNDLE_FILES_H

#include "transfer/transfer.h"

#include <stddef.h>
#include <stdint.h>

struct bundle_file {
	struct transfer_arrival arrival; /* its text is allocated */
	uint64_t digest, root;           /* the source's, and ours */
	uint64_t sum;                    /* of its FILE */
};

struct bundle_files {
	uint8_t *frame;              /* FILES: names lie in it, each with a NUL behind */
	struct bundle_file *entries; /* in order */
	unsigned count;
	uint32_t bytes; /* of all of them: they cross in one block */
};

/* From FILES, where a block has at most `block` bytes; *number is the bundle's.  0, -EBADMSG or
 * -ENOMEM; bundle_files_fini in any case. */
int bundle_files_parse(
	struct bundle_files *, const uint8_t *data, size_t len, uint32_t block, uint32_t *number);
void bundle_files_fini(struct bundle_files *);
/* What failed first stays; text "": none. */
void bundle_files_fail(struct bundle_file *, uint16_t status, const char *text);
/* Over the roots of all that did not fail, as RESULTS says it. */
uint64_t bundle_files_sum(const struct bundle_files *);

#endif
