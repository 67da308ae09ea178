/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/loop: what the loop fabric has beyond the contract (tests/fabric): its faults, and
 * that it is stricter than it needs to be, so that what works on it does not work by luck.
 */
#include "fabric/loop/loop.h"
#include "base/addr.h"
#include "base/clock.h"
#include "tests/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#define DEPTH 64u
#define SLOT 256u
#define WAIT_MS 10000
#define CHANS 2

/* One side of one connection. */
struct end {
	struct fabric_chan *chan;
	struct fabric_cq *cq;
	int ended, error;
};

/* A fabric with connections from `near` to `far`, all in this thread. */
struct world {
	struct fabric *fabric;
	struct fabric_eq *eq;
	struct fabric_listener *listener;
	struct fabric_pd *pd;
	struct fabric_mr *src_mr, *dst_mr;
	struct end near[CHANS], far[CHANS];
	unsigned chans;
	uint8_t src[CHANS * DEPTH * SLOT], dst[CHANS * DEPTH * SLOT];
};

static bool end_open(struct world *w, struct end *e, struct fabric_chan *chan)
{
	struct fabric_chan_attr attr = {
		.send_depth = DEPTH, .recv_depth = DEPTH, .inline_bytes = 16, .context = e};

	e->chan = chan;
	if (!w->pd && fabric_pd_new(chan, &w->pd))
		return false;
	if (fabric_cq_new(w->pd, 2 * DEPTH, &e->cq))
		return false;
	attr.pd = w->pd;
	attr.cq = e->cq;
	return !fabric_chan_setup(chan, &attr);
}

static bool world_connect(struct world *w)
{
	unsigned i = w->chans++;
	struct sockaddr_storage at;
	struct fabric_event ev;
	struct fabric_chan *chan;

	return !fabric_listener_addr(w->listener, &at) &&
	       !fabric_dial(w->eq, (struct sockaddr *)&at, NULL, 0, &chan) &&
	       end_open(w, &w->near[i], chan) && !fabric_chan_connect(chan, NULL, 0) &&
	       fabric_eq_wait(w->eq, &ev, WAIT_MS) == 1 && ev.type == FABRIC_EVENT_REQUEST &&
	       ev.listener == w->listener && end_open(w, &w->far[i], ev.chan) &&
	       !fabric_chan_accept(ev.chan, NULL, 0) && fabric_eq_wait(w->eq, &ev, WAIT_MS) == 1 &&
	       ev.type == FABRIC_EVENT_CONNECTED && fabric_eq_wait(w->eq, &ev, WAIT_MS) == 1 &&
	       ev.type == FABRIC_EVENT_CONNECTED;
}

static bool world_open(struct world *w, const struct loop_faults *faults)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	memset(w, 0, sizeof *w);
	if (loop_open(faults, &w->fabric) || fabric_eq_new(w->fabric, &w->eq) ||
		fabric_listen(w->eq, (struct sockaddr *)&any, sizeof any, &w->listener))
		return false;
	for (unsigned i = 0; i < CHANS; i++)
		if (!world_connect(w))
			return false;
	return !fabric_mr_new(w->pd, w->src, sizeof w->src, FABRIC_LOCAL, &w->src_mr) &&
	       !fabric_mr_new(w->pd, w->dst, sizeof w->dst, FABRIC_REMOTE_WRITE, &w->dst_mr);
}

static void world_close(struct world *w)
{
	for (unsigned i = 0; i < CHANS; i++) {
		fabric_chan_free(w->near[i].chan);
		fabric_chan_free(w->far[i].chan);
		fabric_cq_free(w->near[i].cq);
		fabric_cq_free(w->far[i].cq);
	}
	fabric_mr_free(w->src_mr);
	fabric_mr_free(w->dst_mr);
	fabric_pd_free(w->pd);
	fabric_listener_free(w->listener);
	fabric_eq_free(w->eq);
	fabric_close(w->fabric);
}

