/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/inline_batch: see inline_batch.h.
 *
 * Files land, and are read, by the jobs that transfers have (rftpd/jobs/transfer_job), which are
 * not started: rights, log and statistics are theirs.
 */
#include "rftpd/serve/inline_batch.h"

#include "base/clock.h"
#include "proto/status.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_task.h"
#include "transfer/whole.h"
#include "tree/beneath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INLINE_OPEN_MAX 128u /* descriptors of a batch; fewer do, too */

struct inline_request {
	STAILQ_ENTRY(inline_request) entry;
	uint16_t type;
	uint8_t *frame; /* as it came; what was decoded points into it */
	uint32_t flags, most;
	struct wire_bytes path;
	struct whole_arrival arrival; /* PUT */
	/* of the first one of those that have a job together: */
	struct transfer_job *job;
	unsigned together;
	/* the outcome */
	uint16_t status; /* it is refused, */
	char *why;       /* for this reason; NULL: `error` says it */
	int error;       /* the path cannot be had */
	bool into;       /* PUT */
	uint8_t *reply;  /* GET */
	size_t reply_bytes;
};

struct inline_batch {
	struct session_task task; /* first */
	STAILQ_HEAD(, inline_request) requests;
	unsigned count;
	size_t bytes;
};

uint32_t inline_batch_max(const struct daemon_session *s)
{
	const struct daemon_settings *settings = s->daemon->settings;
	bool limited = settings->bandwidth || settings->limit_rate;

	for (unsigned i = 0; i < settings->limit_count; i++)
		limited = limited || settings->limits[i].values[LIMIT_RATE];
	/* what waits for its turn, or may move no faster than so, is a transfer */
	return limited ? 0 : (uint32_t)settings->inline_max;
}

static void request_free(struct inline_request *r)
{
	whole_arrival_fini(&r->arrival);
	transfer_job_free(r->job);
	free(r->why);
	free(r->reply);
	free(r->frame);
	free(r);
}

static void batch_free(struct daemon *d, struct inline_batch *b)
{
	struct inline_request *r;

	if (!b)
		return;
	d->inline_bytes -= b->bytes;
	while ((r = STAILQ_FIRST(&b->requests))) {
		STAILQ_REMOVE_HEAD(&b->requests, entry);
		request_free(r);
	}
	free(b);
}

void inline_batch_free(struct daemon_session *s)
{
	batch_free(s->daemon, s->inline_batch);
	s->inline_batch = NULL;
}

bool inline_batch_waits(const struct daemon_session *s)
{
	return s->inline_batch;
}

bool inline_batch_takes(uint16_t type)
{
	return type == MESSAGE_PUT || type == MESSAGE_GET;
}

/* ---- what has come ---- */

/* A request at the end of the batch, with a copy of its frame.  `room`: bytes that it counts for.
 */
static int batch_add(struct daemon_session *s, uint16_t type, const uint8_t *data, size_t len,
	size_t room, struct inline_request **out)
{
	struct inline_batch *b = s->inline_batch;
	struct inline_request *r = calloc(1, sizeof *r);

	if (r)
		r->frame = malloc(len);
	if (!b && r && r->frame) {
		b = s->inline_batch = calloc(1, sizeof *b);
		if (b)
			STAILQ_INIT(&b->requests);
	}
	if (!b || !r || !r->frame) {
		if (r)
			free(r->frame);
		free(r);
		return -ENOMEM;
	}
	memcpy(r->frame, data, len);
	r->type = type;
	STAILQ_INSERT_TAIL(&b->requests, r, entry);
	b->count++;
	b->bytes += room;
	s->daemon->inline_bytes += room;
	*out = r;
	return 0;
}

/* What any is refused for, in its turn. */
static void judge(struct daemon_session *s, struct inline_request *r, uint64_t bytes)
{
	const uint32_t most = inline_batch_max(s);
	char why[128];

	if (daemon_session_is_ending(s)) {
		r->status = STATUS_SHUTDOWN;
		r->why = strdup("the daemon ends");
	} else if (!most || bytes > most) {
		snprintf(why, sizeof why,
			most ? "a file of %llu bytes is too large for this: %u at most"
			     : "this server has no small files as single requests",
			(unsigned long long)bytes, most);
		r->status = most ? STATUS_LIMIT : STATUS_UNSUPPORTED;
		r->why = strdup(why);
	}
}

static int added(struct daemon_session *s)
{
	const struct inline_batch *b = s->inline_batch;

	if (b->count < INLINE_BATCH_FILES && b->bytes < INLINE_BATCH_BYTES &&
		s->daemon->inline_bytes < INLINE_BATCHES_BYTES)
		return 0;
	return inline_batch_begin(s);
}

