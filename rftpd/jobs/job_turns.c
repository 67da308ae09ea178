/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_turns: see job_turns.h.
 */
#include "rftpd/jobs/job_turns.h"

#include "base/clock.h"
#include "rftpd/jobs/job_lease.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/daemon_jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct transfer_job *of(struct claim *c)
{
	return (struct transfer_job *)(void *)((char *)c -
					       offsetof(struct transfer_job, turns.claim));
}

/* ---- limits ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What the overshoot at the end of a turn is a part of; 0: nothing is limited. */
static uint64_t turn_of(
	const struct daemon_settings *settings, uint64_t limit_rate, uint64_t rtt_ns)
{
	if (settings->bandwidth && settings->turn_bytes != ADMISSION_ENDLESS)
		return settings->turn_bytes;
	return bucket_turn(settings->bandwidth ? settings->bandwidth : limit_rate, rtt_ns);
}

uint32_t job_turns_max_block(const struct daemon_settings *settings)
{
	uint64_t turn = turn_of(settings, settings->limit_rate, 0);

	return turn ? bucket_max_block(turn) : UINT32_MAX;
}

void job_turns_check(const struct daemon_settings *settings)
{
	uint64_t all = settings->bandwidth;

	if (!all && (settings->class_count || settings->share))
		log_warning("class and share mean nothing without bandwidth");
	if (!all)
		return;
	if (settings->share > all)
		log_warning("share %" PRIu64 " is above the bandwidth: a transfer gets all of it, "
			    "%" PRIu64 " bytes/s",
			settings->share, all);
	for (unsigned i = 0; i < settings->class_count; i++)
		if (settings->classes[i].share > all)
			log_warning("class %s: share %" PRIu64
				    " is above the bandwidth: a transfer gets all of it, %" PRIu64
				    " bytes/s",
				settings->classes[i].name, settings->classes[i].share, all);
}

static uint64_t within_limit(const struct job_turns *t, uint64_t rate)
{
	return t->limit_rate ? smaller(rate, t->limit_rate) : rate;
}

/* In the transfer's thread. */
static void want_turn(void *ctx)
{
	struct transfer_job *job = ctx;

	daemon_jobs_want_turn(job->session->daemon, job);
}

static void bound_sizes(struct transfer_job *job, uint64_t turn)
{
	struct transfer_params *params = &job->params;
	uint64_t window = bucket_max_window(turn);
	uint32_t block = bucket_max_block(turn);

	if (!params->window_max_bytes || params->window_max_bytes > window)
		params->window_max_bytes = window;
	/* as a source it chooses; what a client offers was agreed on before */
	if (transfer_job_sends(job) && (!params->max_block || params->max_block > block))
		params->max_block = block;
}

int job_turns_bound(struct transfer_job *job, const struct limits_of *limits)
{
	uint64_t turn = bucket_turn(limits->rate, job->params.rtt_ns);
	struct budget *most = &job->lease.most;
	struct job_turns *t = &job->turns;
	int err = 0;

	if (!t->has_bucket)
		err = bucket_init(&t->bucket, METER_ENDLESS, bucket_max_window(turn));
	if (err)
		return err;
	t->has_bucket = true;
	job->params.bucket = &t->bucket;
	bound_sizes(job, turn);
	most->memory_bytes = smaller(most->memory_bytes, job->params.window_max_bytes);
	if (most->memory_bytes < job->lease.least.memory_bytes)
		most->memory_bytes = job->lease.least.memory_bytes;
	for (unsigned i = 0; i < limits->count; i++)
		if (limits->shared[i]->rate != METER_ENDLESS)
			t->bucket.meters[t->bucket.meter_count++] = &limits->shared[i]->meter;
	return 0;
}

int job_turns_init(struct transfer_job *job, const struct daemon_settings *settings)
{
	struct transfer_params *params = &job->params;
	struct job_turns *t = &job->turns;
	uint64_t limit_rate = settings->limit_rate, turn;
	int err;

	t->deadline_ns = MESSAGE_UNKNOWN;
	t->asked_ns = clock_now_ns();
	if (job->limit_rate && (!limit_rate || job->limit_rate < limit_rate))
		limit_rate = job->limit_rate < BUCKET_RATE_MIN ? BUCKET_RATE_MIN : job->limit_rate;
	turn = turn_of(settings, limit_rate, params->rtt_ns);
	if (!turn)
		return 0;
	t->limit_rate = limit_rate;
	err = bucket_init(&t->bucket, t->limit_rate, bucket_max_window(turn));
	if (err)
		return err;
	t->has_bucket = true;
	params->bucket = &t->bucket;
	bound_sizes(job, turn);
	if (!settings->bandwidth)
		return 0;
	t->waits_turns = true;
	t->bucket.left = 0;
	t->bucket.wants = want_turn;
	t->bucket.ctx = job;
	return 0;
}

void job_turns_fini(struct transfer_job *job)
{
	struct job_turns *t = &job->turns;

	if (t->waits_turns)
		admission_release(&job->session->daemon->admission, &t->claim);
	if (t->has_bucket)
		bucket_fini(&t->bucket);
	t->has_bucket = t->waits_turns = false;
}

/* ---- the claim ---- */

static bool claim_ready(struct claim *c)
{
	struct transfer_job *job = of(c);

	return job->turns.is_asked && job_lease_ask(job);
}

