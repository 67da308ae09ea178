/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/sides.h: the two sides of a measurement: links, memory, engines, and waiting as a
 * transfer waits.  They are two processes, or with the fabric `loop` two threads; what they tell
 * each other beside the fabric is in memory that both see.  Knows no experiments.
 */
#ifndef TESTS_BENCH_SIDES_H
#define TESTS_BENCH_SIDES_H

#include "../contexts.h"

#include "base/clock.h"
#include "base/worker.h"
#include "block/arena.h"
#include "engine/engine.h"
#include "proto/message_greeting.h"
#include "tests/cpu_time.h"
#include "fabric/select.h"
#include "fabric/loop/loop.h"
#include "proto/transfer.h"
#include "session/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SIDES_SESSIONS 16u
#define SIDES_SAMPLES 65536u
#define SIDES_MS 20000

/* What one side used and asked for. */
struct usage {
	uint64_t thread_ns; /* of the threads that own engines */
	uint64_t frames, starved;
	struct channel_counts requests;
	uint64_t pool_bytes;
	uint64_t rss_bytes, threads; /* of the process, when this session ended */
};

/* Of a whole process: the fabric's threads, too. */
struct effort {
	uint64_t cpu_ns;
	uint64_t sleeps; /* times that one of its threads went to sleep */
};

/* What the sink tells of its memory (a transfer's ACCEPT). */
struct meeting {
	_Atomic bool linked, opened;
	struct message_channels_reply channels;
	uint32_t depth, key, status_key;
	uint64_t base, status_base;
	bool imm;
};

struct shared {
	_Atomic uint32_t port;
	struct meeting meetings[SIDES_SESSIONS];
	struct usage source[SIDES_SESSIONS], sink[SIDES_SESSIONS];
	struct effort source_effort, sink_effort;
	_Atomic uint64_t start_ns, last_ns; /* of the flow; last_ns: the last block landed */
	_Atomic uint64_t landed, torn, blocks;
	_Atomic uint64_t sent_ns, release_ns; /* latency; delay of synchronization */
	_Atomic uint32_t samples;
	_Atomic uint32_t heard; /* sources that have the last frame */
	uint64_t sample[SIDES_SAMPLES];
	uint64_t cost[SIDES_SAMPLES]; /* of what the sink does to release, in the same order */
};

struct config {
	const char *what, *fabric, *host;
	const struct engine_ops *ops;
	uint32_t size, source_blocks, sink_blocks;
	unsigned channels, sessions, devices, count, gap_us, ms;
	struct fabric *loop; /* if that is the fabric */
	struct contexts contexts;
	struct shared *shared;
	int to_source; /* an eventfd: the sink's bell */
};

struct side {
	const struct config *config;
	struct shared *shared;
	unsigned session;
	bool source;
	struct link *link;
	struct arena arena;
	struct fabric_mr *mr;
	struct pool *pool;
	struct engine_source *from; /* one of these, */
	struct engine_sink *to;
	struct verdict why;
	struct engine *engine; /* and what both have */
	int wake_fd;           /* the other side's bell; -1: none */
	uint64_t frames;
	bool over;      /* COMPLETE, or CLOSED, has come */
	uint64_t total; /* blocks, as COMPLETE said */
	uint64_t thread_ns;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "engine_bench: %s: %s\n", what, strerror(error < 0 ? -error : error));
	_exit(1);
}