int handle_put(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct inline_request *r;
	struct message_put put;
	int err = message_get_put(&put, data, len);

	if (!err)
		err = batch_add(s, MESSAGE_PUT, data, len, len, &r);
	if (err)
		return err;
	(void)message_get_put(&put, r->frame, len); /* as it was taken above */
	r->flags = put.flags;
	r->path = put.path;
	r->arrival.whole = put.whole;
	judge(s, r, put.whole.data.len);
	return added(s);
}

int handle_get(struct daemon_session *s, const uint8_t *data, size_t len)
{
	const uint32_t most = inline_batch_max(s);
	struct inline_request *r;
	struct message_get get;
	int err = message_get_get(&get, data, len);

	if (!err)
		err = batch_add(s, MESSAGE_GET, data, len, MESSAGE_DATA_MAX, &r);
	if (err)
		return err;
	(void)message_get_get(&get, r->frame, len);
	r->flags = get.flags;
	r->most = get.most < most ? get.most : most;
	r->path = get.path;
	judge(s, r, 0);
	return added(s);
}

/* ---- in the task ---- */

static bool ends_in_slash(const struct transfer_job *job)
{
	size_t len = strlen(job->path);

	return len && job->path[len - 1] == '/';
}

/* Whether a file goes beneath its path: 1; 0: it is the path; -errno: it can be neither. */
static int goes_into(const struct transfer_job *job)
{
	struct stat st;
	int err;

	if (!(job->request.flags & MESSAGE_DATA_INTO) || job->error)
		return 0;
	err = beneath_stat(job->entry->place.top, job->beneath, true, &st);
	if (!err && S_ISDIR(st.st_mode))
		return 1;
	return !ends_in_slash(job) ? 0 : err ? err : -ENOTDIR;
}

static void run_put(struct inline_request *first)
{
	struct transfer_job *job = first->job;
	struct whole_arrival *list = calloc(first->together, sizeof *list);
	struct inline_request *r = first;
	int into = list ? goes_into(job) : -ENOMEM, err;

	if (!into)
		job->request.flags &= ~MESSAGE_DATA_INTO;
	for (unsigned i = 0; i < first->together && !into; i++, r = STAILQ_NEXT(r, entry))
		if (r->arrival.whole.file.kind != TRANSFER_FILE_REGULAR)
			into = -ENOTDIR; /* that needs a directory to be beneath */
	r = first;
	err = into < 0 ? into : transfer_job_open(job);
	for (unsigned i = 0; i < first->together; i++, r = STAILQ_NEXT(r, entry)) {
		r->error = err;
		r->into = into > 0;
		r->arrival.name = into > 0 ? NULL : "";
		if (!err)
			list[i] = r->arrival;
	}
	if (err) {
		free(list);
		return;
	}
	job->stats.started_ns = clock_now_ns();
	if (!incoming_sink(job->incoming)->whole)
		first->error = -EOPNOTSUPP;
	else
		whole_land(incoming_sink(job->incoming), list, first->together, INLINE_OPEN_MAX);
	r = first;
	for (unsigned i = 0; i < first->together; i++, r = STAILQ_NEXT(r, entry)) {
		r->arrival = list[i];
		job->stats.files += !r->arrival.status && transfer_counts(&r->arrival.whole.file);
		job->stats.errors += r->arrival.status != 0;
		job->stats.bytes += r->arrival.status ? 0 : r->arrival.whole.data.len;
	}
	incoming_is_over(job->incoming);
	free(list);
}

/* The item of a GET, read and encoded.  1: it is here; 0: it is for RETRIEVE; -errno. */
static int read_item(
	struct inline_request *r, const struct transfer_source *from, struct transfer_item *item)
{
	struct message_get_reply reply = {.here = 1};
	struct transfer_reading reading = {0};
	struct whole_room *room = malloc(sizeof *room);
	ssize_t n;
	int err = room ? whole_read(from, &reading, r->most, item, room, &reply.whole) : -ENOMEM;

	if (room)
		whole_read_end(from, &reading);
	if (!err) {
		r->reply = malloc(MESSAGE_DATA_MAX);
		n = r->reply ? message_put_get_reply(&reply, r->reply, MESSAGE_DATA_MAX) : -ENOMEM;
		r->reply_bytes = n < 0 ? 0 : (size_t)n;
		err = n < 0 ? (int)n : 1;
	}
	free(room);
	return err == -EFBIG || err == -EMSGSIZE || err == -ENAMETOOLONG ? 0 : err;
}

static void run_get(struct inline_request *r)
{
	const struct message_get_reply elsewhere = {.here = 0};
	struct transfer_job *job = r->job;
	const struct transfer_source *from;
	struct transfer_item item = {.file.file = 1};
	int n = transfer_job_open(job);

	job->stats.started_ns = clock_now_ns();
	from = n ? NULL : outgoing_source(job->outgoing);
	if (from) {
		n = from->next(from->ctx, &item);
		n = n < 0 ? n : n ? 0 : -ENOENT;
	}
	if (n) {
		r->error = n;
		return;
	}
	n = read_item(r, from, &item);
	if (item.end)
		end_free(item.end);
	job->silent = !n;
	job->stats.files += n > 0;
	job->stats.errors += n < 0;
	job->stats.bytes += n > 0 ? item.file.size : 0;
	from->done(from->ctx, &item, n < 0 ? status_from_errno(n) : STATUS_OK, "");
	r->error = n < 0 ? n : 0;
	if (n)
		return;
	free(r->reply);
	r->reply = malloc(1);
	r->error = r->reply ? 0 : -ENOMEM;
	r->reply_bytes = 1;
	if (r->reply)
		(void)message_put_get_reply(&elsewhere, r->reply, 1);
}