static void claim_granted(struct claim *c)
{
	struct transfer_job *job = of(c);
	struct job_turns *t = &job->turns;

	bucket_grant(&t->bucket, within_limit(t, c->rate),
		c->turn_bytes == ADMISSION_ENDLESS ? BUCKET_ENDLESS : (int64_t)c->turn_bytes);
	if (!t->is_started)
		session_transfers_granted(job->session);
}

static void claim_changed(struct claim *c)
{
	struct job_turns *t = &of(c)->turns;

	if (c->rate)
		bucket_set_rate(&t->bucket, within_limit(t, c->rate));
	else
		bucket_stop(&t->bucket);
}

static void claim_queued(struct claim *c, unsigned position, uint64_t wait_ns)
{
	struct transfer_job *job = of(c);

	if (job->turns.is_started)
		bucket_tell(&job->turns.bucket, position, wait_ns);
	else
		session_transfers_queued(job->session, position, wait_ns);
}

static void claim_expired(struct claim *c)
{
	session_transfers_late(of(c)->session);
}

static uint64_t claim_moved(const struct claim *c)
{
	const struct job_turns *t = &of((struct claim *)(uintptr_t)c)->turns;

	return atomic_load_explicit(&t->bucket.moved, memory_order_relaxed);
}

static const struct claim_ops claim_ops = {
	.ready = claim_ready,
	.granted = claim_granted,
	.changed = claim_changed,
	.queued = claim_queued,
	.expired = claim_expired,
	.moved = claim_moved,
};

/* ---- its class ---- */

static enum admission_operation operation_of(const struct transfer_job *job)
{
	return job->type == MESSAGE_STORE ? ADMISSION_PUT
	       : transfer_job_sends(job)  ? ADMISSION_GET
					  : ADMISSION_FEED;
}

static uint64_t bytes_of(const struct transfer_job *job)
{
	bool known = job->request.size && job->type != MESSAGE_FEED;

	return known ? job->request.size : ADMISSION_NEVER;
}

static unsigned first_rank(const struct daemon_settings *settings)
{
	unsigned first = ADMISSION_RANKS - 1;

	for (unsigned i = 0; i < settings->class_count; i++)
		if (settings->classes[i].rank < first)
			first = settings->classes[i].rank;
	return first;
}

static void classify(struct transfer_job *job)
{
	const struct daemon_session *s = job->session;
	const struct daemon_settings *settings = s->daemon->settings;
	const struct admission_facts facts = {
		.address = fabric_chan_peer(control_chan(link_control(s->link))),
		.user = identity_user(&s->who),
		.export_name = job->entry->name,
		.path = job->path,
		.operation = operation_of(job),
	};
	const struct admission_rule *rule = admission_rule_choose(
		settings->classes, settings->class_count, &facts, s->admit_class);
	struct claim *c = &job->turns.claim;

	*c = (struct claim){
		.ops = &claim_ops,
		.rank = rule ? rule->rank : ADMISSION_RANKS - 1,
		.share = rule && rule->share ? rule->share : settings->share,
		.deadline_ns = ADMISSION_NEVER,
		.bytes = bytes_of(job),
		.expires_ns = ADMISSION_NEVER,
	};
	snprintf(c->name, sizeof c->name, "%s", rule ? rule->name : ADMISSION_DEFAULT);
	c->share = within_limit(&job->turns, admission_share(&s->daemon->admission, c));
	if (rule && rule->deadline_ns != ADMISSION_NEVER &&
		job->turns.deadline_ns == MESSAGE_UNKNOWN)
		c->deadline_ns = job->turns.asked_ns + rule->deadline_ns;
	else
		c->deadline_ns = job->turns.deadline_ns;
	if (job->turns.fails_late)
		c->expires_ns = c->deadline_ns;
	job->lease.rank = c->rank;
	job->lease.yields = c->rank > first_rank(settings);
	if (s->takes_queued)
		job->params.queue_class = c->name;
}

/* ---- the line ---- */

bool job_turns_is_late(const struct transfer_job *job)
{
	return job->turns.fails_late && !job->turns.is_started &&
	       job->turns.deadline_ns <= clock_now_ns();
}

int job_turns_ask(struct transfer_job *job)
{
	const struct daemon_session *s = job->session;
	struct job_turns *t = &job->turns;

	if (s->admit_deadline_ns != MESSAGE_UNKNOWN) { /* its codec has bounded it */
		t->deadline_ns = t->asked_ns + s->admit_deadline_ns;
		t->fails_late = s->admit_fails;
	}
	if (job_turns_is_late(job))
		return -ETIMEDOUT;
	if (!t->waits_turns)
		return 0;
	classify(job);
	return admission_add(&s->daemon->admission, &t->claim, clock_now_ns());
}

void job_turns_connected(struct transfer_job *job)
{
	job->turns.is_asked = true;
}

bool job_turns_has(const struct transfer_job *job)
{
	return !job->turns.waits_turns || job->turns.claim.state == CLAIM_RUNNING;
}

void job_turns_start(struct transfer_job *job)
{
	job->turns.is_started = true;
	job->turns.claim.expires_ns = ADMISSION_NEVER;
}

bool job_turns_leased(struct transfer_job *job)
{
	if (!job->turns.waits_turns)
		return false;
	admission_ready(&job->session->daemon->admission, &job->turns.claim);
	return true;
}

void job_turns_again(struct transfer_job *job)
{
	if (job->turns.waits_turns)
		admission_again(
			&job->session->daemon->admission, &job->turns.claim, clock_now_ns());
}
