/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_ends: see job_ends.h.
 */
#include "rftpd/jobs/job_ends.h"

#include "rftpd/jobs/job_outcome.h"
#include "rftpd/jobs/transfer_job.h"

#include <errno.h>

/* ---- what the request's flags mean ---- */

static enum walk_links links_of(const struct message_data_request *request)
{
	if (request->flags & MESSAGE_DATA_FOLLOW_LINKS)
		return WALK_LINKS_FOLLOW;
	return request->flags & MESSAGE_DATA_SKIP_LINKS ? WALK_LINKS_SKIP : WALK_LINKS_KEEP;
}

/* What FILE says beyond mode and time. */
static uint16_t keep_of(const struct message_data_request *request)
{
	const uint32_t flags = request->flags;

	return (uint16_t)((flags & MESSAGE_DATA_OWNER ? TRANSFER_HAS_OWNER : 0) |
			  (flags & MESSAGE_DATA_GROUP ? TRANSFER_HAS_GROUP : 0) |
			  (flags & MESSAGE_DATA_XATTRS ? TRANSFER_HAS_XATTRS : 0) |
			  (flags & MESSAGE_DATA_ACLS ? TRANSFER_HAS_ACLS : 0));
}

static enum end_direct direct_of(const struct message_data_request *request)
{
	static const enum end_direct values[] = {END_DIRECT_AUTO, END_DIRECT_ON, END_DIRECT_OFF};

	return values[request->direct];
}

/* What the client asks for, but no less than the administrator wants. */
static enum incoming_fsync fsync_of(const struct transfer_job *job)
{
	uint32_t flags = job->request.flags;
	enum incoming_fsync least = (enum incoming_fsync)job->session->daemon->settings->fsync;
	enum incoming_fsync asked = flags & MESSAGE_DATA_FSYNC_NEVER ? INCOMING_FSYNC_NEVER
				    : flags & MESSAGE_DATA_FSYNC_END ? INCOMING_FSYNC_END
								     : INCOMING_FSYNC_FILE;

	return asked > least ? asked : least;
}

/* ---- opening ---- */

static int open_store(struct transfer_job *job, const struct place *place)
{
	const struct message_data_request *request = &job->request;
	bool null = request->kind == MESSAGE_DATA_NULL;
	struct incoming_params params = {
		.kind = null                                 ? INCOMING_NULL
			: request->flags & MESSAGE_DATA_INTO ? INCOMING_INTO
							     : INCOMING_AS,
		.path = job->beneath,
		.fd = -1,
		.replace = !(request->flags & MESSAGE_DATA_NO_REPLACE),
		.update = request->flags & MESSAGE_DATA_UPDATE,
		.attributes = request->flags & MESSAGE_DATA_INTO,
		.keep = TRANSFER_HAS_ALL,
		.preallocate = request->flags & MESSAGE_DATA_PREALLOCATE,
		.resume_bytes = request->resume,
		.fsync = fsync_of(job),
		.readback = request->flags & MESSAGE_DATA_READBACK,
		.space = place->space,
		.direct = direct_of(request),
		.done = job_outcome_tell,
		.ctx = job,
	};
	const bool in_place = request->flags & MESSAGE_DATA_IN_PLACE;
	int err;

	if (in_place) {
		params.resume_bytes = 0;
		params.in_place = (struct incoming_place){.wanted = true,
			.create = !place_allows(place, PLACE_WRITE),
			.offset = request->resume};
		/* at an offset what is there is written over */
		err = place_top(place,
			PLACE_APPEND | (request->resume == MESSAGE_UNKNOWN ? 0 : PLACE_WRITE),
			&params.top);
		return err ? err : incoming_new(&params, &job->incoming);
	}
	err = place_top(place, null ? 0 : PLACE_WRITE, &params.top);
	if (!err && !null)
		err = place_check_writable(place, job->beneath);
	return err ? err : incoming_new(&params, &job->incoming);
}

