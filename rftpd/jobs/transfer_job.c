/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/transfer_job: see transfer_job.h.
 */
#include "rftpd/serve/session_log.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/jobs/job_limits.h"
#include "rftpd/serve/daemon_jobs.h"
#include "rftpd/serve/session_limits.h"

#include "base/clock.h"
#include "base/opener.h"
#include "proto/status.h"
#include "transfer/plan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define JOBS_MAX 4u      /* threads of a sink that sync and rename */
#define SLOT_EXTRA 4096u /* of memory for a block, beside its payload */
#define FILES_PART 8u    /* of the files that there are altogether, a tree asks for one such part */

static const struct transfer_cancel job_shutdown = {STATUS_SHUTDOWN, "the daemon ends"};
static const struct transfer_cancel job_killed = {
	STATUS_SHUTDOWN, "an administrator ended the session"};
static const struct transfer_cancel job_given_up = {
	STATUS_CANCELLED, "the client that asked for it has given it up"};
static const struct transfer_cancel job_broken = {
	STATUS_PROTOCOL, "the session it belongs to has failed"};
static const struct transfer_cancel job_stalled = {
	STATUS_TIMEOUT, "nothing moved, and others wait for what it had"};

static void audit(const struct transfer_job *job, const struct outcome *o)
{
	const struct daemon_session *s = job->session;

	audit_write(&s->daemon->audit,
		&(struct audit_event){.event = job->type == MESSAGE_STORE      ? "put"
					       : job->type == MESSAGE_RETRIEVE ? "get"
					       : job->copy                     ? "copy"
									       : "feed",
			.session = s->number,
			.peer = s->peer,
			.user = daemon_session_user(s),
			.export_name = transfer_job_sends(job) ? o->place
				       : job->error            ? NULL
							       : job->entry->name,
			.path = *o->path ? o->path : NULL,
			.to = job->copy ? job->copy->address : NULL,
			.moved = true,
			.files = !o->status,
			.bytes = o->bytes,
			.since_ns = job->stats.started_ns ? job->stats.started_ns : clock_now_ns(),
			.status = o->status,
			.text = o->text});
}

/* In the transfer's thread.  The path comes last: a long one is cut by the log, nothing else is. */
static void log_file(void *ctx, const struct outcome *o)
{
	struct transfer_job *job = ctx;
	const struct daemon_session *s = job->session;
	const char *verb = transfer_job_sends(job) ? "sent" : "stored";
	double seconds = (double)(clock_now_ns() - job->stats.started_ns) / 1e9;

	if (job->copy)
		copy_job_note(job, o);
	if (job->silent)
		return;
	if (o->special && !o->status) {
		session_log(s, LOG_LEVEL_INFO, "left out, a device, FIFO or socket: %s", o->path);
		return;
	}
	if (o->status == STATUS_CHECKSUM || o->status == STATUS_DIGEST)
		job->verify_errors++;
	if (!o->status)
		session_log(s, LOG_LEVEL_INFO, "%s %" PRIu64 " bytes in %.3f s%s%.300s: %s", verb,
			o->bytes, seconds, *o->text ? ", but " : "", o->text,
			*o->path ? o->path : "(memory)");
	else
		session_log(s, o->status == STATUS_THERE ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
			"not %s after %.3f s (%s%s%.300s): %s", verb, seconds,
			status_text(o->status), *o->text ? ": " : "", o->text,
			*o->path ? o->path : "(memory)");
	audit(job, o);
}

/* ---- what it needs ---- */

static void lease_granted(struct lease *l)
{
	struct transfer_job *job = (struct transfer_job *)l;

	if (!job_turns_leased(job))
		session_transfers_granted(job->session);
}

static void lease_queued(struct lease *l, unsigned position)
{
	struct transfer_job *job = (struct transfer_job *)l;

	if (job_turns_is_late(job))
		session_transfers_late(job->session);
	else if (!job->turns.waits_turns) /* that line tells */
		session_transfers_queued(job->session, position, MESSAGE_UNKNOWN);
}

static uint64_t lease_moved_ns(const struct lease *l)
{
	return atomic_load_explicit(
		&((const struct transfer_job *)l)->moved_ns, memory_order_relaxed);
}

void transfer_job_stop(struct transfer_job *job, const struct transfer_cancel *why)
{
	const uint64_t one = 1;

	atomic_store(&job->params.cancel, why);
	if (write(job->cancel_fd, &one, sizeof one) < 0) /* it is readable already, then */
		log_debug("eventfd: %s", strerror(errno));
}

static void lease_lost(struct lease *l)
{
	transfer_job_stop((struct transfer_job *)l, &job_stalled);
}

static const struct lease_ops job_lease_ops = {
	.granted = lease_granted,
	.queued = lease_queued,
	.moved_ns = lease_moved_ns,
	.lost = lease_lost,
};

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

void transfer_job_reduce(struct transfer_job *job)
{
	const struct budget keep = {.threads = 1};

	scheduler_reduce(&job->session->daemon->scheduler, &job->lease, &keep);
}

