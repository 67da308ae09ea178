/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_lease: see job_lease.h.
 */
#include "rftpd/jobs/job_lease.h"

#include "base/clock.h"
#include "base/worker.h"
#include "proto/status.h"
#include "rftpd/jobs/transfer_job.h"
#include "transfer/plan.h"

#define JOBS_MAX 4u      /* threads of a sink that sync and rename */
#define SLOT_EXTRA 4096u /* of memory for a block, beside its payload */
#define FILES_PART 8u    /* of the files that there are altogether, a tree asks for one such part */

static const struct transfer_cancel job_stalled = {
	STATUS_TIMEOUT, "nothing moved, and others wait for what it had"};

/* ---- what the scheduler asks and tells ---- */

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

/* ---- what is asked for, and what is had ---- */

unsigned job_lease_files(const struct daemon_session *s, uint8_t kind)
{
	uint32_t part = s->daemon->scheduler.total.files / FILES_PART;

	if (kind == MESSAGE_DATA_NULL || !part)
		return 1;
	return part < TRANSFER_OPEN_MAX ? part : TRANSFER_OPEN_MAX;
}

/* The window that plan would choose, as far as it is known what will come.  What the source has of
 * blocks may be more than the sink's window; this side is one of them. */
void job_lease_wants(struct transfer_job *job, const struct message_data_request *request,
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

bool job_lease_ask(struct transfer_job *job)
{
	struct daemon *d = job->session->daemon;

	if (job->lease.state == LEASE_NONE) {
		daemon_count_descriptors(d);
		return scheduler_ask(&d->scheduler, &job->lease, clock_now_ns());
	}
	return job->lease.state == LEASE_HELD;
}

void job_lease_apply(struct transfer_job *job)
{
	const struct budget *has = &job->lease.has;

	if (has->memory_bytes < job->params.window_max_bytes || !job->params.window_max_bytes)
		job->params.window_max_bytes = has->memory_bytes;
	job->params.open_files = has->files;
	job->params.jobs = has->threads - 1 - plan_workers(0, worker_cpus());
}

void job_lease_reduce(struct transfer_job *job)
{
	const struct budget keep = {.threads = 1};

	scheduler_reduce(&job->session->daemon->scheduler, &job->lease, &keep);
}
