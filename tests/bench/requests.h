/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/requests.h: what a thread of either end does in tests/bench/requests: start requests
 * one behind the other, as many at once as are allowed, or answer them.
 */
#ifndef TESTS_BENCH_REQUESTS_H
#define TESTS_BENCH_REQUESTS_H

#include "tests/bench/ends.h"

#include "block/digest.h"
#include "session/reply_wait.h"

#include <sys/prctl.h>

#define SAMPLES 16384u /* of how long requests took, of a thread: the last ones */
#define DEPTH_MAX 256u
#define SIGNALLED 8u /* one request in so many, where nobody waits for its completion */
#define RESULTS_ID UINT64_MAX
#define IDLE_MS 20

enum what { WRITE, READ, PLACE, REPLY, STORE, PUT, WHATS };
static const char *const what_names[WHATS] = {"write", "read", "place", "reply", "store", "put"};

struct shared {
	_Atomic uint32_t port;
	_Atomic bool daemon_ready, daemon_done, daemon_stopped, begun, over;
	_Atomic uint64_t start_ns, end_ns;
	struct ends_memory memory[ENDS_MAX];
	struct ends_effort client, daemon;
	_Atomic uint64_t done, last_ns, looked;
	uint32_t samples[ENDS_MAX];
	uint64_t sample[ENDS_MAX][SAMPLES];
};

struct config {
	struct ends_config ends;
	enum what what;
	unsigned ms, copies;
	bool verify, flush;
	const char *dir; /* of files that are flushed; NULL: none are */
	struct shared *shared;
};

/* A thread of one of the ends. */
struct runner {
	const struct config *config;
	struct end *end;
	struct worker worker;
	uint64_t posted, done; /* requests: all is first in, first out */
	uint64_t begun[DEPTH_MAX];
	uint8_t *copy;
	int file;
	struct reply_wait wait; /* put: when the results are read */
	uint64_t results_ns;    /* a READ of them is under way since; 0: none is */
};

/* ---- data ---- */

static uint32_t size_of(const struct runner *r)
{
	return r->config->ends.size;
}

/* The first eight bytes of data are the checksum of the rest, the next its number. */
static void stamp(const struct runner *r, uint8_t *data, uint64_t number)
{
	uint64_t sum;

	memcpy(data + 8, &number, 8);
	if (!r->config->verify)
		return;
	sum = digest_leaf(data + 8, size_of(r) - 8);
	memcpy(data, &sum, 8);
}

/* Data has come: what its receiver does. */
static void take_data(struct runner *r, const uint8_t *data)
{
	uint64_t sum;

	if (r->config->verify) {
		sum = digest_leaf(data + 8, size_of(r) - 8);
		if (memcmp(data, &sum, 8) != 0)
			die("wrong data", EBADMSG);
	}
	if (r->file >= 0 &&
		(pwrite(r->file, data, size_of(r), 0) != (ssize_t)size_of(r) || fdatasync(r->file)))
		die("file", errno ? errno : EIO);
}

static void copy_more(struct runner *r, void *to, const void *from)
{
	for (unsigned i = 0; i < r->config->copies; i++)
		memcpy(to, from, size_of(r));
}

static void open_file(struct runner *r, const char *who)
{
	char path[4096];

	r->file = -1;
	if (!r->config->dir)
		return;
	snprintf(path, sizeof path, "%s/requests-%d-%s-%u", r->config->dir, getpid(), who,
		r->end->index);
	r->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (r->file < 0 || unlink(path))
		die(path, errno);
}

/* ---- who starts requests ---- */

static void finish_one(struct runner *r)
{
	struct shared *shared = r->config->shared;
	uint64_t now = clock_now_ns();
	unsigned i = r->end->index;

	shared->sample[i][shared->samples[i]++ % SAMPLES] = now - r->begun[r->done % DEPTH_MAX];
	r->done++;
}

static unsigned now_and_then(uint64_t number)
{
	return number % SIGNALLED ? 0 : FABRIC_SIGNALED;
}

/* WRITE and, behind it in the same list, what has the same place or says that it is there. */
static void post_write_and(struct runner *r, uint8_t *data, enum fabric_opcode opcode,
	uint32_t bytes, uint64_t id, unsigned flags)
{
	struct end *e = r->end;
	struct fabric_sge sge[2] = {{.addr = data, .bytes = size_of(r), .mr = e->mr},
		{.addr = opcode == FABRIC_SEND ? end_said(e) : data, .bytes = bytes, .mr = e->mr}};
	struct fabric_wr second = end_request(opcode, &sge[1], e, id, flags);
	struct fabric_wr first = end_request(FABRIC_WRITE, &sge[0], e, id, 0);

	first.next = &second;
	must("post", fabric_post_send(e->chan, &first));
}

