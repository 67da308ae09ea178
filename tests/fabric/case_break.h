/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fabric/case_break.h: what goes wrong: accesses that are refused, receives that are missing
 * or short, peers that go away, memory that is taken back.  Whatever happens, the channel ends on
 * both sides, every request comes back, and no byte moves that should not.
 */
#ifndef TESTS_FABRIC_CASE_BREAK_H
#define TESTS_FABRIC_CASE_BREAK_H

#include "tests/fabric/side.h"

#define TARGET_BYTES 8192u
#define BAD_BYTES 1000u

/* The channel ended, and not because somebody closed it. */
static void link_wait_break(struct link *l)
{
	link_wait_end(l);
	if (l->side->tells_breaks)
		must(l->side, l->error < 0);
}

/* ---- remote accesses that must not be ---- */

enum bad {
	BAD_KEY, /* one that nobody has */
	BAD_ZERO_KEY,
	BAD_BEFORE,   /* begins one byte too early */
	BAD_BEHIND,   /* ends one byte too late */
	BAD_FAR,      /* inside nothing */
	BAD_OVERFLOW, /* address + length wraps to the inside */
	BAD_RIGHT,    /* the other right is there, this is not */
	BAD_LOCAL,    /* registered for no remote access */
	BAD_DOMAIN,   /* the key of another protection domain */
	BAD_FREED,    /* the key of memory that was deregistered */
	BAD_COUNT,
};

static const char *const bad_names[] = {"unknown key", "key 0", "one byte before",
	"one byte behind", "far away", "wraps around", "other right", "local only", "other domain",
	"freed"};

/* strict: the device that serves READs asks for rights, and knows an address that wraps at once.
 * The kernel's siw notices in the middle of its answer, and can only close. */
static void bad_client(struct side *s, enum fabric_opcode opcode, enum bad bad, bool strict)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, BAD_BYTES, FABRIC_LOCAL);
	struct far far = far_learn(s);
	const bool explained = opcode != FABRIC_READ || bad != BAD_OVERFLOW || strict;
	uint64_t at = 0;
	struct fabric_wc wc;

	memset(m->bytes, 0x5a, m->size);
	if (bad == BAD_KEY)
		far.key ^= 0x5bd1e995;
	else if (bad == BAD_ZERO_KEY)
		far.key = 0;
	else if (bad == BAD_BEFORE)
		at = (uint64_t)-1;
	else if (bad == BAD_BEHIND)
		at = TARGET_BYTES - BAD_BYTES + 1;
	else if (bad == BAD_FAR)
		at = 1ull << 40;
	else if (bad == BAD_OVERFLOW)
		at = UINT64_MAX - far.base - BAD_BYTES / 2;
	must_eq(s, post_recv(l, 5, m, 0, 8), 0);
	must_eq(s, post(l, opcode, 1, FABRIC_SIGNALED, m, 0, BAD_BYTES, far, at), 0);
	post_send(l, 2, FABRIC_SIGNALED, NULL, 0, 0); /* if it is not over yet */
	wc = wc_next(l);
	if (wc.id != 5) {
		must_eq(s, wc.id, 1);
		/* iWARP completes a WRITE when it is sent; a READ it cannot */
		must(s, wc.status != FABRIC_OK || opcode != FABRIC_READ);
		if (opcode == FABRIC_READ && s->tells_breaks && explained)
			must_eq(s, wc.status, FABRIC_REMOTE_ACCESS);
	}
	if (explained)
		link_wait_break(l);
	else
		link_wait_end(l);
	if (!explained && s->tells_breaks)
		printf("# %s: not tested: this device need not say why it ends\n", bad_names[bad]);
	must(s, filled_with(m->bytes, m->size, 0x5a) && mem_guards_ok(m));
	must_eq(s, post_send(l, 3, FABRIC_SIGNALED, NULL, 0, 0), -ENOTCONN);
	meet(s);
	link_free(l);
}