/* Writes slot i of channel c to the same place over there. */
static int post_write(struct world *w, unsigned c, unsigned i, unsigned flags)
{
	size_t at = (c * DEPTH + i) * SLOT;
	struct fabric_sge sge = {w->src + at, SLOT, w->src_mr};
	struct fabric_wr wr = {.id = i,
		.opcode = FABRIC_WRITE,
		.flags = flags,
		.sge = &sge,
		.sge_count = 1,
		.remote_addr = fabric_mr_base(w->dst_mr) + at,
		.remote_key = fabric_mr_key(w->dst_mr)};

	memset(w->src + at, (int)(c * DEPTH + i + 1), SLOT);
	return fabric_post_send(w->near[c].chan, &wr);
}

static int post_empty(struct end *e, uint64_t id, unsigned flags)
{
	return fabric_post_send(
		e->chan, &(struct fabric_wr){.id = id, .opcode = FABRIC_SEND, .flags = flags});
}

static bool slot_is(const struct world *w, unsigned c, unsigned i, int value)
{
	const uint8_t *slot = w->dst + (c * DEPTH + i) * SLOT;

	return slot[0] == value && !memcmp(slot, slot + 1, SLOT - 1);
}

/* The next completion, waiting for it; false when none comes. */
static bool next(struct fabric_cq *cq, struct fabric_wc *wc)
{
	struct pollfd fd = {.fd = fabric_cq_fd(cq), .events = POLLIN};

	for (;;) {
		if (fabric_cq_poll(cq, wc, 1) == 1)
			return true;
		fabric_cq_arm(cq);
		if (fabric_cq_poll(cq, wc, 1) == 1)
			return true;
		if (poll(&fd, 1, WAIT_MS) != 1)
			return false;
	}
}

static bool take_ends(struct world *w, unsigned count)
{
	while (count--) {
		struct fabric_event ev;
		struct end *e;

		if (fabric_eq_wait(w->eq, &ev, WAIT_MS) != 1 ||
			ev.type != FABRIC_EVENT_DISCONNECTED)
			return false;
		e = fabric_chan_context(ev.chan);
		e->ended++;
		e->error = ev.error;
	}
	return true;
}

/* ---- faults ---- */

static struct world w; /* large; each case opens and closes it */

/* Request n breaks every channel: those before it are carried out, it and those behind are not. */
static void cut(void)
{
	for (uint64_t n = 1; n <= 20; n++) {
		struct fabric_wc wc;

		CHECK(world_open(&w, &(struct loop_faults){.cut_after = n}));
		for (unsigned i = 0; i < 3; i++)
			CHECK_EQ(fabric_post_recv(w.far[1].chan, i, NULL, 0, NULL), 0);
		for (unsigned i = 0; i < n; i++) {
			CHECK_EQ(post_write(&w, 0, i, FABRIC_SIGNALED), 0);
			CHECK(next(w.near[0].cq, &wc));
			CHECK_EQ(wc.id, i);
			CHECK_EQ(wc.status, i + 1 < n ? FABRIC_OK : FABRIC_FLUSHED);
			CHECK(slot_is(&w, 0, i, i + 1 < n ? (int)i + 1 : 0));
		}
		CHECK(take_ends(&w, 4));
		for (unsigned c = 0; c < CHANS; c++) {
			CHECK_EQ(w.near[c].ended, 1);
			CHECK_EQ(w.far[c].ended, 1);
			CHECK_EQ(w.near[c].error, -ECONNRESET);
			CHECK_EQ(w.far[c].error, -ECONNRESET);
		}
		for (unsigned i = 0; i < 3; i++) {
			CHECK(next(w.far[1].cq, &wc));
			CHECK_EQ(wc.status, FABRIC_FLUSHED);
		}
		CHECK_EQ(post_write(&w, 1, 0, 0), -ENOTCONN);
		world_close(&w);
	}
}