/* The window that plan would choose, as far as it is known what will come.  What the source has of
 * blocks may be more than the sink's window; this side is one of them. */
static void job_wants(struct transfer_job *job, const struct message_data_request *request,
	unsigned streams, unsigned files)
{
	const struct daemon_session *s = job->session;
	unsigned channels = session_transfers_channels(s, job->number);
	bool sink = !transfer_job_sends(job);
	/* an early get says what the client has at once, and may be offered more */
	bool chosen = sink || !(request->flags & MESSAGE_DATA_EARLY);
	struct plan_facts facts = {
		.block = chosen ? request->block : 0,
		.depth = chosen ? request->depth : 0,
		.max_block = s->max_block,
		.max_depth = s->max_depth,
		.open_channels = (uint16_t)(channels ? channels : 1),
		.window_max_bytes = job->params.window_max_bytes,
		.largest_bytes = sink && request->size ? request->size : UINT64_MAX,
		.total_bytes = sink && request->size ? request->size : UINT64_MAX,
		.streams = streams,
		.rtt_ns = job->params.rtt_ns,
		.cpus = worker_cpus(),
	};
	unsigned workers = plan_workers(0, worker_cpus());
	struct plan plan;
	uint64_t slot, blocks;

	plan_make(&facts, &plan);
	slot = plan.block + SLOT_EXTRA;
	blocks = !sink && plan.source_blocks > plan.depth ? plan.source_blocks : plan.depth;
	job->lease.ops = &job_lease_ops;
	job->lease.patient = job->type == MESSAGE_FEED || request->flags & MESSAGE_DATA_STREAM;
	job->lease.least = (struct budget){2 * slot, streams ? streams : 1, 2 + workers};
	job->lease.most =
		(struct budget){blocks * slot, files, 1 + workers + (sink ? JOBS_MAX : 1)};
}

int transfer_job_queue(struct transfer_job *job)
{
	int err = job_limits_take(job);

	return err ? err : job_turns_ask(job);
}

bool transfer_job_ask(struct transfer_job *job)
{
	job_turns_connected(job);
	return job_turns_has(job) && transfer_job_lease(job);
}

bool transfer_job_lease(struct transfer_job *job)
{
	struct daemon *d = job->session->daemon;

	if (job->lease.state == LEASE_NONE) {
		daemon_count_descriptors(d);
		return scheduler_ask(&d->scheduler, &job->lease, clock_now_ns());
	}
	return job->lease.state == LEASE_HELD;
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

/* Files of a tree that may be open at once. */
static unsigned many_files(const struct daemon_session *s, uint8_t kind)
{
	uint32_t part = s->daemon->scheduler.total.files / FILES_PART;

	if (kind == MESSAGE_DATA_NULL || !part)
		return 1;
	return part < TRANSFER_OPEN_MAX ? part : TRANSFER_OPEN_MAX;
}

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

int transfer_job_new_store(struct daemon_session *s, const struct message_data_request *request,
	const char *path, struct transfer_job **out)
{
	int err = job_new(s, MESSAGE_STORE, request, path, 0, out);

	if (!err)
		job_wants(*out, request, 0, many_files(s, request->kind));
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
	job_wants(job, request, 0, several ? many_files(s, request->kind) : 1);
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
	job_wants(*out, &any, feed->streams, feed->streams);
	return 0;
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
		.keep = TRANSFER_HAS_ALL,
		.preallocate = request->flags & MESSAGE_DATA_PREALLOCATE,
		.resume_bytes = request->resume,
		.fsync = fsync_of(job),
		.readback = request->flags & MESSAGE_DATA_READBACK,
		.space = place->space,
		.direct = direct_of(request),
		.done = log_file,
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
							    .files = MESSAGE_UNKNOWN,
							    .bytes = MESSAGE_UNKNOWN,
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
		.direct = direct_of(request),
		.reread = request->flags & MESSAGE_DATA_REREAD,
		.dense = request->flags & MESSAGE_DATA_STREAM,
		.done = log_file,
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
		.done = log_file,
		.ctx = job,
	};

	int err = place_top(place, PLACE_WRITE, &params.top);

	return err ? err : segments_new(&params, &job->segments);
}

static int open_any(struct transfer_job *job)
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

int transfer_job_open(struct transfer_job *job)
{
	int err = job->error ? job->error : open_any(job);

	if (err)
		audit(job, &(struct outcome){.path = job->path, .status = status_from_errno(err)});
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
	incoming_free(job->incoming);
	outgoing_free(job->outgoing);
	filter_fini(&job->filter);
	selection_fini(&job->selection);
	segments_free(job->segments);
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
	daemon_jobs_finished(job->session->daemon, job);
}

int transfer_job_start(struct transfer_job *job)
{
	const struct budget *has = &job->lease.has;
	unsigned workers = plan_workers(0, worker_cpus());
	int err;

	assert(job->lease.state == LEASE_HELD);
	if (has->memory_bytes < job->params.window_max_bytes || !job->params.window_max_bytes)
		job->params.window_max_bytes = has->memory_bytes;
	job->params.open_files = has->files;
	job->params.jobs = has->threads - 1 - workers;
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