static void bad_server(struct side *s, enum fabric_opcode opcode, enum bad bad)
{
	unsigned right = opcode == FABRIC_READ ? FABRIC_REMOTE_READ : FABRIC_REMOTE_WRITE;
	unsigned access = bad == BAD_LOCAL   ? FABRIC_LOCAL
			  : bad == BAD_RIGHT ? right ^ (FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE)
					     : right;
	struct link *l = link_open(s, NULL);
	struct fabric_pd *pd = l->pd;
	struct mem *m;
	struct fabric_wc wc;

	if (bad == BAD_DOMAIN) {
		must_eq(s, fabric_pd_new(l->chan, &pd), 0);
		s->pds[s->pd_count++] = pd;
	}
	m = mem_new(s, pd, TARGET_BYTES, access);
	pattern_fill(m->bytes, m->size, 9);
	must_eq(s, post_recv(l, 1, NULL, 0, 0), 0);
	must_eq(s, post_recv(l, 2, NULL, 0, 0), 0);
	if (bad == BAD_FREED) {
		struct note note = {{fabric_mr_base(m->mr), fabric_mr_key(m->mr)}, 0};

		fabric_mr_free(m->mr);
		m->mr = NULL;
		note_send(s, note);
	} else {
		far_tell(s, m);
	}
	for (uint64_t id = 1; id <= 2; id++) { /* the SEND behind it never arrives */
		wc = wc_next(l);
		if (id != 1 || opcode != FABRIC_READ || fabric_chan_caps(l->chan)->read_in_order)
			must_eq(s, wc.status, FABRIC_FLUSHED);
		else /* or it does, before the READ was looked at */
			must(s, wc.status == FABRIC_FLUSHED || wc.status == FABRIC_OK);
		must_eq(s, wc.id, id);
	}
	link_wait_break(l);
	must(s, pattern_is(m->bytes, m->size, 9) && mem_guards_ok(m));
	meet(s);
	must(s, pattern_is(m->bytes, m->size, 9) && mem_guards_ok(m));
	side_drain(s);
	link_free(l);
}

static void bad_half(struct side *s, enum fabric_opcode opcode)
{
	bool strict = !server_is_siw(s);

	for (enum bad bad = 0; bad < BAD_COUNT; bad++) {
		if (opcode == FABRIC_READ && (bad == BAD_RIGHT || bad == BAD_LOCAL) && !strict) {
			printf("# %s: not tested: this device's READ does not ask for the right\n",
				bad_names[bad]);
			continue;
		}
		/* for messages: which of them */
		snprintf(s->place, sizeof s->place, "%s: %s", s->client ? "client" : "server",
			bad_names[bad]);
		s->where = s->place;
		if (s->client)
			bad_client(s, opcode, bad, strict);
		else
			bad_server(s, opcode, bad);
		s->where = s->client ? "client" : "server";
	}
}

static void bad_write_half(struct side *s)
{
	bad_half(s, FABRIC_WRITE);
}

static void bad_imm_half(struct side *s)
{
	bad_half(s, FABRIC_WRITE_IMM);
}

static void bad_read_half(struct side *s)
{
	bad_half(s, FABRIC_READ);
}

/* ---- local memory that is not what the request says ---- */

static void local_client(struct side *s)
{
	for (int i = 0; i < 3; i++) {
		struct link *l = link_open(s, NULL);
		struct mem *m = mem_new(s, l->pd, 64, FABRIC_LOCAL), *other;
		struct fabric_pd *pd;
		int rc;

		must_eq(s, fabric_pd_new(l->chan, &pd), 0);
		s->pds[s->pd_count++] = pd;
		other = mem_new(s, pd, 64, FABRIC_LOCAL);
		meet(s);
		rc = i == 0   ? post_send(l, 1, 0, m, 1, 64)
		     : i == 1 ? post_send(l, 1, 0, m, (size_t)-1, 2)
			      : post_send(l, 1, 0, other, 0, 64);
		/* said at the post or by the completion; an error completes always */
		must(s, rc == 0 || rc == -EINVAL || rc == -EFAULT);
		if (!rc) {
			must_eq(s, wc_next(l).status, FABRIC_LOCAL_PROTECTION);
			link_wait_break(l);
		} else {
			fabric_chan_disconnect(l->chan);
			link_wait_end(l);
		}
		meet(s);
		link_free(l);
	}
}

static void local_server(struct side *s)
{
	for (int i = 0; i < 3; i++) {
		struct link *l = link_open(s, NULL);
		struct mem *m = mem_new(s, l->pd, 64, FABRIC_LOCAL);

		must_eq(s, post_recv(l, 1, m, 0, 64), 0);
		meet(s);
		must_eq(s, wc_next(l).status, FABRIC_FLUSHED);
		link_wait_end(l);
		must(s, filled_with(m->bytes, 64, 0));
		meet(s);
		link_free(l);
	}
}

