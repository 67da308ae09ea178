/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/ends.h: the two ends of measurements on a fabric itself: processes, the client's and
 * the daemon's, with a channel between each two of their threads, and memory to each.  Knows no
 * measurement.
 *
 * The memory of an end, one more of each kind than requests may be outstanding (COUNT):
 *
 *     slots    of `stride` bytes: data.  The peer may read and write it all
 *     notes    of ENDS_NOTE_BYTES: requests and acknowledgements that are received
 *     results  64 bits each, in a piece that begins and ends at ENDS_NOTE_BYTES
 */
#ifndef TESTS_BENCH_ENDS_H
#define TESTS_BENCH_ENDS_H

#include "base/clock.h"
#include "base/worker.h"
#include "fabric/select.h"
#include "tests/cpu_time.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ENDS_MAX 64u
#define ENDS_MS 20000
#define ENDS_NOTE_BYTES 64u
#define ENDS_SLOT_ALIGN 4096u

/* What the daemon's end tells of its memory before the channel is there; the client's is in its
 * first SEND. */
struct ends_memory {
	uint64_t base;
	uint32_t key;
};

struct ends_config {
	const char *fabric, *host;
	unsigned threads, depth;
	uint32_t size;     /* of a request's data */
	bool client_lands; /* data comes to that end by SEND */
	bool daemon_lands;
	_Atomic uint32_t *port;
	struct ends_memory *memory; /* ENDS_MAX of them, which both processes see */
};

struct end {
	const struct ends_config *config;
	unsigned index;
	struct fabric_chan *chan;
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	struct fabric_mr *mr;
	const struct fabric_caps *caps;
	uint8_t *memory;
	size_t bytes;
	uint32_t stride, count;
	bool lands;
	uint64_t receives; /* posted so far, in order: their ids */
	struct ends_memory peer;
	bool is_connected, is_met;
};

struct ends {
	const struct ends_config *config;
	struct fabric *fabric;
	struct fabric_eq *eq;
	struct fabric_listener *listener;
	struct end of[ENDS_MAX];
};

static _Noreturn void die(const char *what, int error)
{
	fprintf(stderr, "requests: %s: %s\n", what, strerror(error < 0 ? -error : error));
	_exit(1);
}

static void must(const char *what, int r)
{
	if (r < 0)
		die(what, r);
}

/* ---- memory ---- */

static uint8_t *end_slot(const struct end *e, uint64_t number)
{
	return e->memory + number % e->count * e->stride;
}

static uint8_t *end_note(const struct end *e, uint64_t number)
{
	return e->memory + (size_t)e->count * e->stride + number % e->count * ENDS_NOTE_BYTES;
}

/* What a note is sent from: nothing in it changes. */
static uint8_t *end_said(const struct end *e)
{
	return end_note(e, 0) + (size_t)e->count * ENDS_NOTE_BYTES;
}

static _Atomic uint64_t *end_results(const struct end *e)
{
	return (_Atomic uint64_t *)(void *)(end_said(e) + ENDS_NOTE_BYTES);
}

static uint32_t end_results_bytes(const struct end *e)
{
	return (e->count * 8 + ENDS_NOTE_BYTES - 1) / ENDS_NOTE_BYTES * ENDS_NOTE_BYTES;
}

/* Where the peer's is that is at `local` here: both ends have the same layout. */
static uint64_t end_remote(const struct end *e, const void *local)
{
	return e->peer.base + (uint64_t)((const uint8_t *)local - e->memory);
}

static void end_post_receive(struct end *e)
{
	uint64_t n = e->receives++;

	if (e->lands)
		must("receive",
			fabric_post_recv(e->chan, n, end_slot(e, n), e->config->size, e->mr));
	else
		must("receive",
			fabric_post_recv(e->chan, n, end_note(e, n), ENDS_NOTE_BYTES, e->mr));
}

