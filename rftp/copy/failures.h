/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/failures: the files of a copy that failed: told once more at its end, and written to a
 * file that --retry-from reads.
 *
 * In that file each name is as it crossed, beneath the destination, one a line.
 */
#ifndef RFTP_FAILURES_H
#define RFTP_FAILURES_H

#include "proto/wire.h"
#include "rftp/ui/report.h"

struct failures {                 /* zeroed: none */
	struct text names, shown; /* each ended by NUL */
	uint64_t count;
};

void failures_fini(struct failures *);
/* `shown`: what people know it as. */
void failures_add(struct failures *, struct wire_bytes name, const char *shown, const char *why);
/* Tells people once more, if there were so many files that they may have missed it. */
void failures_tell(const struct failures *, struct report *, bool several);
/* 0 or -errno, reported. */
int failures_write(const struct failures *, const char *path, struct report *);

struct filter;
/* Adds rules by which only what is named in a file is copied.  0 or -errno; `why` then says it. */
int failures_read(const char *path, struct filter *, char *why, size_t size);

#endif
