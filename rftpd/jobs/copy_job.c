/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/copy_job: see copy_job.h.
 */
#include "rftpd/jobs/copy_job.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "proto/status.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/daemon_jobs.h"
#include "rftpd/serve/session_log.h"
#include "session/calls_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGENT "rftpd/" RFTP_VERSION
#define CONNECT_MS 10000
#define TELL_NS (NS_PER_S / 5)
#define OUTCOMES_MAX (8u << 20)      /* bytes in the box: then the client does not take them */
#define REPLY_OUTCOMES 48000u        /* bytes of them in one reply */
#define CLIENT_BEHIND (256u * 1024u) /* bytes that wait for it */

static const struct transfer_cancel client_deaf = {
	STATUS_TIMEOUT, "the client that asked for it does not take what it is told"};

struct copy_job *copy_job_new(const struct message_send_copy *m, const struct sockaddr *address)
{
	struct copy_job *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	memcpy(c->host, m->host.data, m->host.len); /* its codec has bounded them all */
	memcpy(c->key, m->key.data, m->key.len);
	memcpy(c->grant, m->grant.data, m->grant.len);
	memcpy(c->to, m->to.data, m->to.len);
	c->grant_len = m->grant.len;
	c->port = m->port;
	c->protect = m->protect;
	c->to_flags = m->to_flags;
	c->resume = m->request.resume;
	addr_format(address, c->address);
	pthread_mutex_init(&c->lock, NULL);
	c->news.total_bytes = c->news.total_files = MESSAGE_UNKNOWN;
	return c;
}

void copy_job_free(struct copy_job *c)
{
	if (!c)
		return;
	explicit_bzero(c->grant, sizeof c->grant);
	buffer_fini(&c->outcomes);
	buffer_fini(&c->lengths);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- the box ---- */

static void job_tells(struct transfer_job *job)
{
	job->copy->told_ns = clock_now_ns();
	daemon_jobs_copied(job->session->daemon, job);
}

void copy_job_note(struct transfer_job *job, const struct outcome *o)
{
	struct copy_job *c = job->copy;
	const size_t text = strlen(o->text);
	const struct message_copy_outcome outcome = {
		.flags = (uint8_t)((o->directory ? MESSAGE_COPY_DIRECTORY : 0) |
				   (o->special ? MESSAGE_COPY_SPECIAL : 0) |
				   (o->at_sink ? MESSAGE_COPY_THERE : 0)),
		.status = o->status,
		.bytes = o->status ? 0 : o->bytes,
		.name = o->name,
		.text = {(const uint8_t *)o->text,
			text < MESSAGE_TEXT_MAX ? text : MESSAGE_TEXT_MAX},
	};
	size_t room = 15 + o->name.len + text + 16, len = 0;
	bool full = false;
	uint8_t *to;

	pthread_mutex_lock(&c->lock);
	to = c->is_full ? NULL : buffer_reserve(&c->outcomes, room);
	if (to && !message_add_outcome(to, room, &len, &outcome) &&
		!buffer_append(&c->lengths, &len, sizeof len))
		buffer_added(&c->outcomes, len);
	else
		full = !c->is_full;
	if (buffer_bytes(&c->outcomes) > OUTCOMES_MAX)
		full = !c->is_full;
	c->is_full |= full;
	pthread_mutex_unlock(&c->lock);
	if (full)
		transfer_job_stop(job, &client_deaf);
}

void copy_job_progress(struct transfer_job *job)
{
	const struct transfer_stats *stats = &job->stats;
	struct copy_job *c = job->copy;
	const struct engine_ops *engine = stats->engine ? engine_by_name(stats->engine) : NULL;
	const char *fabric = stats->block && stats->fabric ? stats->fabric : "";
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&c->lock);
	c->news.bytes = stats->bytes;
	c->news.verified_bytes = stats->verified_bytes;
	c->news.had_bytes = stats->had_bytes;
	memcpy(c->current, stats->current, sizeof c->current);
	c->news.current = (struct wire_bytes){(const uint8_t *)c->current, strlen(c->current)};
	c->news.hole_bytes = stats->hole_bytes;
	c->news.crossed_bytes = stats->crossed_bytes;
	c->news.total_bytes = stats->total_bytes;
	c->news.total_files = stats->total_files;
	c->news.files = stats->files;
	c->news.errors = stats->errors;
	c->news.ns = stats->started_ns ? now - stats->started_ns : 0;
	c->news.engine = stats->block && engine ? engine->id : 0;
	c->news.protect = stats->protect;
	c->news.direct = stats->direct;
	c->news.channels = (uint16_t)stats->channels;
	c->news.block = stats->block;
	c->news.depth = stats->depth;
	c->news.fabric = (struct wire_bytes){(const uint8_t *)fabric, strlen(fabric)};
	pthread_mutex_unlock(&c->lock);
	if (now - c->told_ns >= TELL_NS)
		job_tells(job);
}