/* Queues, memory, and as many receives as it can need at once. */
static void end_setup(struct end *e, struct fabric_chan *chan, bool lands)
{
	const struct ends_config *c = e->config;
	uint32_t sends = c->depth * 4 + 64;

	e->chan = chan;
	e->lands = lands;
	e->count = c->depth + 1;
	e->stride = (c->size + ENDS_SLOT_ALIGN - 1) / ENDS_SLOT_ALIGN * ENDS_SLOT_ALIGN;
	must("protection domain", fabric_pd_new(chan, &e->pd));
	must("completion queue", fabric_cq_new(e->pd, sends + e->count, &e->cq));
	must("channel", fabric_chan_setup(chan, &(struct fabric_chan_attr){.pd = e->pd,
							.cq = e->cq,
							.send_depth = sends,
							.recv_depth = e->count,
							.inline_bytes = ENDS_NOTE_BYTES,
							.context = e}));
	fabric_chan_set_owner(chan, e);
	e->caps = fabric_chan_caps(chan);
	e->bytes = (size_t)e->count * (e->stride + ENDS_NOTE_BYTES) + ENDS_NOTE_BYTES +
		   end_results_bytes(e);
	e->memory = mmap(NULL, e->bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (e->memory == MAP_FAILED)
		die("memory", errno);
	must("registration",
		fabric_mr_new(e->pd, e->memory, e->bytes,
			FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ | FABRIC_READ_INTO, &e->mr));
	for (uint32_t i = 0; i < e->count; i++)
		end_post_receive(e);
}

static void end_free(struct end *e)
{
	fabric_chan_free(e->chan);
	fabric_mr_free(e->mr);
	fabric_cq_free(e->cq);
	fabric_pd_free(e->pd);
	munmap(e->memory, e->bytes);
}

/* ---- requests ---- */

/* Up to `max` completions, after a wait of some ms if there are none: 0 means that.  An error of
 * the channel ends the program, unless it is about to be closed. */
static int end_wait(struct end *e, struct fabric_wc *wc, int max, int timeout_ms)
{
	struct pollfd fd = {.fd = fabric_cq_fd(e->cq), .events = POLLIN};
	uint64_t spin = clock_now_ns() + e->caps->spin_ns;
	int n;

	do {
		n = fabric_cq_poll(e->cq, wc, max);
	} while (!n && timeout_ms && clock_now_ns() < spin);
	if (!n && timeout_ms) {
		must("arm", fabric_cq_arm(e->cq));
		n = fabric_cq_poll(e->cq, wc, max);
		if (!n && poll(&fd, 1, timeout_ms) > 0)
			n = fabric_cq_poll(e->cq, wc, max);
	}
	must("poll", n);
	return n;
}

/* One request from or to this end's memory, and the same place of the peer's; next: linked behind.
 */
static struct fabric_wr end_request(enum fabric_opcode opcode, struct fabric_sge *sge,
	const struct end *e, uint64_t id, unsigned flags)
{
	if (opcode == FABRIC_SEND && sge->bytes <= e->caps->inline_max)
		flags |= FABRIC_INLINE;
	return (struct fabric_wr){.id = id,
		.opcode = opcode,
		.flags = flags,
		.sge = sge,
		.sge_count = 1,
		.remote_addr = opcode == FABRIC_SEND ? 0 : end_remote(e, sge->addr),
		.remote_key = opcode == FABRIC_SEND ? 0 : e->peer.key};
}

static void end_post(struct end *e, enum fabric_opcode opcode, void *at, uint32_t bytes,
	uint64_t id, unsigned flags)
{
	struct fabric_sge sge = {.addr = at, .bytes = bytes, .mr = e->mr};
	struct fabric_wr wr = end_request(opcode, &sge, e, id, flags);

	must("post", fabric_post_send(e->chan, &wr));
}

/* ---- connecting ---- */

static struct sockaddr_in ends_address(const struct ends_config *c, uint32_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = (in_port_t)port};

	if (inet_pton(AF_INET, c->host, &sa.sin_addr) != 1)
		die(c->host, EINVAL);
	return sa;
}

static void ends_open(struct ends *ends, const struct ends_config *c)
{
	struct select_config none = {0};

	*ends = (struct ends){.config = c};
	must(c->fabric, select_open(c->fabric, &none, &ends->fabric));
	must("event queue", fabric_eq_new(ends->fabric, &ends->eq));
	for (unsigned i = 0; i < c->threads; i++) {
		ends->of[i].config = c;
		ends->of[i].index = i;
	}
}

static void ends_close(struct ends *ends)
{
	for (unsigned i = 0; i < ends->config->threads; i++)
		end_free(&ends->of[i]);
	fabric_listener_free(ends->listener);
	fabric_eq_free(ends->eq);
	fabric_close(ends->fabric);
}

static void ends_take_event(struct ends *ends, const struct fabric_event *ev)
{
	const struct ends_config *c = ends->config;
	struct end *e = ev->owner;

	if (ev->type == FABRIC_EVENT_REQUEST) {
		if (!ev->priv_len || ev->priv[0] >= c->threads)
			die("a stranger connects", EPROTO);
		e = &ends->of[ev->priv[0]];
		end_setup(e, ev->chan, c->daemon_lands);
		c->memory[e->index] = (struct ends_memory){
			.base = fabric_mr_base(e->mr), .key = fabric_mr_key(e->mr)};
		must("accept", fabric_chan_accept(ev->chan, NULL, 0));
	} else if (ev->type == FABRIC_EVENT_CONNECTED) {
		e->is_connected = true;
	} else if (!e->is_met) {
		die("connection", ev->error ? ev->error : ECONNRESET);
	}
}

