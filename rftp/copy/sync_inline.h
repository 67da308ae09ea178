/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_inline: what a sync from a server copies, if that is few small files: each is
 * asked for in a request of its own, and directories and links are made as the listing has them, so
 * that no data channels are needed.
 */
#ifndef RFTP_SYNC_INLINE_H
#define RFTP_SYNC_INLINE_H

#include "rftp/copy/mover.h"
#include "rftp/copy/sync.h"
#include "tree/compare.h"

/*
 * The names of a plan's `copy`, in *steps (zeroed): of a directory that comes as a whole, and all
 * in it, each, directories with a '/' behind.  1; 0: they are for a transfer, as they are more than
 * `most_files`, one is larger than `most` bytes or has holes, is a special file, or could not
 * be looked at, or there is no file among them; -ENOMEM.  Pure; *steps is the caller's to free.
 */
int sync_inline_fits(const struct compare_list *from, const struct compare_plan *, uint32_t most,
	unsigned most_files, struct selection *steps);

struct sync_inline {
	struct mover *mover;
	const struct sync_params *params;
	const struct compare_list *from;
	const struct incoming_params *incoming;
};
/* Copies these.  Names that a transfer has to copy after all are added to *left.  0 or -errno, as
 * mover_receive. */
int sync_inline_copy(const struct sync_inline *, struct selection *steps, struct selection *left);

#endif