static void work_batch(struct session_task *task)
{
	struct inline_batch *b = (struct inline_batch *)task;
	struct inline_request *r;

	STAILQ_FOREACH(r, &b->requests, entry)
	{
		if (!r->job)
			continue; /* of one before, or refused */
		if (r->type == MESSAGE_PUT)
			run_put(r);
		else
			run_get(r);
	}
}

/* ---- answers ---- */

static int answer_put(struct daemon_session *s, const struct inline_request *r)
{
	const struct whole_arrival *a = &r->arrival;
	const size_t len = a->text ? strnlen(a->text, MESSAGE_TEXT_MAX) : 0;
	const struct message_put_reply reply = {
		.into = r->into,
		.status = a->status,
		.digest = a->digest,
		.text = {(const uint8_t *)a->text, len},
	};
	uint8_t data[16 + MESSAGE_TEXT_MAX];

	return daemon_session_reply(
		s, MESSAGE_PUT, data, message_put_put_reply(&reply, data, sizeof data));
}

static int answer_one(struct daemon_session *s, const struct inline_request *r)
{
	char path[MESSAGE_PATH_MAX + 1];

	if (r->status)
		return daemon_session_refuse(s, r->type, r->status, "%s", r->why ? r->why : "");
	if (r->error) {
		handle_path(path, r->path);
		return handle_refuse_path(s, r->type, r->error, path);
	}
	if (r->type == MESSAGE_PUT)
		return answer_put(s, r);
	return daemon_session_reply(s, r->type, r->reply, (ssize_t)r->reply_bytes);
}

static void count(struct daemon_session *s, const struct transfer_job *job)
{
	s->files += job->stats.files;
	s->bytes += job->stats.bytes;
	statistics_add_job(&s->daemon->statistics, job, false);
}

static void forget_batch(struct session_task *task)
{
	struct inline_batch *b = (struct inline_batch *)task;
	struct inline_request *r;

	STAILQ_FOREACH(r, &b->requests, entry)
	if (r->job && (r->job->stats.files || r->job->stats.errors))
		count(task->session, r->job);
	batch_free(task->session->daemon, b);
}

static int answer_batch(struct session_task *task)
{
	struct inline_batch *b = (struct inline_batch *)task;
	struct daemon_session *s = task->session;
	struct inline_request *r;
	int err = 0;

	STAILQ_FOREACH(r, &b->requests, entry)
	if (!err)
		err = answer_one(s, r);
	forget_batch(task);
	return err;
}

/* ---- begin ---- */

static bool same(const struct inline_request *a, const struct inline_request *b)
{
	return a->type == MESSAGE_PUT && b->type == MESSAGE_PUT && !b->status &&
	       a->flags == b->flags && a->path.len == b->path.len &&
	       !memcmp(a->path.data, b->path.data, a->path.len);
}

/* One name for all would be overwritten. */
static bool joins(const struct inline_request *first, const struct inline_request *r)
{
	return first->flags & MESSAGE_DATA_INTO && same(first, r);
}

static int make_job(struct daemon_session *s, struct inline_request *r)
{
	const struct message_data_request request = {.kind = MESSAGE_DATA_FILES, .flags = r->flags};
	char path[MESSAGE_PATH_MAX + 1];
	int err;

	handle_path(path, r->path);
	s->asked = 0;
	if (r->type == MESSAGE_PUT)
		return transfer_job_new_store(s, &request, path, &r->job);
	err = transfer_job_new_retrieve(s, &request, path, &r->job);
	return err ? err : transfer_job_add(r->job, path, "");
}

int inline_batch_begin(struct daemon_session *s)
{
	struct inline_batch *b = s->inline_batch;
	struct inline_request *r, *first = NULL;
	uint16_t type = STAILQ_FIRST(&b->requests)->type;

	STAILQ_FOREACH(r, &b->requests, entry)
	{
		if (r->status) {
			first = NULL;
		} else if (first && joins(first, r)) {
			first->together++;
		} else {
			r->error = make_job(s, r);
			r->together = 1;
			first = r->type == MESSAGE_PUT && !r->error ? r : NULL;
		}
	}
	s->inline_batch = NULL;
	b->task = (struct session_task){
		.session = s, .work = work_batch, .answer = answer_batch, .forget = forget_batch};
	return session_task_start(&b->task, type);
}
