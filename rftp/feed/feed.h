/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/feed/feed: many live streams to the server at once, each to a directory of its own, in
 * segments.
 */
#ifndef RFTP_FEED_H
#define RFTP_FEED_H

#include "rftp/remote/client.h"

/* `words`: "NAME=SOURCE" each.  The session is open, or was.  Ends when all sources have ended, or
 * by a signal, in order.  0 or -errno, reported. */
int feed_run(struct client *, const char *const *words, size_t count, const char *target);
/* The command line: the last of the names is the URL. */
int feed_main(struct client *, char *const *names, int count);

#endif
