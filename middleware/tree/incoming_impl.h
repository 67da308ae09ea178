/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_impl.h: a destination's state, and what its files ask of each other.
 *
 *   incoming.c         the destination, and the files that come one by one
 *   incoming_bare.c    directories and links, which come without bytes
 *   incoming_bundle.c  small files and links that come together
 *   incoming_whole.c   a small file that is all there
 *
 * Included by these only.
 */
#ifndef TREE_INCOMING_IMPL_H
#define TREE_INCOMING_IMPL_H

#include "tree/flush.h"
#include "tree/incoming.h"
#include "tree/incoming_disks.h"
#include "tree/incoming_keep.h"
#include "tree/incoming_links.h"
#include "tree/incoming_mark.h"
#include "tree/landing.h"
#include "tree/metadata.h"

#include <pthread.h>

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
	int stream_error;            /* it takes no more: -errno */
	struct incoming_file *files; /* of the transfer's thread */
	struct incoming_mark mark;   /* of several files */
	bool over;                   /* all has come */
	bool landed, refused;        /* some file has; or was not what was asked for */
	struct incoming_disks disks; /* that are flushed at the end */
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

/* Whether what is there stays: a file, or a link, that is not older than what comes. */
bool incoming_is_new(const struct landing_params *, const struct transfer_file *);

/* ---- incoming_bare.c ---- */

/* Makes or ends what comes without bytes; nothing where no names are kept.  0 or -errno. */
int incoming_bare(
	struct incoming *, const struct transfer_file *, const char *name, char text[512]);
/* The destination is a directory that is there now: names go beneath it.  0 or -errno. */
int incoming_open_dir(struct incoming *);
/* Where a single file went, and what names go beneath: rid of what was left behind. */
void incoming_sweep_destination(struct incoming *);
/* The file has landed: its other names, if it has some, will be links to what it is now. */
void incoming_remember(
	struct incoming *, const struct transfer_file *, const struct incoming_landed *);
/* The same of a file that stays as it was here. */
void incoming_remember_kept(struct incoming *, const struct transfer_file *, const char *name);

/* ---- incoming_whole.c: as `whole` of struct transfer_sink ---- */

int incoming_whole(void *ctx, const struct transfer_file *, const uint8_t *data, char text[512]);
/* The bytes of a landing, flushed unless its parameters say that nothing is.  0 or -errno, and why.
 */
int incoming_write(struct landing *, const struct landing_params *, const uint8_t *data,
	uint64_t bytes, char text[512]);
int incoming_whole_stream(
	void *ctx, const struct transfer_file *, const uint8_t *data, char text[512]);

/* ---- incoming_bundle.c: as `admit` and `land` of struct transfer_sink ---- */

int incoming_admit(void *ctx, const struct transfer_file *, void **cookie, char text[512]);
void incoming_land(void *ctx, struct transfer_arrival *const *, unsigned count, unsigned open_max);

#endif
