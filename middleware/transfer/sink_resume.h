/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/sink_resume: one arriving file that can be gone on with: what of it is there already,
 * and the notes of what lands, for the next transfer.
 *
 * Notes are gathered in the transfer's thread and handed to a worker thread all together, about
 * once a second or some dozen megabytes: what has landed since is sent again if this side is
 * killed.  Knows no frames and no journal.
 */
#ifndef TRANSFER_SINK_RESUME_H
#define TRANSFER_SINK_RESUME_H

#include "transfer/io_pool.h"
#include "transfer/transfer.h"

struct sink_resume {
	struct io_pool_job job; /* first */
	const struct transfer_sink *to;
	void *cookie;
	uint32_t block_bytes;
	bool out;                               /* the job is with a worker thread */
	bool more;                              /* to be found, by another job */
	struct transfer_notes found;            /* by the first job */
	size_t told;                            /* of these, to the source */
	struct transfer_notes gathered, noting; /* those to come, and those of the job */
	uint64_t noted_ns;                      /* when a job began */
	uint64_t note_bytes;                    /* gathered: another one begins */
	void *owner;                            /* the caller's */
};

void transfer_notes_free(struct transfer_notes *);

/* 0 or -ENOMEM. */
int sink_resume_new(const struct transfer_sink *, void *cookie, uint64_t size, uint32_t block_bytes,
	struct sink_resume **out);
/* Its job is not out.  Takes NULL. */
void sink_resume_free(struct sink_resume *);
/* The job that finds what is there; again, while it finds more. */
void sink_resume_recall(struct sink_resume *, struct io_pool *);
/* From any thread: a job that reads the file ends soon. */
void sink_resume_stop(struct sink_resume *);
/* A block was verified and written.  May start a job. */
void sink_resume_add(struct sink_resume *, struct io_pool *, uint64_t index, uint64_t leaf);
/* Starts a job if it is time for one: when one has come back, and now and then. */
void sink_resume_note(struct sink_resume *, struct io_pool *);
/* The record of a job that was collected; NULL: it is of another kind.  It is not out any more. */
struct sink_resume *sink_resume_of_job(struct io_pool_job *);
/* In this thread: notes what is gathered.  The job is not out. */
void sink_resume_flush(struct sink_resume *);

#endif
