/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/reread: the digest of a file that is read again.
 */
#ifndef TRANSFER_REREAD_H
#define TRANSFER_REREAD_H

#include "end/end.h"

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Reads all of an end's file again: with `cached` as the page cache has it, else as the disk does,
 * by O_DIRECT or, where that cannot be, after what the cache has of it was written and dropped.
 * Computes the root of its digest as if it had been sent
 * in such blocks.  A disk that has a cache of its own may answer from that.  Takes as long as
 * reading does; ends early, with -ECANCELED, when *stop is set.  0; -ENODATA: it has not that size;
 * -errno.
 */
int reread_root(const struct end *, uint64_t size, uint32_t block_bytes, uint64_t entry,
	bool cached, const atomic_bool *stop, uint64_t *root);

#endif
