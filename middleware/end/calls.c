/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/calls.c: an end whose bytes go to the caller, block by block.
 *
 * Owns nothing but the way there.  Writing may take as long as a file's does, and must not wait for
 * a peer: a queue that is cancelled does not reach it.
 */
#include "end/end_impl.h"

#include <errno.h>
#include <stdlib.h>

struct end_called {
	struct end end; /* first */
	const struct end_calls *calls;
	void *ctx;
};

static int calls_start(struct end *end, struct block *block, struct iocb *iocb, int cancel_fd)
{
	struct end_called *c = (struct end_called *)end;

	(void)iocb;
	(void)cancel_fd;
	if (c->calls->fill)
		c->calls->fill(c->ctx, block);
	else
		block->error = c->calls->write(c->ctx, block);
	return 0;
}

static int calls_sync(struct end *end)
{
	struct end_called *c = (struct end_called *)end;

	return c->calls->sync ? c->calls->sync(c->ctx) : 0;
}

static int calls_free(struct end *end)
{
	struct end_called *c = (struct end_called *)end;
	int err = c->calls->free ? c->calls->free(c->ctx) : 0;

	free(c);
	return err;
}

static const struct end_ops calls_ops = {
	.start = calls_start, .sync = calls_sync, .free = calls_free, .is_stream = true};

static const struct end_ops fill_ops = {
	.start = calls_start, .sync = calls_sync, .free = calls_free, .is_stream = false};

int end_calls_open(const struct end_calls *calls, void *ctx, struct end **out)
{
	struct end_called *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->end.ops = calls->fill ? &fill_ops : &calls_ops;
	c->calls = calls;
	c->ctx = ctx;
	*out = &c->end;
	return 0;
}
