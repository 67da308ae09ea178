/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/source_bundles: a source's bundles, from the first entry to the last of their outcomes.
 *
 * A worker fills one (transfer/source_gathers.c), then it is the transfer's thread's.  For the
 * source's own files, as source_impl.h is.
 */
#ifndef TRANSFER_SOURCE_BUNDLES_H
#define TRANSFER_SOURCE_BUNDLES_H

#include "transfer/source_impl.h"

struct source_entry {
	struct transfer_item item;
	uint64_t root;
	uint16_t status;
	char *text; /* NULL: it needs none */
};

struct source_bundle {
	struct source_entry *entries;
	unsigned count;
	uint32_t bytes;
	unsigned told;        /* the last place that RESULTS have named */
	unsigned source_lost; /* entries that failed here, less those of them that were named */
	uint8_t *frame;       /* FILES, until it is sent */
	struct bundle_writer writer;
};

/* NULL: no memory. */
struct source_bundle *source_bundle_new(void);
void source_bundle_free(struct source_bundle *); /* takes NULL */
/* Puts the entry behind the others into FILES, with its bytes' digest.  0, or -EMSGSIZE: it is
 * full.
 */
int source_bundle_put(struct source_bundle *, struct source_entry *, const uint8_t *data);
/* It could not be read: it is announced with what is wrong, as people miss it on the other side,
 * too. */
void source_bundle_fail(struct source_entry *, int error);

/* The outcome of an item, for the statistics and the caller. */
void source_tell_item(struct source *, struct transfer_item *, uint16_t status, const char *text);
/* A transfer that was cut short: tells the outcomes of one that was not sent, and frees it. */
void source_drop_unsent(struct source *, struct source_bundle *);

#endif
