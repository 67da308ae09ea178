/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/transfer_job: see transfer_job.h.
 *
 * Owns the job, from its request to what it counted.  What it asks the scheduler for is
 * rftpd/jobs/job_lease's, which files it is about rftpd/jobs/job_ends'.
 */
#include "rftpd/jobs/transfer_job.h"

#include "base/clock.h"
#include "base/opener.h"
#include "proto/status.h"
#include "rftpd/jobs/job_ends.h"
#include "rftpd/jobs/job_lease.h"
#include "rftpd/jobs/job_limits.h"
#include "rftpd/jobs/job_outcome.h"
#include "rftpd/serve/daemon_jobs.h"
#include "rftpd/serve/session_limits.h"
#include "rftpd/serve/session_log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct transfer_cancel job_shutdown = {STATUS_SHUTDOWN, "the daemon ends"};
static const struct transfer_cancel job_killed = {
	STATUS_SHUTDOWN, "an administrator ended the session"};
static const struct transfer_cancel job_given_up = {
	STATUS_CANCELLED, "the client that asked for it has given it up"};
static const struct transfer_cancel job_broken = {
	STATUS_PROTOCOL, "the session it belongs to has failed"};

void transfer_job_stop(struct transfer_job *job, const struct transfer_cancel *why)
{
	const uint64_t one = 1;

	atomic_store(&job->params.cancel, why);
	if (write(job->cancel_fd, &one, sizeof one) < 0) /* it is readable already, then */
		log_debug("eventfd: %s", strerror(errno));
}

/* In the transfer's thread, some ten times a second. */
static void note_progress(void *ctx, const struct transfer_stats *stats)
{
	struct transfer_job *job = ctx;

	atomic_store_explicit(&job->moved_ns, stats->moved_ns, memory_order_relaxed);
	if (job->copy)
		copy_job_progress(job);
}

/* In the transfer's thread: it was cut short, and waits for its peer only. */
static void note_released(void *ctx)
{
	struct transfer_job *job = ctx;

	daemon_jobs_released(job->session->daemon, job);
}

/* ---- what it waits for ---- */

int transfer_job_queue(struct transfer_job *job)
{
	int err = job_limits_take(job);

	return err ? err : job_turns_ask(job);
}

bool transfer_job_ask(struct transfer_job *job)
{
	job_turns_connected(job);
	return job_turns_has(job) && job_lease_ask(job);
}

/* ---- life ---- */

/* Where a path leads: 0 or -errno. */
static int job_find(const struct transfer_job *job, const char *path,
	const struct view_entry **entry, const char **beneath)
{
	int err = session_limits_find(job->session, path, entry, beneath);

	return err == VIEW_TOP ? -EACCES : err;
}

static int job_new(struct daemon_session *s, uint16_t type,
	const struct message_data_request *request, const char *path, uint64_t limit_rate,
	struct transfer_job **out)
{
	struct transfer_job *job = calloc(1, sizeof *job);
	int err;

	if (!job)
		return -ENOMEM;
	job->session = s;
	job->number = s->asked;
	job->type = type;
	job->limit_rate = limit_rate;
	pthread_mutex_init(&job->reply_lock, NULL);
	job->request = *request;
	job->request.path = job->request.more = job->request.rules = (struct wire_bytes){0};
	job->path = strdup(path);
	if (!job->path) {
		err = -ENOMEM;
		goto err_job;
	}
	/* memory is nowhere, and of many one is the first: they count with the first export */
	job->entry = &s->view->entries[0];
	if (request->kind != MESSAGE_DATA_NULL && !transfer_job_sends(job))
		job->error = job_find(job, job->path, &job->entry, &job->beneath);
	job->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (job->cancel_fd < 0) {
		err = -errno;
		goto err_path;
	}
	job->params = (struct transfer_params){
		.transfer = job->number,
		.engine = request->engine,
		.engines = s->engines,
		.protect = s->protect,
		.channels = request->channels,
		.block = request->block,
		.depth = request->depth,
		.squeeze = message_data_squeeze(request->flags),
		.rtt_ns = (uint64_t)request->rtt_us * 1000,
		.max_block = s->max_block,
		.max_depth = s->max_depth,
		.window_max_bytes = s->daemon->settings->max_window_bytes,
		.cancel_fd = job->cancel_fd,
		.patient = request->flags & MESSAGE_DATA_STREAM,
		.early = request->flags & MESSAGE_DATA_EARLY,
		.early_resume = request->resume ? request->resume : UINT64_MAX,
		.progress = note_progress,
		.released = note_released,
		.progress_ctx = job,
	};
	err = job_turns_init(job, s->daemon->settings);
	if (err)
		goto err_cancel;
	*out = job;
	return 0;

err_cancel:
	close(job->cancel_fd);
err_path:
	free(job->path);
err_job:
	free(job);
	return err;
}