/* One of several that cannot be had keeps the others not back: it is told as theirs are. */
static int open_root(const struct transfer_job *job, const struct transfer_root *root)
{
	const struct place *place = &root->entry->place;
	const unsigned rights =
		PLACE_READ | (job->request.flags & MESSAGE_DATA_RECURSIVE ? PLACE_LIST : 0);
	int err = root->error ? root->error : place_allows(place, rights);

	if (!err)
		err = place_check_readable(place, root->beneath);
	if (!err)
		err = outgoing_add_from(
			job->outgoing, place->top, root->entry->name, root->beneath, root->name);
	if (!err || err == -ENOMEM || job->root_count == 1)
		return err;
	return outgoing_add_failed(job->outgoing, root->path, root->name, err);
}

/* Names of a tree. */
static int open_selected(struct transfer_job *job, const struct transfer_root *root)
{
	const struct place *place = &root->entry->place;
	int err = root->error ? root->error : place_allows(place, PLACE_READ | PLACE_LIST);

	job->measure = false;
	if (!err)
		err = selection_sort(&job->selection);
	if (!err)
		err = place_check_readable(place, root->beneath);
	if (err)
		return err;
	return outgoing_add_selected(job->outgoing, &(struct outgoing_selected){.top = place->top,
							    .place = root->entry->name,
							    .directory = root->beneath,
							    .selection = &job->selection,
							    .itself = job->selected_itself,
							    .files = MESSAGE_UNKNOWN,
							    .bytes = MESSAGE_UNKNOWN,
							    .disk_bytes = MESSAGE_UNKNOWN,
							    .largest_bytes = MESSAGE_UNKNOWN});
}

static int open_retrieve(struct transfer_job *job)
{
	const struct message_data_request *request = &job->request;
	bool null = request->kind == MESSAGE_DATA_NULL;
	const struct outgoing_params params = {
		.top = -1, /* each root has its own */
		.recursive = request->flags & MESSAGE_DATA_RECURSIVE,
		.links = links_of(request),
		.filter = &job->filter,
		.keep = keep_of(request),
		.numeric_ids = request->flags & MESSAGE_DATA_NUMERIC,
		.hard_links = request->flags & MESSAGE_DATA_HARD_LINKS,
		.attributes = request->flags & MESSAGE_DATA_ATTRIBUTES,
		.direct = direct_of(request),
		.reread = request->flags & MESSAGE_DATA_REREAD,
		.dense = request->flags & MESSAGE_DATA_STREAM,
		.done = job_outcome_tell,
		.ctx = job,
	};
	int err = outgoing_new(&params, &job->outgoing);

	if (!err && null)
		err = outgoing_add_null(job->outgoing, request->size);
	if (!err && request->flags & MESSAGE_DATA_SELECTED)
		return open_selected(job, &job->roots[0]);
	for (unsigned i = 0; i < job->root_count && !err && !null; i++)
		err = open_root(job, &job->roots[i]);
	return err;
}

static int open_feed(struct transfer_job *job, const struct place *place)
{
	struct segments_params params = {
		.path = job->beneath,
		.segment_bytes = job->feed.segment_bytes,
		.segment_ns = job->feed.segment_ns,
		.space = place->space,
		.done = job_outcome_tell,
		.ctx = job,
	};

	int err = place_top(place, PLACE_WRITE, &params.top);

	return err ? err : segments_new(&params, &job->segments);
}

int job_ends_open(struct transfer_job *job)
{
	const struct place *place = &job->entry->place;

	switch (job->type) {
	case MESSAGE_STORE:
		return open_store(job, place);
	case MESSAGE_RETRIEVE:
	case MESSAGE_SEND_COPY:
		return open_retrieve(job);
	default:
		return open_feed(job, place);
	}
}

void job_ends_fini(struct transfer_job *job)
{
	incoming_free(job->incoming);
	outgoing_free(job->outgoing);
	segments_free(job->segments);
}