static void must(const char *what, int r)
{
	if (r < 0)
		die(what, r);
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct effort effort_now(void)
{
	struct effort e = {.cpu_ns = process_cpu_ns()};
	struct rusage u;

	if (!getrusage(RUSAGE_SELF, &u))
		e.sleeps = (uint64_t)u.ru_nvcsw;
	return e;
}

static struct effort effort_since(struct effort then)
{
	struct effort now = effort_now();

	return (struct effort){
		.cpu_ns = now.cpu_ns - then.cpu_ns, .sleeps = now.sleeps - then.sleeps};
}

static uint32_t capacity_of(uint32_t size)
{
	uint32_t whole = (size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;

	return whole < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : whole;
}

/* ---- channels ---- */

static struct fabric *sides_fabric(const struct config *c)
{
	struct select_config none = {0};
	struct fabric *fabric;

	if (c->loop)
		return c->loop;
	must(c->fabric, select_open(c->fabric, &none, &fabric));
	return fabric;
}

/* The sink's acceptor: a link for each control channel, in order of coming. */
struct acceptor {
	const struct config *config;
	struct fabric_eq *eq;
	struct fabric_listener *listener;
	struct link *links[SIDES_SESSIONS];
	unsigned count;
	struct worker worker;
	_Atomic bool stop;
};

static void accept_request(struct acceptor *a, struct fabric_event *ev)
{
	struct message_greeting greeting;

	if (message_get_greeting(&greeting, ev->priv, ev->priv_len)) {
		fabric_chan_reject(ev->chan, NULL, 0);
	} else if (greeting.kind != MESSAGE_CHANNEL_CONTROL) {
		if (greeting.session < a->count)
			link_accept_channel(a->links[greeting.session], ev->chan, &greeting);
		else
			fabric_chan_reject(ev->chan, NULL, 0);
	} else if (a->count < a->config->sessions) {
		must("accept", link_accept(ev->chan, &greeting, a->config->contexts.server,
				       &a->links[a->count]));
		a->count++;
	} else {
		fabric_chan_reject(ev->chan, NULL, 0);
	}
}

/* The control channel of one of the links is connected. */
static void accept_secure(struct acceptor *a, const struct fabric_event *ev)
{
	unsigned i = 0;

	while (i < a->count && control_chan(link_control(a->links[i])) != ev->chan)
		i++;
	if (i == a->count)
		return;
	must("handshake", control_secure(link_control(a->links[i]), SIDES_MS, -1));
	must("expect", link_expect_channels(a->links[i], 0, i, a->config->channels,
			       &a->config->shared->meetings[i].channels));
	a->config->shared->meetings[i].linked = true;
}

static void accept_events(void *arg)
{
	struct acceptor *a = arg;
	struct fabric_event ev;
	unsigned transfer; /* there is one */

	while (!a->stop) {
		if (fabric_eq_wait(a->eq, &ev, 50) != 1)
			continue;
		if (ev.type == FABRIC_EVENT_REQUEST)
			accept_request(a, &ev);
		else if (ev.type == FABRIC_EVENT_CONNECTED)
			accept_secure(a, &ev);
		else
			for (unsigned i = 0;
				i < a->count && !link_channel_event(a->links[i], &ev, &transfer);
				i++)
				;
	}
}

static struct sockaddr_in address(const struct config *c, uint32_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = (in_port_t)port};

	if (inet_pton(AF_INET, c->host, &sa.sin_addr) != 1)
		die(c->host, EINVAL);
	return sa;
}

static void acceptor_start(struct acceptor *a, const struct config *c, struct fabric *fabric)
{
	struct sockaddr_in sa = address(c, 0);
	struct sockaddr_storage real;

	*a = (struct acceptor){.config = c};
	must("event queue", fabric_eq_new(fabric, &a->eq));
	must("listen", fabric_listen(a->eq, (struct sockaddr *)&sa, sizeof sa, &a->listener));
	must("address", fabric_listener_addr(a->listener, &real));
	must("thread", worker_start(&a->worker, "accept", accept_events, a));
	c->shared->port = ((struct sockaddr_in *)&real)->sin_port;
}

static void acceptor_stop(struct acceptor *a)
{
	a->stop = true;
	worker_stop(&a->worker);
	for (unsigned i = 0; i < a->count; i++)
		link_free(a->links[i]);
	fabric_listener_free(a->listener);
	fabric_eq_free(a->eq);
}

/* Setting up only: what is waited for has no descriptor. */
#define await(what, condition)                                                                     \
	do {                                                                                       \
		for (unsigned tries_ = 0; !(condition); tries_++) {                                \
			if (tries_ > SIDES_MS * 10)                                                \
				die(what, ETIMEDOUT);                                              \
			usleep(100);                                                               \
		}                                                                                  \
	} while (0)

static struct link *sides_connect(const struct config *c, struct fabric *fabric, unsigned session)
{
	struct meeting *m = &c->shared->meetings[session];
	struct sockaddr_in sa;
	struct link *link;
	uint16_t status;

	await("the sink listens", c->shared->port);
	sa = address(c, c->shared->port);
	must("connect", link_connect(fabric,
				&(struct link_target){
					.dst = (struct sockaddr *)&sa,
					.tls = c->contexts.client,
					.host = "sides",
				},
				SIDES_MS, &link, &status));
	await("the sink's link", m->linked);
	must("channels", link_begin_channels(link, 0, session, &m->channels, SIDES_MS));
	must("channels", link_finish_channels(link, 0, SIDES_MS));
	return link;
}

/* ---- memory and engine ---- */

static int put_frame(void *ctx, uint16_t type, const void *data, size_t len)
{
	struct side *s = ctx;

	s->frames++;
	return control_put(link_control(s->link), type, 0, data, len);
}

static void make_pool(struct side *s, uint32_t blocks, unsigned access)
{
	uint32_t capacity = capacity_of(s->config->size);
	size_t bytes = pool_bytes(blocks, capacity);

	must("memory", arena_init(&s->arena, bytes, false));
	memset(s->arena.base, 0, s->arena.bytes); /* pages now, not while it is measured */
	must("registration", fabric_mr_new(control_pd(link_control(s->link)), s->arena.base, bytes,
				     access, &s->mr));
	must("pool", pool_new(s->arena.base, blocks, capacity, &s->pool));
	for (unsigned i = 0; i < s->config->channels; i++)
		channel_reset_counts(link_rail(s->link, 0)->channels[i]);
}

static struct engine_env side_env(struct side *s)
{
	return (struct engine_env){
		.pool = s->pool,
		.pd = control_pd(link_control(s->link)),
		.mr = s->mr,
		.cq = link_rail(s->link, 0)->cq,
		.channels = link_rail(s->link, 0)->channels,
		.channel_count = s->config->channels,
		.notice = s->config->ops->id == MESSAGE_ENGINE_CREDIT ? TRANSFER_NOTICE_GATHERED
								      : TRANSFER_NOTICE_BEHIND,
		.verdict = &s->why,
		.put = put_frame,
		.put_ctx = s,
	};
}

static void side_open_sink(
	struct side *s, const struct config *c, struct link *link, unsigned session)
{
	struct meeting *m = &c->shared->meetings[session];
	const struct fabric_caps *caps = fabric_chan_caps(control_chan(link_control(link)));
	struct engine_env env;
	const char *lacks;

	*s = (struct side){
		.config = c, .shared = c->shared, .link = link, .session = session, .wake_fd = -1};
	await("data channels", link_channel_count(link, 0) == c->channels);
	must("greeting", rail_wait_greeted(link_rail(link, 0), c->channels, SIDES_MS, -1));
	lacks = engine_lacks(c->ops, caps);
	if (lacks) {
		fprintf(stderr, "engine_bench: %s needs %s\n", c->ops->name, lacks);
		_exit(2);
	}
	make_pool(s, c->sink_blocks, c->ops->sink->access);
	env = side_env(s);
	env.imm = m->imm = env.notice == TRANSFER_NOTICE_BEHIND && c->ops->notices && caps->has_imm;
	must("engine of the sink", c->ops->sink->open(&env, &s->to));
	s->engine = &s->to->common;
	m->depth = c->sink_blocks;
	m->base = fabric_mr_base(s->mr);
	m->key = fabric_mr_key(s->mr);
	if (s->to->status_mr) {
		m->status_base = fabric_mr_base(s->to->status_mr);
		m->status_key = fabric_mr_key(s->to->status_mr);
	}
	m->opened = true;
}

static void side_open_source(
	struct side *s, const struct config *c, struct link *link, unsigned session)
{
	struct meeting *m = &c->shared->meetings[session];
	struct message_ping ping = {0};
	struct engine_env env;
	uint8_t cookie[8];

	*s = (struct side){.config = c,
		.shared = c->shared,
		.link = link,
		.session = session,
		.source = true,
		.wake_fd = c->to_source};
	await("the sink's engine", m->opened);
	make_pool(s, c->source_blocks, c->ops->source->access);
	env = side_env(s);
	env.imm = m->imm;
	env.remote_depth = m->depth;
	env.remote_stride = pool_stride(capacity_of(c->size));
	env.remote_base = m->base;
	env.remote_key = m->key;
	env.remote_status_base = m->status_base;
	env.remote_status_key = m->status_key;
	must("engine of the source", c->ops->source->open(&env, &s->from));
	s->engine = &s->from->common;
	/* the side that connects sends first, on the control channel too */
	must("ping", control_put(link_control(link), MESSAGE_PING, 0, cookie,
			     (size_t)message_put_ping(&ping, cookie, sizeof cookie)));
}

/* Memory and threads of this process now. */
static void measure_memory(struct usage *u)
{
	unsigned long size, pages;
	char line[128];
	FILE *f;

	f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%lu %lu", &size, &pages) == 2)
		u->rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (f)
		fclose(f);
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Threads: %lu", &pages) == 1)
			u->threads = pages;
	if (f)
		fclose(f);
}

/* In the thread that owns the engine from here on, and calls side_close. */
static void side_begin(struct side *s)
{
	s->thread_ns = thread_cpu_ns();
}

static void side_close(struct side *s)
{
	struct usage *u = s->source ? &s->shared->source[s->session] : &s->shared->sink[s->session];

	u->thread_ns = thread_cpu_ns() - s->thread_ns;
	if (s->from)
		s->from->ops->stop(s->from);
	measure_memory(u);
	u->frames = s->frames;
	u->pool_bytes = s->arena.bytes;
	for (unsigned i = 0; i < s->config->channels; i++) {
		const struct channel_counts *n = &link_rail(s->link, 0)->channels[i]->counts;

		u->requests.writes += n->writes;
		u->requests.sends += n->sends;
		u->requests.reads += n->reads;
		u->requests.signalled += n->signalled;
		u->requests.receives += n->receives;
		if (n->send_queue > u->requests.send_queue)
			u->requests.send_queue = n->send_queue;
		if (n->receive_queue > u->requests.receive_queue)
			u->requests.receive_queue = n->receive_queue;
	}
	link_close_channels(s->link, 0);
	if (s->from)
		s->from->ops->close(s->from);
	if (s->to)
		s->to->ops->close(s->to);
	fabric_mr_free(s->mr);
	pool_free(s->pool);
	arena_fini(&s->arena);
}

/* ---- the control channel, and waiting ---- */

static void take_frames(struct side *s)
{
	struct message_header h;
	const uint8_t *data;
	int r;

	/* after CLOSED the channel may go */
	while (!s->over && (r = control_get(link_control(s->link), &h, &data)) != 0) {
		struct transfer_complete complete;

		must("control channel", r);
		r = s->from ? engine_source_frame(s->from, h.type, data, h.length)
			    : engine_sink_frame(s->to, h.type, data, h.length);
		must("frame", r);
		if (r || h.type == MESSAGE_PING)
			continue;
		if (h.type != (s->source ? TRANSFER_CLOSED : TRANSFER_COMPLETE) ||
			transfer_get_complete(&complete, data, h.length))
			die("frame", EBADMSG);
		s->over = true;
		s->total = complete.bytes;
	}
}

static void tell_complete(struct side *s, uint64_t blocks)
{
	struct transfer_complete complete = {.bytes = blocks};
	uint8_t data[64];
	ssize_t len = transfer_put_complete(&complete, data, sizeof data);

	must("complete",
		control_put(link_control(s->link), s->source ? TRANSFER_COMPLETE : TRANSFER_CLOSED,
			0, data, (size_t)len));
}

static void ring(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof one) != sizeof one)
		die("eventfd", errno);
}

