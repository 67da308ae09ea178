/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/bench: memory, or a file here, to the memory of the other side: how fast the way is,
 * without a disk at its end.
 */
#ifndef RFTP_BENCH_H
#define RFTP_BENCH_H

#include "rftp/remote/client.h"

#define BENCH_BYTES (1ull << 30) /* without a size */

struct bench_params {
	uint64_t bytes;   /* without a file */
	const char *file; /* put: a local file is read; get: a remote one; NULL: memory */
	bool get;
};

/* 0 or -errno; errors are reported. */
int bench_run(struct client *, const struct bench_params *);

#endif
