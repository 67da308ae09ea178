/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/listing: names and attributes of the server's files, for people, scripts or as JSON.
 */
#ifndef RFTP_LISTING_H
#define RFTP_LISTING_H

#include "session/calls_names.h"
#include "rftp/ui/report.h"

struct listing_params {
	bool details;          /* -l */
	bool all;              /* -a: also names that begin with '.' */
	bool single;           /* -1: one a line, which is so anyway where stdout is no terminal */
	bool human;            /* -h: sizes as 1.5G */
	const char *directory; /* the entries are beneath it; NULL: they are paths themselves */
};

void listing_print(struct report *, const struct listing_params *, const struct calls_list *);
/* All of one file's attributes; `target`: what a link says, or NULL. */
void listing_stat(
	struct report *, const char *path, const struct message_attr *, const char *target);
/* human: as 1.5G; else bytes. */
void listing_statfs(
	struct report *, const char *path, const struct message_statfs_reply *, bool human);

#endif