/* One reply with as many outcomes as it has room for.  More of them are left: 1; 0; -errno. */
static int tell_some(struct transfer_job *job, const struct message_copy_reply *last)
{
	struct copy_job *c = job->copy;
	uint8_t *data = malloc(MESSAGE_DATA_MAX);
	struct message_copy_reply reply;
	size_t used = 0, count = 0, bytes = 0, lengths;
	ssize_t len;
	int err;

	if (!data)
		return -ENOMEM;
	pthread_mutex_lock(&c->lock);
	reply = c->news;
	lengths = buffer_bytes(&c->lengths) / sizeof(size_t);
	for (; count < lengths && count < UINT16_MAX; count++) {
		size_t one;

		memcpy(&one, buffer_front(&c->lengths) + count * sizeof one, sizeof one);
		if (used + one > REPLY_OUTCOMES)
			break;
		used += one;
	}
	reply.more = 1;
	if (last && count == lengths) {
		reply.more = 0;
		reply.side = last->side;
		reply.status = last->status;
		reply.text = last->text;
	}
	reply.count = (uint16_t)count;
	reply.outcomes = (struct wire_bytes){buffer_front(&c->outcomes), used};
	len = message_put_copy_reply(&reply, data, MESSAGE_DATA_MAX);
	buffer_consume(&c->outcomes, used);
	buffer_consume(&c->lengths, count * sizeof(size_t));
	bytes = buffer_bytes(&c->outcomes);
	pthread_mutex_unlock(&c->lock);
	err = daemon_session_reply(job->session, MESSAGE_SEND_COPY, data, len);
	free(data);
	return err ? err : bytes > 0;
}

int copy_job_tell(struct transfer_job *job)
{
	int more = 1;

	/* what it does not take now stays in the box */
	while (more == 1 && demux_pending_bytes(link_demux(job->session->link)) < CLIENT_BEHIND)
		more = tell_some(job, NULL);
	return more < 0 ? more : 0;
}

int copy_job_tell_end(struct transfer_job *job)
{
	const struct verdict *why = &job->stats.verdict;
	const size_t len = strlen(why->text);
	const bool failed = job->outcome > VERDICT_FILE;
	const struct message_copy_reply last = {
		.side = (uint8_t)(failed ? job->copy->side : MESSAGE_COPY_NOWHERE),
		.status = failed ? why->status : STATUS_OK,
		.text = {(const uint8_t *)why->text, !failed                  ? 0
						     : len < MESSAGE_TEXT_MAX ? len
									      : MESSAGE_TEXT_MAX},
	};
	int more = 1;

	while (more == 1)
		more = tell_some(job, &last);
	return more;
}

/* ---- the other server's client ---- */

/* Nothing was sent to it yet: whoever it is has learnt no more than that somebody connects. */
static int check_key(
	void *ctx, const struct tls *tls, const struct sockaddr *address, char why[TLS_WHY_MAX])
{
	const struct copy_job *c = ctx;
	char fingerprint[TLS_FINGERPRINT_MAX];
	struct tls_key key;

	(void)address;
	if (!tls_peer_key(tls, &key)) {
		tls_key_fingerprint(&key, fingerprint);
		if (!strcmp(fingerprint, c->key))
			return 0;
	}
	snprintf(why, TLS_WHY_MAX,
		"what answers there has another host key than the one that the client trusts");
	return -EKEYREJECTED;
}

static int show_grant(void *ctx, const struct tls *tls, unsigned methods,
	struct message_login *login, char why[TLS_WHY_MAX])
{
	struct copy_job *c = ctx;

	(void)tls;
	(void)methods;
	(void)why;
	if (c->shown)
		return 0;
	c->shown = true;
	*login = (struct message_login){
		.method = MESSAGE_LOGIN_GRANT, .data = {c->grant, c->grant_len}};
	return 1;
}

/* It did not come to a transfer. */
static void fail(struct transfer_job *job, enum message_copy_side side, int err,
	const struct calls_error *why)
{
	const struct transfer_cancel *cancel = atomic_load(&job->params.cancel);

	job->outcome = VERDICT_TRANSFER;
	job->stats.ended_ns = clock_now_ns();
	job->copy->side = side;
	verdict_clear(&job->stats.verdict);
	if (err == -ECANCELED) {
		job->copy->side = MESSAGE_COPY_SOURCE;
		verdict_set(&job->stats.verdict, VERDICT_TRANSFER,
			cancel ? cancel->status : STATUS_CANCELLED, "%s",
			cancel ? cancel->text : "");
	} else if (why && why->status) {
		verdict_set(&job->stats.verdict, VERDICT_TRANSFER, why->status, "%s", why->text);
	} else {
		verdict_set(
			&job->stats.verdict, VERDICT_TRANSFER, status_from_errno(err), "%s", "");
	}
}