/* Request n fails, and with it its channel; the other one goes on. */
static void error(void)
{
	for (uint64_t n = 1; n <= 20; n++) {
		struct fabric_wc wc;

		CHECK(world_open(&w, &(struct loop_faults){.error_after = n}));
		for (unsigned i = 0; i < n + 5; i++) {
			int rc = post_write(&w, 0, i, 0);

			CHECK(!rc || (rc == -ENOTCONN && i >= n));
			if (rc)
				break;
		}
		/* none was signalled, but what went wrong completes */
		CHECK(next(w.near[0].cq, &wc));
		CHECK_EQ(wc.id, n - 1);
		CHECK_EQ(wc.status, FABRIC_FATAL);
		CHECK(take_ends(&w, 2));
		CHECK_EQ(w.near[0].error, -EIO);
		CHECK_EQ(w.far[0].error, -EIO);
		while (fabric_cq_poll(w.near[0].cq, &wc, 1) == 1)
			CHECK_EQ(wc.status, FABRIC_FLUSHED);
		CHECK(slot_is(&w, 0, (unsigned)n - 1, 0));
		CHECK_EQ(post_write(&w, 1, 0, FABRIC_SIGNALED), 0);
		CHECK(next(w.near[1].cq, &wc));
		CHECK_EQ(wc.status, FABRIC_OK);
		CHECK(slot_is(&w, 1, 0, DEPTH + 1));
		world_close(&w);
	}
}

static void delay(void)
{
	uint64_t start;

	CHECK(world_open(&w, &(struct loop_faults){.seed = 7, .delay_us = 4000}));
	start = clock_now_ns();
	for (unsigned i = 0; i < 20; i++) {
		struct fabric_wc wc;

		CHECK_EQ(post_write(&w, 0, i, FABRIC_SIGNALED), 0);
		CHECK(next(w.near[0].cq, &wc));
	}
	/* 20 waits of 2 ms on average; which ones depends on the seed alone */
	CHECK(clock_now_ns() - start > 10 * NS_PER_MS);
	for (unsigned i = 20; i < 60; i++)
		CHECK_EQ(post_write(&w, 0, i, FABRIC_SIGNALED), 0);
	for (unsigned i = 20; i < 60; i++) {
		struct fabric_wc wc;

		CHECK(next(w.near[0].cq, &wc));
		CHECK_EQ(wc.id, i); /* delays do not reorder a channel */
	}
	world_close(&w);
}

/* How often of 400 times what was posted second, on another channel, is carried out first; -1:
 * wrong. */
static int count_swaps(const struct loop_faults *faults)
{
	int swaps = 0;

	if (!world_open(&w, faults))
		return -1;
	for (unsigned round = 0; round < 400; round++) {
		struct fabric_wc wc;

		if (post_write(&w, 0, 0, FABRIC_SIGNALED) ||
			post_write(&w, 1, 0, FABRIC_SIGNALED) || !next(w.near[1].cq, &wc))
			return -1;
		if (fabric_cq_poll(w.near[0].cq, &wc, 1) == 1)
			continue;
		swaps++;
		if (!next(w.near[0].cq, &wc))
			return -1;
	}
	world_close(&w);
	return swaps;
}

static void reorder(void)
{
	struct loop_faults faults = {.seed = harness_seed(), .reorder_permille = 500};
	int swaps;

	CHECK_EQ(count_swaps(NULL), 0);
	swaps = count_swaps(&faults);
	printf("# %d of 400 times the later channel was first\n", swaps);
	CHECK(swaps > 0);
}

static void lacking(void)
{
	struct fabric_sge sge = {w.src, 8, NULL};
	struct fabric_wr wr = {.sge = &sge, .sge_count = 1};

	CHECK(world_open(&w, &(struct loop_faults){.no_imm = true, .no_read = true}));
	sge.mr = w.src_mr;
	CHECK(!fabric_chan_caps(w.near[0].chan)->has_imm);
	CHECK(!fabric_chan_caps(w.far[0].chan)->has_read);
	wr.opcode = FABRIC_WRITE_IMM;
	CHECK_EQ(fabric_post_send(w.near[0].chan, &wr), -EINVAL);
	wr.opcode = FABRIC_READ;
	CHECK_EQ(fabric_post_send(w.near[0].chan, &wr), -EINVAL);
	world_close(&w);
}