/* The first message, with which a channel may be used in both directions. */
static void end_meet(struct end *e)
{
	struct fabric_wc wc;

	if (e->is_met || !e->chan || end_wait(e, &wc, 1, 0) != 1)
		return;
	if (wc.status != FABRIC_OK)
		die(fabric_status_name(wc.status), EIO);
	if (wc.opcode == FABRIC_RECV) {
		memcpy(&e->peer, e->lands ? end_slot(e, 0) : end_note(e, 0), sizeof e->peer);
		end_post_receive(e);
	}
	e->is_met = true;
}

/* The daemon: until all are there. */
static void ends_accept(struct ends *ends)
{
	const struct ends_config *c = ends->config;
	struct sockaddr_in sa = ends_address(c, 0);
	struct sockaddr_storage real;
	struct fabric_event ev;
	unsigned met = 0;

	must("listen", fabric_listen(ends->eq, (struct sockaddr *)&sa, sizeof sa, &ends->listener));
	must("address", fabric_listener_addr(ends->listener, &real));
	*c->port = ((struct sockaddr_in *)&real)->sin_port;
	while (met < c->threads) {
		if (fabric_eq_wait(ends->eq, &ev, 5) == 1)
			ends_take_event(ends, &ev);
		met = 0;
		for (unsigned i = 0; i < c->threads; i++) {
			end_meet(&ends->of[i]);
			met += ends->of[i].is_met;
		}
	}
}

static void end_connect(struct ends *ends, struct end *e, const struct sockaddr_in *sa)
{
	struct fabric_chan *chan;
	struct fabric_event ev;
	uint8_t priv = (uint8_t)e->index;
	struct ends_memory mine;

	must("dial", fabric_dial(ends->eq, (const struct sockaddr *)sa, NULL, ENDS_MS, &chan));
	end_setup(e, chan, ends->config->client_lands);
	must("connect", fabric_chan_connect(chan, &priv, sizeof priv));
	while (!e->is_connected) {
		if (fabric_eq_wait(ends->eq, &ev, ENDS_MS) != 1)
			die("connect", ETIMEDOUT);
		ends_take_event(ends, &ev);
	}
	e->peer = ends->config->memory[e->index];
	mine = (struct ends_memory){.base = fabric_mr_base(e->mr), .key = fabric_mr_key(e->mr)};
	memcpy(end_said(e), &mine, sizeof mine);
	end_post(e, FABRIC_SEND, end_said(e), ENDS_NOTE_BYTES, 0, FABRIC_SIGNALED);
	for (uint64_t end = clock_now_ns() + ENDS_MS * NS_PER_MS; !e->is_met;) {
		if (clock_now_ns() > end)
			die("the first message", ETIMEDOUT);
		end_meet(e);
	}
}

/* The client. */
static void ends_connect(struct ends *ends)
{
	const struct ends_config *c = ends->config;
	struct sockaddr_in sa;

	for (unsigned tries = 0; !*c->port; tries++) {
		if (tries > ENDS_MS)
			die("the daemon's end does not listen", ETIMEDOUT);
		usleep(1000);
	}
	sa = ends_address(c, *c->port);
	for (unsigned i = 0; i < c->threads; i++)
		end_connect(ends, &ends->of[i], &sa);
}

/* ---- what it costs ---- */

struct ends_effort {
	uint64_t cpu_ns;    /* of the process */
	uint64_t fabric_ns; /* of it, the threads that play an adapter */
};

static uint64_t ends_fabric_ns(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	uint64_t sum = 0;

	while (dir && (entry = readdir(dir))) {
		char path[300], name[32] = "";
		unsigned long long ns;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
		f = fopen(path, "re");
		if (f && !fgets(name, sizeof name, f))
			name[0] = 0;
		if (f)
			fclose(f);
		if (strcmp(name, "rftp-soft\n") != 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%llu", &ns) == 1)
			sum += ns;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static struct ends_effort ends_effort_now(void)
{
	return (struct ends_effort){.cpu_ns = process_cpu_ns(), .fabric_ns = ends_fabric_ns()};
}

static struct ends_effort ends_effort_since(struct ends_effort then)
{
	struct ends_effort now = ends_effort_now();

	return (struct ends_effort){
		.cpu_ns = now.cpu_ns - then.cpu_ns, .fabric_ns = now.fabric_ns - then.fabric_ns};
}

#endif