/* ---- receives ---- */

static void rnr_client(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, 64, FABRIC_LOCAL);

	must_eq(s, post_send(l, 1, FABRIC_SIGNALED, m, 0, 64), 0);
	must_eq(s, wc_next(l).id, 1);
	link_wait_break(l);
	meet(s);
}

static void rnr_server(struct side *s)
{
	struct link *l = link_open(s, NULL);

	link_wait_break(l);
	wc_none(l);
	must_eq(s, post_recv(l, 1, NULL, 0, 0), -ENOTCONN);
	meet(s);
}

/* A SEND that is longer than its receive, by one byte and by far. */
static void long_half(struct side *s)
{
	static const size_t sizes[] = {1, 65, 65536, 1u << 20};

	for (unsigned i = 0; i < 4; i++) {
		struct link *l = link_open(s, NULL);
		struct mem *m = mem_new(s, l->pd, 1u << 20, FABRIC_LOCAL);
		struct mem *small = mem_new(s, l->pd, 64, FABRIC_LOCAL);
		struct fabric_wc wc;

		if (!s->client) {
			must_eq(s, post_recv(l, 7, small, 0, i ? 64 : 0), 0);
			must_eq(s, post_recv(l, 8, small, 0, 64), 0);
		}
		meet(s);
		if (s->client) {
			memset(m->bytes, 0xff, m->size);
			must_eq(s, post_send(l, 1, FABRIC_SIGNALED, m, 0, sizes[i]), 0);
			must_eq(s, wc_next(l).id, 1);
		} else {
			wc = wc_next(l);
			must_eq(s, wc.id, 7);
			must_eq(s, wc.status, FABRIC_LOCAL_LENGTH);
			wc = wc_next(l);
			must_eq(s, wc.id, 8);
			must_eq(s, wc.status, FABRIC_FLUSHED);
		}
		link_wait_break(l);
		must(s, mem_guards_ok(small));
		meet(s);
		link_free(l);
	}
}

/* ---- the peer goes away ---- */

static void gone_client(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, 64, FABRIC_LOCAL);

	for (unsigned i = 0; i < 8; i++)
		must_eq(s, post_recv(l, i, m, 8 * i, 8), 0);
	meet(s);
	for (unsigned i = 0; i < 8; i++) {
		struct fabric_wc wc = wc_next(l);

		must_eq(s, wc.status, FABRIC_FLUSHED);
		must_eq(s, wc.id, i);
	}
	link_wait_end(l);
	must_eq(s, post_recv(l, 9, m, 0, 8), -ENOTCONN);
	must_eq(s, post_send(l, 9, FABRIC_SIGNALED, m, 0, 8), -ENOTCONN);
	wc_none(l);
	meet(s);
	side_drain(s); /* DISCONNECTED came once: side_take_event counts */
	wc_none(l);
}

static void gone_server(struct side *s)
{
	struct link *l = link_open(s, NULL);

	meet(s);
	fabric_chan_disconnect(l->chan);
	link_wait_end(l);
	must_eq(s, l->error, 0);
	meet(s);
}

static void vanish_server(struct side *s)
{
	struct link *l = link_open(s, NULL);

	meet(s);
	link_free(l);
	meet(s);
}

/* ---- freeing in mid-flight ---- */

#define FLOOD_BYTES 100000u
#define FLOOD_ROUNDS 6

/* Writes and sends without end, until the channel breaks; everything posted comes back. */
static void flood(struct link *l, struct mem *m, struct far far, bool sends)
{
	struct side *s = l->side;
	unsigned posted = 0, back = 0;
	bool open = true;

	while (open || back < posted) {
		while (open && posted - back < 16) {
			int rc = post(l, sends ? FABRIC_SEND : FABRIC_WRITE, posted,
				FABRIC_SIGNALED, m, 0, sends ? 1000 : FLOOD_BYTES, far, 0);

			must(s, rc == 0 || rc == -ENOTCONN);
			open = !rc;
			posted += !rc;
		}
		if (back < posted) {
			struct fabric_wc wc = wc_next(l);

			must_eq(s, wc.id, back);
			back++;
		}
	}
	link_wait_end(l);
}