/* Everything at once: every request that was posted comes back, and no slot is half written. */
static void torture(void)
{
	uint64_t seed = harness_seed();

	for (unsigned run = 0; run < 300; run++) {
		struct loop_faults faults = {
			.seed = harness_random(&seed),
			.delay_us = harness_random(&seed) % 20,
			.reorder_permille = harness_random(&seed) % 200,
			.cut_after = harness_random(&seed) % 200,
			.error_after = harness_random(&seed) % 200,
		};
		unsigned sent[CHANS] = {0}, back[CHANS] = {0}, got[CHANS] = {0};
		bool open[CHANS] = {true, true};
		struct fabric_wc wc;

		CHECK(world_open(&w, &faults));
		for (unsigned c = 0; c < CHANS; c++)
			for (unsigned i = 0; i < DEPTH; i++)
				CHECK_EQ(fabric_post_recv(w.far[c].chan, i, NULL, 0, NULL), 0);
		for (unsigned i = 0; i < DEPTH / 2; i++) {
			for (unsigned c = 0; c < CHANS; c++) {
				open[c] = open[c] && !post_write(&w, c, i, FABRIC_SIGNALED);
				sent[c] += open[c];
				open[c] = open[c] && !post_empty(&w.near[c], i, FABRIC_SIGNALED);
				sent[c] += open[c];
			}
		}
		for (unsigned c = 0; c < CHANS; c++) {
			while (back[c] < sent[c]) {
				CHECK(next(w.near[c].cq, &wc));
				CHECK_EQ(wc.id, back[c] / 2);
				back[c]++;
			}
			fabric_chan_disconnect(w.near[c].chan);
			for (unsigned i = 0; i < DEPTH; i++) {
				CHECK(next(w.far[c].cq, &wc));
				CHECK_EQ(wc.id, i);
				CHECK(wc.status == FABRIC_OK || wc.status == FABRIC_FLUSHED);
				got[c] += wc.status == FABRIC_OK;
				CHECK(wc.status != FABRIC_OK || got[c] == i + 1);
			}
			for (unsigned i = 0; i < DEPTH; i++) /* a notice never overtakes its data */
				CHECK(slot_is(&w, c, i, (int)(c * DEPTH + i + 1)) ||
					(i >= got[c] && slot_is(&w, c, i, 0)));
		}
		CHECK(take_ends(&w, 2 * CHANS));
		world_close(&w);
	}
}

/* ---- strictness ---- */

static void strict(void)
{
	struct fabric_chan_attr attr = {.send_depth = 8, .recv_depth = 8};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct fabric_chan *chan;
	struct fabric_wc wc;
	char text[128];

	CHECK(world_open(&w, NULL));
	/* an address is not what the peer calls it, and no key is another's neighbour */
	CHECK(fabric_mr_base(w.dst_mr) != (uintptr_t)w.dst);
	CHECK(fabric_mr_base(w.dst_mr) % 4096 == (uintptr_t)w.dst % 4096);
	CHECK(fabric_mr_key(w.dst_mr) - fabric_mr_key(w.src_mr) > 1);
	/* unsignalled requests hold their places until one behind them completes */
	for (unsigned i = 0; i < DEPTH - 1; i++)
		CHECK_EQ(post_write(&w, 0, i, 0), 0);
	CHECK_EQ(post_write(&w, 0, DEPTH - 1, FABRIC_SIGNALED), 0);
	CHECK(next(w.near[0].cq, &wc));
	for (unsigned i = 0; i < DEPTH; i++)
		CHECK_EQ(post_write(&w, 0, i, 0), 0);
	CHECK_EQ(fabric_post_recv(w.far[0].chan, 1, NULL, 0, NULL), 0);
	CHECK_EQ(post_write(&w, 0, 0, 0), -ENOMEM);
	/* a completion queue has room for what its channels may have posted */
	CHECK_EQ(fabric_dial(w.eq, (struct sockaddr *)&to, NULL, 0, &chan), 0);
	attr.pd = w.pd;
	attr.cq = w.near[0].cq;
	CHECK_EQ(fabric_chan_setup(chan, &attr), -EINVAL);
	CHECK_EQ(fabric_chan_connect(chan, NULL, 0), -EINVAL); /* without queues */
	fabric_chan_describe(chan, text, sizeof text);
	CHECK(strstr(text, "loop channel") && strstr(text, "0.0.0.0:9"));
	fabric_chan_free(chan);
	CHECK_EQ(fabric_chan_setup(w.near[0].chan, &attr), -EINVAL); /* twice */
	world_close(&w);
}

