/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/end_impl.h: what a kind of end implements.  Included by middleware/end/ only.
 */
#ifndef END_END_IMPL_H
#define END_END_IMPL_H

#include "end/end.h"

#include <libaio.h>

struct end_ops {
	/*
	 * Moves the block's bytes now and returns 0 (block->length, block->error are set), or
	 * prepares `iocb` for libaio and returns 1; `finish` is then called with the kernel's
	 * result.  What may wait for a peer gives up with -ECANCELED as soon as `cancel_fd` is
	 * readable.
	 */
	int (*start)(struct end *, struct block *, struct iocb *iocb, int cancel_fd);
	/* `result`: bytes or -errno.  May do the unaligned rest by itself. */
	void (*finish)(struct end *, struct block *, long result);
	int (*sync)(struct end *);
	int (*free)(struct end *);
	bool is_stream;
};

struct end {
	const struct end_ops *ops;
	bool direct;
};

#endif
