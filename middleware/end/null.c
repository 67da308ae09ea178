/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/null.c: an end without bytes: memory to memory, for bench.
 *
 * Keeps nothing but its size, so any number of queues may use one at once.  It gives what lies
 * before `size`; a sink opens it with UINT64_MAX.
 */
#include "end/end_impl.h"

#include <errno.h>
#include <stdlib.h>

struct end_null {
	struct end end; /* first */
	uint64_t size;
};

static int null_start(struct end *end, struct block *block, struct iocb *iocb, int cancel_fd)
{
	const struct end_null *null = (const struct end_null *)end;
	uint64_t left = block->offset < null->size ? null->size - block->offset : 0;

	(void)iocb;
	(void)cancel_fd;
	if (block->length > left)
		block->length = (uint32_t)left;
	return 0;
}

static int null_free(struct end *end)
{
	free(end);
	return 0;
}

static const struct end_ops null_ops = {.start = null_start, .free = null_free};

int end_null_open(uint64_t size, struct end **out)
{
	struct end_null *null = calloc(1, sizeof(*null));

	*out = NULL;
	if (!null)
		return -ENOMEM;
	null->end.ops = &null_ops;
	null->size = size;
	*out = &null->end;
	return 0;
}