/* chan_free with receives posted, sends posted and writes coming in: then all memory is ours. */
static void reuse_client(struct side *s)
{
	for (int i = 0; i < FLOOD_ROUNDS; i++) {
		struct link *l = link_open(s, &(struct plan){.send_depth = 32});
		struct mem *m = mem_new(s, l->pd, FLOOD_BYTES, FABRIC_LOCAL);

		memset(m->bytes, 0x33, m->size);
		flood(l, m, far_learn(s), i % 2);
		meet(s);
		link_free(l);
	}
}

static void reuse_server(struct side *s)
{
	for (int i = 0; i < FLOOD_ROUNDS; i++) {
		struct link *l = link_open(s, &(struct plan){.recv_depth = 64});
		struct mem *m = mem_new(s, l->pd, FLOOD_BYTES, FABRIC_REMOTE_WRITE);
		struct mem *into = mem_new(s, l->pd, 64000, FABRIC_LOCAL);

		for (unsigned j = 0; j < 60; j++)
			must_eq(s, post_recv(l, j, into, j * 1000, 1000), 0);
		far_tell(s, m);
		for (int j = 0; i % 2 && j < 5 * i; j++)
			wc_good(l, (uint64_t)j, FABRIC_RECV);
		if (!(i % 2))
			poll(NULL, 0, i); /* somewhere among the writes; any moment will do */
		fabric_chan_free(l->chan);
		l->chan = NULL;
		wc_none(l); /* its completions are gone as well */
		memset(into->bytes, 0x77, into->size);
		memset(m->bytes, 0x77, m->size);
		meet(s);
		must(s, filled_with(into->bytes, into->size, 0x77));
		must(s, filled_with(m->bytes, m->size, 0x77));
	}
}

/* Memory is taken back under fire: no byte lands after mr_free, and the writer loses its channel.
 */
static void revoke_server(struct side *s)
{
	for (int i = 0; i < FLOOD_ROUNDS; i++) {
		struct link *l = link_open(s, NULL);
		struct mem *m = mem_new(s, l->pd, FLOOD_BYTES, FABRIC_REMOTE_WRITE);

		far_tell(s, m);
		poll(NULL, 0, i); /* somewhere in the middle; any moment will do */
		fabric_mr_free(m->mr);
		m->mr = NULL;
		memset(m->bytes, 0x77, m->size);
		link_wait_break(l);
		meet(s);
		must(s, filled_with(m->bytes, m->size, 0x77) && mem_guards_ok(m));
		link_free(l);
	}
}

static void revoke_client(struct side *s)
{
	for (int i = 0; i < FLOOD_ROUNDS; i++) {
		struct link *l = link_open(s, &(struct plan){.send_depth = 32});
		struct mem *m = mem_new(s, l->pd, FLOOD_BYTES, FABRIC_LOCAL);

		memset(m->bytes, 0x33, m->size);
		flood(l, m, far_learn(s), false);
		meet(s);
		link_free(l);
	}
}

/* One channel breaks; those beside it, on the same queue and domain, do not notice. */
static void neighbour_half(struct side *s)
{
	struct link *a = link_open(s, &(struct plan){.cq_depth = 64});
	struct link *b = link_open(s, &(struct plan){.share = a});
	struct mem *m = mem_new(s, a->pd, 64, FABRIC_REMOTE_WRITE);
	struct far wrong = {0, 0xdead};

	if (!s->client)
		must_eq(s, post_recv(b, 1, m, 0, 64), 0);
	meet(s);
	if (s->client)
		must_eq(s, post(a, FABRIC_WRITE, 9, 0, m, 0, 64, wrong, 0), 0);
	link_wait_break(a);
	if (s->client && fabric_chan_caps(a->chan)->write_delivered) {
		struct fabric_wc wc = cq_next(s, a->cq); /* an error completes always */

		must(s, wc.chan == a->chan && wc.id == 9 && wc.status != FABRIC_OK);
	}
	meet(s);
	if (s->client) {
		struct fabric_wc wc;

		pattern_fill(m->bytes, 64, 4);
		must_eq(s, post_send(b, 2, FABRIC_SIGNALED, m, 0, 64), 0);
		do /* a's WRITE may still be there */
			wc = cq_next(s, b->cq);
		while (wc.chan == a->chan);
		must(s, wc.id == 2 && wc.status == FABRIC_OK);
	} else {
		must_eq(s, wc_good(b, 1, FABRIC_RECV).bytes, 64);
		must(s, pattern_is(m->bytes, 64, 4));
	}
	meet(s);
	must_eq(s, b->ended, 0);
}

#endif
