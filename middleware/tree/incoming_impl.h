/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_impl.h: a destination's state, and what its files ask of each other.
 *
 *   incoming.c         the destination, and what comes one by one
 *   incoming_bundle.c  small files and links that come together
 *   incoming_whole.c   a small file that is all there
 *
 * Included by these only.
 */
#ifndef TREE_INCOMING_IMPL_H
#define TREE_INCOMING_IMPL_H

#include "tree/flush.h"
#include "tree/incoming.h"
#include "tree/incoming_keep.h"
#include "tree/incoming_links.h"
#include "tree/landing.h"
#include "tree/metadata.h"

#include <pthread.h>

#define INCOMING_DISKS_MAX 16u
#define INCOMING_NAME_BYTES (TRANSFER_NAME_MAX + 1)

/* A file on its way: the transfer's cookie. */
struct incoming_file {
	struct incoming_file *next;
	uint32_t file;                 /* its number in the transfer */
	struct landing *landing;       /* NULL: nothing to commit */
	struct incoming_landed landed; /* of one that hard links may follow to */
	uint64_t bytes;
};

struct incoming {
	struct incoming_params params;
	char *path;
	struct incoming_keep keep;
	pthread_mutex_t keep_lock; /* worker threads ask, too */
	struct incoming_links links;
	int dir;                     /* what names go beneath; -1 = not there (yet) */
	bool used;                   /* the stream */
	struct incoming_file *files; /* of the transfer's thread */
	/* of several files */
	char first[256];        /* the first name, up to its '/' */
	struct tree_mark *mark; /* NULL: nothing is gone on with */
	bool marked, over;      /* it was tried to have a mark */
	bool busy;              /* somebody else has it */
	bool landed, refused;   /* some file has; or was not what was asked for */
	struct timespec began;
	/* file systems that are flushed at the end */
	struct {
		dev_t device;
		int fd;
	} disks[INCOMING_DISKS_MAX];
	unsigned disk_count;
	int disks_error; /* one of them could not be noted */
	struct transfer_sink sink;
	struct flush_costs costs;
};

/* ---- incoming.c ---- */

/* As incoming_keep_metadata, from any thread. */
int incoming_metadata(struct incoming *, const struct transfer_file *, struct metadata *);
/* The peer knows what it sends, and not where it would have gone: an export's path is named. */
int incoming_refuse(const struct incoming *, const char *name, int err, char text[512]);

struct landing_params;
/* Where a file goes, and with what.  0; -EEXIST: what is there stays; -errno. */
int incoming_aim(
	struct incoming *, const struct transfer_file *, const char *name, struct landing_params *);

/* ---- incoming_whole.c: as `whole` of struct transfer_sink ---- */

int incoming_whole(void *ctx, const struct transfer_file *, const uint8_t *data, char text[512]);

/* ---- incoming_bundle.c: as `admit` and `land` of struct transfer_sink ---- */

int incoming_admit(void *ctx, const struct transfer_file *, void **cookie, char text[512]);
void incoming_land(void *ctx, struct transfer_arrival *const *, unsigned count, unsigned open_max);

#endif