/*
 * Sleeps as a transfer does (transfer/run.c), but never spins before, until a frame, a completion
 * or the other side's bell, at most as long as the engine and `most_ns` (-1: for ever) say. `again`
 * does what there is to do once more.
 */
static void side_wait(struct side *s, int64_t most_ns, bool (*again)(void *), void *ctx)
{
	struct pollfd fds[3] = {
		{control_fd(link_control(s->link)), POLLIN, 0},
		{fabric_cq_fd(link_rail(s->link, 0)->cq), POLLIN, 0},
		{s->wake_fd, POLLIN, 0},
	};
	struct timespec ts;
	uint64_t bell;
	int64_t nap;

	if (!engine_sleep_ns(s->engine))
		return;
	must("arm", control_arm(link_control(s->link)));
	must("arm", fabric_cq_arm(link_rail(s->link, 0)->cq));
	if (again(ctx))
		return;
	/* asked again: what was done above may have changed it */
	nap = engine_sleep_ns(s->engine);
	if (most_ns >= 0 && (nap < 0 || most_ns < nap))
		nap = most_ns;
	ts = (struct timespec){.tv_sec = (time_t)((uint64_t)nap / NS_PER_S),
		.tv_nsec = (long)((uint64_t)nap % NS_PER_S)};
	if (ppoll(fds, s->wake_fd < 0 ? 2 : 3, nap < 0 ? NULL : &ts, NULL) < 0 && errno != EINTR)
		die("poll", errno);
	if (fds[2].revents & POLLIN)
		if (read(s->wake_fd, &bell, sizeof bell) < 0 && errno != EAGAIN)
			die("eventfd", errno);
}