int transfer_job_new_store(struct daemon_session *s, const struct message_data_request *request,
	const char *path, struct transfer_job **out)
{
	int err = job_new(s, MESSAGE_STORE, request, path, 0, out);

	if (!err)
		job_lease_wants(*out, request, 0, job_lease_files(s, request->kind));
	return err;
}

bool transfer_job_sends(const struct transfer_job *job)
{
	return job->type == MESSAGE_RETRIEVE || job->type == MESSAGE_SEND_COPY;
}

static int new_source(struct daemon_session *s, uint16_t type,
	const struct message_data_request *request, const char *path, uint64_t limit_rate,
	struct transfer_job **out)
{
	struct transfer_job *job;
	bool several = request->flags & MESSAGE_DATA_RECURSIVE || request->more_count;
	int err = job_new(s, type, request, path, limit_rate, &job);

	if (err)
		return err;
	job->roots = calloc(request->more_count + 1u, sizeof *job->roots);
	if (!job->roots) {
		transfer_job_free(job);
		return -ENOMEM;
	}
	job->measure = request->flags & MESSAGE_DATA_RECURSIVE;
	job_lease_wants(job, request, 0, several ? job_lease_files(s, request->kind) : 1);
	*out = job;
	return 0;
}

int transfer_job_new_retrieve(struct daemon_session *s, const struct message_data_request *request,
	const char *path, struct transfer_job **out)
{
	return new_source(s, MESSAGE_RETRIEVE, request, path, 0, out);
}

int transfer_job_new_copy(struct daemon_session *s, const struct message_send_copy *m,
	const char *path, struct copy_job *copy, struct transfer_job **out)
{
	int err = new_source(s, MESSAGE_SEND_COPY, &m->request, path, m->rate, out);

	if (err)
		copy_job_free(copy);
	else
		(*out)->copy = copy;
	return err;
}

int transfer_job_add(struct transfer_job *job, const char *path, const char *name)
{
	struct transfer_root root = {.path = strdup(path), .name = strdup(name)};
	bool null = job->request.kind == MESSAGE_DATA_NULL;

	assert(job->root_count <= job->request.more_count);
	if (!root.path || !root.name) {
		free(root.path);
		free(root.name);
		return -ENOMEM;
	}
	if (!null)
		root.error = job_find(job, root.path, &root.entry, &root.beneath);
	if (!null && !root.error && !job->root_count)
		job->entry = root.entry;
	job->roots[job->root_count++] = root;
	return 0;
}

int transfer_job_new_feed(struct daemon_session *s, const struct message_feed *feed,
	const char *path, struct transfer_job **out)
{
	const struct message_data_request any = {.kind = MESSAGE_DATA_FILES};
	int err = job_new(s, MESSAGE_FEED, &any, path, 0, out);

	if (err)
		return err;
	(*out)->feed = *feed;
	(*out)->feed.path = (struct wire_bytes){0};
	job_lease_wants(*out, &any, feed->streams, feed->streams);
	return 0;
}

int transfer_job_open(struct transfer_job *job)
{
	int err = job->error ? job->error : job_ends_open(job);

	if (err)
		job_outcome_audit(job,
			&(struct outcome){.path = job->path, .status = status_from_errno(err)});
	return err;
}

