/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sum_command: `sum` and `cmp`: the sums of files, lists of them that are checked, and two
 * files that are compared by them.
 */
#ifndef RFTP_SUM_COMMAND_H
#define RFTP_SUM_COMMAND_H

#include "rftp/remote/client.h"

struct sum_params {
	const char *algorithm; /* NULL: xxh128, or with `list` what the length of its sums says */
	const char *list;      /* check what it says; "-": standard input; NULL: print sums */
	bool tag;              /* lines say which sum it is, as those of BSD do */
	bool recursive;        /* of a directory all files in it, as the setting `filter` has it */
	bool shell;            /* names are of the server that is open */
};

/* Names: files, "-" for standard input, or URLs, which may be patterns; with a list none, or where
 * its relative names begin.  In the shell absolute remote paths as patterns.  0 or -errno
 * (reported). */
int sum_command(struct client *, const struct sum_params *, const char *const *names, size_t count);

struct cmp_file {
	const char *shown,
		*path; /* a URL or a file; with `remote` a path of the server that is open */
	bool remote;
};
/* Whether both are the same: 0; -EREMOTEIO: they differ, or -errno (reported). */
int sum_compare(struct client *, const struct cmp_file files[2]);

#endif
