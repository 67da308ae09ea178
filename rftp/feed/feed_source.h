/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/feed/feed_source: one device of a feed: its name, and the FIFO, file or command that its
 * stream is read from.
 */
#ifndef RFTP_FEED_SOURCE_H
#define RFTP_FEED_SOURCE_H

#include "end/end.h"
#include "rftp/feed/feed_keeper.h"

#include <stdint.h>
#include <sys/types.h>

struct feed_source {
	char *name;
	const char *from;                 /* what follows '=' in the user's word */
	struct end *end;                  /* open; NULL: not yet, or taken */
	pid_t pid;                        /* of the command; 0: none, or reaped */
	const struct feed_keeper *keeper; /* of its command */
	bool ended;                       /* its stream, by itself or in order */
	bool untold;                      /* and what became of it waits for its command's end */
	uint64_t bytes, packets, dropped; /* of it, in the end */
};

enum feed_reap {
	FEED_REAP_IF_ENDED, /* waits for the moment at most in which an end follows its stream's */
	FEED_REAP_SOON,     /* its stream has ended: gives it some time to follow, then ends it */
	FEED_REAP_NOW,      /* ends it */
};

/* "NAME=SOURCE".  -EINVAL: `*why` says what is wrong; -ENOMEM. */
int feed_source_parse(struct feed_source *, const char *word, const char **why);
void feed_source_fini(struct feed_source *);
bool feed_source_is_command(const struct feed_source *);

/* Opens it, for reading without waiting for a writer; of a command, starts it.  `share`: how many
 * sources there are, which have to share what pipes may hold.  `keeper` outlives the command.  0 or
 * -errno. */
int feed_source_open(struct feed_source *, unsigned share, const struct feed_keeper *keeper);
/* The command's exit status as the shell counts it (128 + signal); -1: no command, or it goes on.
 * What the command has left running in its process group is ended with it. */
int feed_source_reap(struct feed_source *, enum feed_reap);

#endif