void transfer_job_free(struct transfer_job *job)
{
	struct opener *before;

	if (!job)
		return;
	before = opener_use(job->session->opener); /* what it had begun goes by the same hands */
	job_turns_fini(job);
	scheduler_release(&job->session->daemon->scheduler, &job->lease);
	job_limits_give(job);
	job_ends_fini(job);
	filter_fini(&job->filter);
	selection_fini(&job->selection);
	copy_job_free(job->copy);
	close(job->cancel_fd);
	pthread_mutex_destroy(&job->reply_lock);
	for (unsigned i = 0; i < job->root_count; i++) {
		free(job->roots[i].path);
		free(job->roots[i].name);
	}
	free(job->roots);
	free(job->path);
	free(job);
	opener_use(before);
}

uint16_t transfer_job_type(const struct transfer_job *job)
{
	return job->type;
}

const char *transfer_job_path(const struct transfer_job *job)
{
	return job->path;
}

/* Pages that stayed pinned would be held without a lease.  Here: a device takes its time for it. */
static void unpin(struct rail *rail)
{
	if (rail->caps->is_device)
		memory_unregister(&rail->memory);
}

static void run(void *arg)
{
	struct transfer_job *job = arg;
	struct link *link = job->session->link;

	pthread_mutex_lock(&job->reply_lock);
	pthread_mutex_unlock(&job->reply_lock);
	opener_use(job->session->opener);
	job->stats.started_ns = clock_now_ns();
	if (job->type == MESSAGE_STORE) {
		job->outcome = transfer_receive(
			link, &job->params, incoming_sink(job->incoming), &job->stats);
	} else if (job->type == MESSAGE_FEED) {
		job->outcome = transfer_receive(
			link, &job->params, segments_sink(job->segments), &job->stats);
		/* what is kept has its name when the session goes on */
		segments_free(job->segments);
		job->segments = NULL;
	} else {
		if (job->measure) /* in this thread: a large tree takes its time */
			outgoing_measure(job->outgoing);
		if (job->copy)
			copy_job_run(job);
		else
			job->outcome = transfer_send(
				link, &job->params, outgoing_source(job->outgoing), &job->stats);
	}
	if (!job->copy)
		unpin(link_rail(link, job->number));
	daemon_jobs_finished(job->session->daemon, job);
}

int transfer_job_start(struct transfer_job *job)
{
	int err;

	assert(job->lease.state == LEASE_HELD);
	job_lease_apply(job);
	atomic_store_explicit(&job->moved_ns, clock_now_ns(), memory_order_relaxed);
	job_turns_start(job);
	pthread_mutex_lock(&job->reply_lock);
	err = worker_start(&job->worker, "transfer", run, job);
	if (!err && !job->copy) /* a connection that is gone is seen by the thread, too */
		daemon_session_reply(job->session, job->type, NULL, 0);
	pthread_mutex_unlock(&job->reply_lock);
	return err;
}

void transfer_job_cancel(struct transfer_job *job)
{
	transfer_job_stop(job, &job_shutdown);
}

void transfer_job_kill(struct transfer_job *job)
{
	transfer_job_stop(job, &job_killed);
}

void transfer_job_give_up(struct transfer_job *job)
{
	transfer_job_stop(job, &job_given_up);
}

void transfer_job_break(struct transfer_job *job)
{
	transfer_job_stop(job, &job_broken);
}

enum verdict_scope transfer_job_finish(
	struct transfer_job *job, uint64_t *files, uint64_t *bytes, struct verdict *why)
{
	const struct daemon_session *s = job->session;
	const char *name = message_name(job->type);
	double seconds;

	worker_stop(&job->worker);
	*files += job->stats.files;
	*bytes += job->stats.bytes;
	seconds = (double)(job->stats.ended_ns - job->stats.started_ns) / 1e9;
	*why = job->stats.verdict;
	if (job->outcome > VERDICT_FILE)
		session_log(s, LOG_LEVEL_WARNING,
			"%s ended after %.3f s and %" PRIu64 " bytes: %s%s%s", name, seconds,
			job->stats.bytes, status_text(why->status), why->text[0] ? ": " : "",
			why->text);
	else
		log_debug("session %" PRIu32 " %s %s: %" PRIu64 " files, %" PRIu64
			  " bytes, %" PRIu64
			  " errors in %.3f s over %u channels, blocks of %u, %u deep",
			s->number, s->peer, name, job->stats.files, job->stats.bytes,
			job->stats.errors, seconds, job->stats.channels, job->stats.block,
			job->stats.depth);
	return job->outcome;
}