/* Unlike iWARP, the accepting side may send first. */
static void acceptor_first(void)
{
	struct fabric_wc wc;

	CHECK(world_open(&w, NULL));
	CHECK_EQ(fabric_post_recv(w.near[0].chan, 3, NULL, 0, NULL), 0);
	CHECK_EQ(post_empty(&w.far[0], 4, FABRIC_SIGNALED), 0);
	CHECK(next(w.near[0].cq, &wc));
	CHECK(wc.id == 3 && wc.status == FABRIC_OK && wc.opcode == FABRIC_RECV);
	CHECK(next(w.far[0].cq, &wc));
	CHECK(wc.id == 4 && wc.status == FABRIC_OK && wc.opcode == FABRIC_SEND);
	world_close(&w);
}

/* A wildcard is reached by any address, an instance only by its own channels. */
static void addresses(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6}, one = any;
	struct fabric *fabrics[2];
	struct fabric_eq *eqs[2];
	struct fabric_listener *listener, *second;
	struct sockaddr_storage at;
	struct fabric_event ev;

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(loop_open(NULL, &fabrics[i]), 0);
		CHECK_EQ(fabric_eq_new(fabrics[i], &eqs[i]), 0);
	}
	CHECK_EQ(fabric_listen(eqs[0], (struct sockaddr *)&any, sizeof any, &listener), 0);
	CHECK_EQ(fabric_listener_addr(listener, &at), 0);
	one.sin6_port = ((struct sockaddr_in6 *)&at)->sin6_port;
	one.sin6_addr.s6_addr[15] = 1;
	CHECK_EQ(fabric_listen(eqs[0], (struct sockaddr *)&one, sizeof one, &second), -EADDRINUSE);
	for (int i = 0; i < 2; i++) {
		struct fabric_chan_attr attr = {.send_depth = 1, .recv_depth = 1};
		struct fabric_chan *chan;

		CHECK_EQ(fabric_dial(eqs[i], (struct sockaddr *)&one, NULL, 0, &chan), 0);
		CHECK_EQ(fabric_pd_new(chan, &attr.pd), 0);
		CHECK_EQ(fabric_cq_new(attr.pd, 2, &attr.cq), 0);
		CHECK_EQ(fabric_chan_setup(chan, &attr), 0);
		CHECK_EQ(fabric_chan_connect(chan, "hi", 2), 0);
		CHECK_EQ(fabric_eq_get(eqs[i], &ev), 1);
		CHECK_EQ(ev.type, i ? FABRIC_EVENT_FAILED : FABRIC_EVENT_REQUEST);
		if (!i) {
			CHECK(ev.priv_len == 2 && !memcmp(ev.priv, "hi", 2));
			fabric_chan_free(ev.chan);
			CHECK_EQ(fabric_eq_get(eqs[i], &ev), 1);
			CHECK_EQ(ev.type, FABRIC_EVENT_FAILED);
		}
		CHECK_EQ(ev.error, -ECONNREFUSED);
		fabric_chan_free(chan);
		fabric_cq_free(attr.cq);
		fabric_pd_free(attr.pd);
	}
	fabric_listener_free(listener);
	for (int i = 0; i < 2; i++) {
		fabric_eq_free(eqs[i]);
		fabric_close(fabrics[i]);
	}
}

/* Thousands of transfers run on fabrics of their own: opening one must cost next to nothing. */
static void cheap(void)
{
	uint64_t start = clock_now_ns();

	for (unsigned i = 0; i < 200; i++) {
		struct fabric_wc wc;

		CHECK(world_open(&w, NULL));
		CHECK_EQ(post_write(&w, 0, 0, FABRIC_SIGNALED), 0);
		CHECK(next(w.near[0].cq, &wc));
		world_close(&w);
	}
	printf("# %u us to open, use and close a fabric with %d channels\n",
		(unsigned)((clock_now_ns() - start) / 200000), CHANS);
}

HARNESS_MAIN({"cut", cut}, {"error", error}, {"delay", delay}, {"reorder", reorder},
	{"lacking", lacking}, {"torture", torture}, {"strict", strict},
	{"acceptor-first", acceptor_first}, {"addresses", addresses}, {"cheap", cheap})
