/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listing: an answer of many frames, about names.
 *
 * It is read as fast as the client takes it: a frame is made when the ones before have left, so an
 * answer of any length costs one frame of memory.  Each frame is a task: a directory may take its
 * time.
 */
#ifndef RFTPD_LISTING_H
#define RFTPD_LISTING_H

#include "rftpd/serve/session_task.h"
#include "rftpd/serve/exports.h"

#define LISTING_FRAME_BYTES 32768u

struct listing;

struct listing_ops {
	uint16_t type; /* of the request */
	/* In a thread of the pool: the next frame into `frame`, `frame_bytes` and `result`.  The
	 * path leads somewhere. */
	void (*fill)(struct listing *);
	void (*free)(struct listing *);
};

struct listing { /* who makes one embeds it first */
	struct session_task task;
	const struct listing_ops *ops;
	uint8_t frame[LISTING_FRAME_BYTES];
	ssize_t frame_bytes; /* or what putting it together failed with */
	int result;          /* 1: there is more; 0; -errno: a refusal ends the listing */
	char path[MESSAGE_PATH_MAX + 1];
	/* where it leads: a directory of an export, or the one that lists them */
	const struct place *place;
	const char *export_name; /* NULL: exports have no names */
	const char *beneath;
	int found; /* 0, -errno, or VIEW_TOP */
};

/* Begins one, which is taken over; `path` is set.  0 or -errno as of handlers. */
int listing_start(struct daemon_session *, struct listing *, const struct listing_ops *);
/* The next frame of the session's listing. */
int listing_more(struct daemon_session *);
/* Takes NULL. */
void listing_free(struct listing *);

#endif