static void start_one(struct runner *r)
{
	struct end *e = r->end;
	uint64_t n = r->posted++;
	uint8_t *data = end_slot(e, n);

	r->begun[n % DEPTH_MAX] = clock_now_ns();
	switch (r->config->what) {
	case READ:
		memset(data, 0, 8); /* so that what was there before is none */
		end_post(e, FABRIC_READ, data, size_of(r), n, FABRIC_SIGNALED);
		break;
	case REPLY:
		end_post(e, FABRIC_SEND, end_said(e), ENDS_NOTE_BYTES, n, now_and_then(n));
		break;
	case STORE:
		copy_more(r, data, r->copy);
		stamp(r, data, n);
		end_post(e, FABRIC_SEND, data, size_of(r), n, now_and_then(n));
		break;
	case PUT:
		copy_more(r, data, r->copy);
		stamp(r, data, n);
		post_write_and(r, data, FABRIC_SEND, ENDS_NOTE_BYTES, n, now_and_then(n));
		reply_wait_begin(&r->wait, clock_now_ns());
		break;
	default: /* WRITE, PLACE */
		copy_more(r, data, r->copy);
		stamp(r, data, n);
		if (r->config->flush && !e->caps->write_delivered)
			post_write_and(r, data, FABRIC_READ, ENDS_NOTE_BYTES, n, FABRIC_SIGNALED);
		else
			end_post(e, FABRIC_WRITE, data, size_of(r), n, FABRIC_SIGNALED);
	}
}

/* put: the results that were read. */
static void take_results(struct runner *r)
{
	const _Atomic uint64_t *results = end_results(r->end);
	uint64_t before = r->done, now = clock_now_ns();

	reply_wait_measured(&r->wait, now - r->results_ns);
	r->results_ns = 0;
	r->config->shared->looked++;
	while (r->done < r->posted && results[r->done % r->end->count] == r->done + 1)
		finish_one(r);
	if (r->done == before)
		reply_wait_missed(&r->wait, now);
	else
		reply_wait_came(&r->wait, now);
}

static void take_completion(struct runner *r, const struct fabric_wc *wc)
{
	enum what what = r->config->what;

	if (wc->status != FABRIC_OK)
		die(fabric_status_name(wc->status), EIO);
	if (what == PUT && wc->id == RESULTS_ID && wc->opcode == FABRIC_READ) {
		take_results(r);
	} else if (what == REPLY || what == STORE) {
		if (wc->opcode != FABRIC_RECV)
			return;
		if (what == REPLY) {
			copy_more(r, r->copy, end_slot(r->end, wc->id));
			take_data(r, end_slot(r->end, wc->id));
		}
		end_post_receive(r->end);
		finish_one(r);
	} else if (what == READ || what == PLACE || what == WRITE) {
		if (what == READ) {
			copy_more(r, r->copy, end_slot(r->end, r->done));
			take_data(r, end_slot(r->end, r->done));
		}
		finish_one(r);
	}
}

/* put: one READ of all results is under way while there is one to wait for, as often as answers to
 * the product's requests are read.  Until when nothing is to be done, in ms. */
static int read_results(struct runner *r)
{
	uint64_t now = clock_now_ns();

	if (r->config->what != PUT || r->results_ns || r->done == r->posted)
		return IDLE_MS;
	if (now < r->wait.due_ns) {
		uint64_t ns = r->wait.due_ns - now;
		struct timespec ts = {
			.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

		nanosleep(&ts, NULL);
		now = clock_now_ns();
	}
	r->results_ns = now;
	end_post(r->end, FABRIC_READ, (void *)end_results(r->end), end_results_bytes(r->end),
		RESULTS_ID, FABRIC_SIGNALED);
	return IDLE_MS;
}

static void run_starter(void *arg)
{
	struct runner *r = arg;
	struct shared *shared = r->config->shared;
	struct fabric_wc wc[16];

	prctl(PR_SET_TIMERSLACK, 1000);
	reply_wait_init(&r->wait, clock_now_ns());
	while (!shared->begun)
		usleep(100);
	for (;;) {
		bool more = !r->posted || clock_now_ns() < shared->end_ns;
		int n;

		while (more && r->posted - r->done < r->config->ends.depth)
			start_one(r);
		if (r->posted == r->done)
			break;
		n = end_wait(r->end, wc, 16, read_results(r));
		for (int i = 0; i < n; i++)
			take_completion(r, &wc[i]);
	}
	shared->done += r->done;
	for (uint64_t now = clock_now_ns(), last = shared->last_ns; last < now;)
		if (atomic_compare_exchange_weak(&shared->last_ns, &last, now))
			break;
}

/* ---- who answers ---- */

static void answer_one(struct runner *r, uint64_t number)
{
	struct end *e = r->end;
	uint64_t n = r->done++;

	switch (r->config->what) {
	case REPLY:
		end_post(e, FABRIC_SEND, end_slot(e, n), size_of(r), n, now_and_then(n));
		break;
	case STORE:
		take_data(r, end_slot(e, number));
		end_post(e, FABRIC_SEND, end_said(e), ENDS_NOTE_BYTES, n, now_and_then(n));
		break;
	default: /* PUT */
		take_data(r, end_slot(e, n));
		atomic_store_explicit(&end_results(e)[n % e->count], n + 1, memory_order_release);
	}
}

static void run_answerer(void *arg)
{
	struct runner *r = arg;
	struct fabric_wc wc[16];

	while (!r->config->shared->over) {
		int n = end_wait(r->end, wc, 16, IDLE_MS);

		for (int i = 0; i < n; i++) {
			if (wc[i].status !=
				FABRIC_OK) /* the client has gone, or is found out by its own */
				return;
			if (wc[i].opcode != FABRIC_RECV)
				continue;
			answer_one(r, wc[i].id);
			end_post_receive(r->end);
		}
	}
}

#endif