/* Where a transfer that was cut short failed. */
static enum message_copy_side side_of(const struct transfer_job *job)
{
	const struct verdict *why = &job->stats.verdict;

	if (job->outcome == VERDICT_SESSION || why->status == STATUS_DISCONNECTED)
		return MESSAGE_COPY_BETWEEN;
	return job->stats.told ? MESSAGE_COPY_DESTINATION : MESSAGE_COPY_SOURCE;
}

static void use_session(struct transfer_job *job, const struct calls *calls)
{
	const struct calls_info *info = calls_info(calls);
	struct transfer_params *p = &job->params;

	p->transfer = 0; /* in that session */
	p->engines = info->engines;
	p->protect = info->protect;
	p->rtt_ns = info->rtt_ns;
	p->max_block =
		p->max_block && p->max_block < info->max_block ? p->max_block : info->max_block;
	p->max_depth = info->max_depth;
	if (p->block > p->max_block)
		p->block = p->max_block;
	if (p->depth > p->max_depth)
		p->depth = p->max_depth;
}

static struct message_data_request store_request(
	const struct transfer_job *job, const struct calls *calls)
{
	const struct transfer_source *source = outgoing_source(job->outgoing);
	struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES,
		.flags = job->copy->to_flags,
		.block = job->request.block,
		.depth = job->request.depth,
		.rtt_us = calls_rtt_us(calls),
		.direct = job->request.direct,
		.resume = job->copy->resume,
		.path = {(const uint8_t *)job->copy->to, strlen(job->copy->to)},
	};

	if (source->total_bytes == source->largest_bytes &&
		source->total_bytes <= TRANSFER_SIZE_MAX)
		request.size = source->total_bytes;
	return request;
}

static void move(struct transfer_job *job, struct calls *calls)
{
	struct message_data_request request;
	unsigned channels = job->params.channels;
	int err;

	use_session(job, calls);
	job->params.channels = 0; /* all that there are */
	err = calls_channels(calls, 0, channels);
	if (!err) {
		request = store_request(job, calls);
		err = calls_store(calls, 0, &request);
	}
	if (err) {
		fail(job, calls_lost(calls) ? MESSAGE_COPY_BETWEEN : MESSAGE_COPY_DESTINATION, err,
			calls_error(calls));
		return;
	}
	job->stats.started_ns = clock_now_ns();
	job->outcome = transfer_send(
		calls_link(calls), &job->params, outgoing_source(job->outgoing), &job->stats);
	copy_job_progress(job);
	if (job->outcome <= VERDICT_FILE)
		return;
	job->copy->side = side_of(job);
	/* which lost a session, but not that of the client */
	job->outcome = VERDICT_TRANSFER;
}

void copy_job_run(struct transfer_job *job)
{
	const struct daemon_settings *settings = job->session->daemon->settings;
	struct copy_job *c = job->copy;
	const struct tls_files none = {0};
	struct tls_context *tls = NULL;
	struct calls_error why = {0};
	struct calls *calls;
	char text[TLS_WHY_MAX];
	int err = tls_context_new_client(&none, &tls, text);
	const struct calls_params params = {
		.host = c->host,
		.port = c->port,
		.agent = AGENT,
		.fabric = settings->fabric && strcmp(settings->fabric, "auto") ? settings->fabric
									       : "",
		.tls = tls,
		.trust = check_key,
		.trust_ctx = c,
		.login = show_grant,
		.login_ctx = c,
		.protect = c->protect > settings->protect ? c->protect : settings->protect,
		.crc = settings->crc,
		.connect_timeout_ms = CONNECT_MS,
		.cancel_fd = job->cancel_fd,
	};

	if (err) {
		log_error("copy to %s: %s", c->address, text);
		fail(job, MESSAGE_COPY_SOURCE, err, NULL);
		return;
	}
	err = calls_open(&params, &calls, &why);
	if (err) {
		fail(job,
			c->shown && why.status != STATUS_DISCONNECTED &&
					why.status != STATUS_TIMEOUT &&
					why.status != STATUS_PROTOCOL
				? MESSAGE_COPY_DESTINATION
				: MESSAGE_COPY_BETWEEN,
			err, &why);
	} else {
		session_log(job->session, LOG_LEVEL_INFO, "copies to %s: %s", c->address,
			calls_info(calls)->security);
		move(job, calls);
		calls_close(calls);
	}
	tls_context_free(tls);
}
