/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/failures: the files of a copy that failed: told once more at its end, and written to a
 * file that --retry-from reads.
 *
 * What is in that file rftp/copy/again says.
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
struct failure {
	struct wire_bytes name; /* beneath the destination; empty: it is the whole of a source, */
	const char *source;     /* which the user called so; NULL: not known */
	const char *shown;      /* what people know it as */
	const char *why;
};
void failures_add(struct failures *, const struct failure *);
/* Tells people once more, if there were so many files that they may have missed it. */
void failures_tell(const struct failures *, struct report *, bool several);
/* 0 or -errno, reported. */
int failures_write(const struct failures *, const char *path, struct report *);

#endif