/* ---- blocks ---- */

/* The header; and its sequence again at the end of the payload, so that a torn block shows. */
static void stamp(struct side *s, struct block *b, uint32_t device, uint32_t sequence)
{
	struct transfer_block header = {
		.session = device + 1, .sequence = sequence, .length = s->config->size};
	uint64_t mark = (uint64_t)(device + 1) << 32 | sequence;

	b->length = s->config->size;
	transfer_put_block(&header, b->payload - BLOCK_PREFIX_BYTES);
	memcpy(b->payload + b->length - sizeof mark, &mark, sizeof mark);
}

static void check_stamp(struct side *s, const struct block *b, struct transfer_block *header)
{
	uint64_t mark;

	if (transfer_get_block(
		    header, b->payload - BLOCK_PREFIX_BYTES, capacity_of(s->config->size)) ||
		header->length != s->config->size)
		die("header of a block", EBADMSG);
	memcpy(&mark, b->payload + header->length - sizeof mark, sizeof mark);
	if (mark != ((uint64_t)header->session << 32 | header->sequence))
		s->shared->torn++;
}

/* Blocks that may leave now; `wanted`: there is one, and the sink is asked if there is no room. */
static unsigned side_room(struct side *s, unsigned wanted)
{
	int room = s->from->ops->room(s->from, wanted);

	must("room", room);
	if (!room && wanted)
		s->shared->source[s->session].starved++;
	return (unsigned)room;
}

/* Takes what was sent back: how much. */
static int take_sent(struct side *s)
{
	struct block *done[32];
	int n = s->from->ops->poll(s->from, done, 32);

	must("poll", n);
	for (int i = 0; i < n; i++)
		pool_give(s->pool, done[i]);
	return n;
}

static void release(struct side *s, struct block *b)
{
	if (b->state == BLOCK_LANDED)
		pool_move(b, BLOCK_DRAINING);
	pool_give(s->pool, b);
}

#endif
