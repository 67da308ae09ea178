/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fabric/side.h: one side of a contract case, and what cases are written with.
 *
 * A case has a client half and a server half.  They share nothing: not memory, not even a process,
 * when one program serves and another connects.  What one half must tell the other (an address and
 * a key, "go on") crosses a control channel of its own as a struct note; the channels under test
 * carry only what the case posts.
 *
 * A half that finds something wrong leaves at once (`must` jumps out of it, however deep), and
 * everything it made is freed for it.  Waits have a generous deadline and sleep on descriptors.
 */
#ifndef TESTS_FABRIC_SIDE_H
#define TESTS_FABRIC_SIDE_H

#include "base/addr.h"
#include "base/clock.h"
#include "fabric/fabric.h"
#include "tests/harness.h"

#include <poll.h>
#include <setjmp.h>

#define WAIT_MS 10000
#define GUARD_BYTES 256u
#define GUARD_FILL 0xa5
#define LINKS_MAX 80
#define MEMS_MAX 256
#define REQUESTS_MAX 80
#define NOTES_MAX 16
#define ID_OPENER 0x0123456789abcdefull

struct link;

#define NOTE_WORDS 7

struct note {
	uint64_t w[NOTE_WORDS];
	uint64_t verdict; /* VERDICT_*, or 0 for a note of the case itself */
};
enum { VERDICT_GOOD = 1, VERDICT_BAD };

struct mem { /* registered memory between guards that are not */
	uint8_t *guarded, *bytes;
	size_t size;
	struct fabric_mr *mr;
};

struct request {
	struct fabric_chan *chan;
	uint8_t priv[FABRIC_PRIVATE_MAX];
	size_t priv_len;
};

struct side {
	const char *where; /* "server", or in `place`: for messages */
	char place[64];
	bool client;
	bool tells_breaks;   /* this fabric says how a channel ended, not only that it did */
	bool accept_settles; /* within the deadline, even with a peer that had gone before */
	struct fabric *fabric;
	struct fabric_eq *eq;
	struct fabric_listener *listener; /* the server's */
	struct sockaddr_storage dst, src; /* the client's; src without a family: none */
	uint64_t random;

	struct request requests[REQUESTS_MAX]; /* oldest first, not taken yet */
	unsigned request_count;

	/* of the running half */
	jmp_buf escape;
	bool failed;
	struct link *control;
	struct link *links[LINKS_MAX];
	struct fabric_pd *pds[LINKS_MAX];
	struct fabric_cq *cqs[LINKS_MAX];
	struct mem *mems[MEMS_MAX];
	unsigned link_count, pd_count, cq_count, mem_count;
	struct mem *note_mem; /* NOTES_MAX to receive, one to send */
	struct note inbox[NOTES_MAX];
	unsigned inbox_count, notes_sent;
	void (*tell)(struct side *); /* prints the state of a case that fails; must not fail itself;
					or NULL */
	void (*undo)(
		struct side *); /* frees what the case made itself, channels first; NULL: nothing */
	void *undo_of;
};

struct link {
	struct side *side;
	struct fabric_chan *chan; /* NULL: freed by the case */
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	bool channel; /* chan, with another context than this one, is an engine's (case_engine.h) */
	int connected, rejected, refused, ended; /* how many such events came */
	int error;                               /* of the last of them */
	uint8_t priv[FABRIC_PRIVATE_MAX];
	size_t priv_len;
};

/* ---- failing ---- */

static _Noreturn void side_fail(struct side *s, const char *file, int line, const char *what)
{
	void (*tell)(struct side *) = s->tell;

	printf("# %s:%d: [%s] %s\n", file, line, s->where, what);
	s->failed = true;
	s->tell = NULL;
	if (tell)
		tell(s);
	longjmp(s->escape, 1);
}

#define must(s, expr)                                                                              \
	do {                                                                                       \
		if (!(expr))                                                                       \
			side_fail(s, __FILE__, __LINE__, #expr " failed");                         \
	} while (0)

#define must_eq(s, a, b)                                                                           \
	do {                                                                                       \
		intmax_t a_ = (intmax_t)(a), b_ = (intmax_t)(b);                                   \
		if (a_ != b_) {                                                                    \
			char text_[256];                                                           \
			snprintf(text_, sizeof text_, "%s = %jd, expected %s = %jd", #a, a_, #b,   \
				b_);                                                               \
			side_fail(s, __FILE__, __LINE__, text_);                                   \
		}                                                                                  \
	} while (0)

/* ---- memory ---- */

/* A pattern without repetition: byte i of the endless pattern `seed` is the same wherever it lies.
 */
static void pattern_fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = (seed * 0x100000001b3ull + i + 1) * 0x9e3779b97f4a7c15ull;

		word ^= word >> 29;
		memcpy(bytes + i, &word, size - i < 8 ? size - i : 8);
	}
}

static bool pattern_is(const uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = (seed * 0x100000001b3ull + i + 1) * 0x9e3779b97f4a7c15ull;

		word ^= word >> 29;
		if (memcmp(bytes + i, &word, size - i < 8 ? size - i : 8))
			return false;
	}
	return true;
}

static bool filled_with(const uint8_t *bytes, size_t size, uint8_t value)
{
	return !size || (bytes[0] == value && !memcmp(bytes, bytes + 1, size - 1));
}

static bool mem_guards_ok(const struct mem *m)
{
	return filled_with(m->guarded, GUARD_BYTES, GUARD_FILL) &&
	       filled_with(m->bytes + m->size, GUARD_BYTES, GUARD_FILL);
}

/* Zeroed, and registered in pd. */
static struct mem *mem_new(struct side *s, struct fabric_pd *pd, size_t size, unsigned access)
{
	struct mem *m = calloc(1, sizeof *m);

	must(s, m && s->mem_count < MEMS_MAX);
	s->mems[s->mem_count++] = m;
	m->size = size;
	m->guarded = calloc(1, size + 2 * GUARD_BYTES);
	must(s, m->guarded);
	m->bytes = m->guarded + GUARD_BYTES;
	memset(m->guarded, GUARD_FILL, GUARD_BYTES);
	memset(m->bytes + size, GUARD_FILL, GUARD_BYTES);
	must_eq(s, fabric_mr_new(pd, m->bytes, size, access, &m->mr), 0);
	return m;
}

/* ---- events ---- */

/* The link of an event's channel, which its context names. */
static struct link *side_link_of(struct side *s, struct fabric_chan *chan)
{
	for (unsigned i = 0; i < s->link_count; i++)
		if (s->links[i]->channel && s->links[i]->chan == chan)
			return s->links[i];
	return chan ? fabric_chan_context(chan) : NULL;
}

/* For who takes it.  False: there is no room. */
static bool side_keep_request(struct side *s, const struct fabric_event *ev)
{
	struct request *r = &s->requests[s->request_count];

	if (s->request_count == REQUESTS_MAX)
		return false;
	s->request_count++;
	r->chan = ev->chan;
	r->priv_len = ev->priv_len;
	memcpy(r->priv, ev->priv, sizeof r->priv);
	return true;
}

/* The oldest request, which there is. */
static struct request side_pop_request(struct side *s)
{
	struct request r = s->requests[0];

	memmove(s->requests, s->requests + 1, --s->request_count * sizeof *s->requests);
	return r;
}

static void side_take_event(struct side *s, const struct fabric_event *ev)
{
	struct link *l = side_link_of(s, ev->chan);

	if (ev->type == FABRIC_EVENT_REQUEST) {
		must(s, side_keep_request(s, ev));
		must(s, !ev->owner);
		must(s, ev->priv_len <= FABRIC_PRIVATE_MAX);
		return;
	}
	must(s, ev->chan && l && l->chan == ev->chan);
	must(s, ev->owner == (l->channel ? NULL : l));
	switch (ev->type) {
	case FABRIC_EVENT_CONNECTED:
		l->connected++;
		break;
	case FABRIC_EVENT_REJECTED:
		l->rejected++;
		break;
	case FABRIC_EVENT_FAILED:
		l->refused++;
		must(s, ev->error < 0);
		break;
	case FABRIC_EVENT_DISCONNECTED:
		must_eq(s, l->connected, 1); /* never before it */
		l->ended++;
		must(s, ev->error <= 0);
		break;
	default:
		must(s, !"an event of unknown type");
	}
	l->error = ev->error;
	must(s, ev->priv_len <= FABRIC_PRIVATE_MAX);
	if (ev->type != FABRIC_EVENT_DISCONNECTED) {
		memcpy(l->priv, ev->priv, sizeof l->priv);
		l->priv_len = ev->priv_len;
	}
	must(s, l->connected + l->rejected + l->refused == 1);
	must(s, l->ended <= 1);
}

/* Waits for one event, whatever it is. */
static void side_wait(struct side *s)
{
	struct fabric_event ev;
	int rc = fabric_eq_wait(s->eq, &ev, WAIT_MS);

	if (rc == 0)
		must(s, !"an event within the deadline");
	must_eq(s, rc, 1);
	side_take_event(s, &ev);
}

/* Takes what is there. */
static void side_drain(struct side *s)
{
	struct fabric_event ev;
	int rc;

	while ((rc = fabric_eq_get(s->eq, &ev)) == 1)
		side_take_event(s, &ev);
	must_eq(s, rc, 0);
}

static struct request side_next_request(struct side *s)
{
	while (!s->request_count)
		side_wait(s);
	return side_pop_request(s);
}

/* ---- channels ---- */

struct plan { /* of a channel; zeros take the defaults */
	uint32_t send_depth, recv_depth, inline_bytes;
	uint32_t cq_depth;         /* more than both, to be shared */
	const struct link *share;  /* with this one: protection domain and completion queue */
	bool own_pd;               /* share only the completion queue */
	const struct sockaddr *to; /* not to the server's listener */
};

static struct link *link_blank(struct side *s)
{
	struct link *l = calloc(1, sizeof *l);

	must(s, l && s->link_count < LINKS_MAX);
	s->links[s->link_count++] = l;
	l->side = s;
	return l;
}

/* Puts queues on a channel that was dialled or requested. */
static struct link *link_new(struct side *s, struct fabric_chan *chan, const struct plan *plan)
{
	struct fabric_chan_attr attr = {
		.send_depth = plan->send_depth ? plan->send_depth : 16,
		.recv_depth = plan->recv_depth ? plan->recv_depth : 16,
		.inline_bytes = plan->inline_bytes,
	};
	struct link *l = link_blank(s);

	l->chan = chan;
	if (plan->share && !plan->own_pd) {
		l->pd = plan->share->pd;
	} else {
		must_eq(s, fabric_pd_new(chan, &l->pd), 0);
		s->pds[s->pd_count++] = l->pd;
	}
	if (plan->share) {
		l->cq = plan->share->cq;
	} else {
		must_eq(s,
			fabric_cq_new(l->pd,
				plan->cq_depth ? plan->cq_depth : attr.send_depth + attr.recv_depth,
				&l->cq),
			0);
		s->cqs[s->cq_count++] = l->cq;
	}
	attr.pd = l->pd;
	attr.cq = l->cq;
	attr.context = l;
	must_eq(s, fabric_chan_setup(chan, &attr), 0);
	must(s, fabric_chan_context(chan) == l);
	fabric_chan_set_owner(chan, l);
	return l;
}

static struct fabric_chan *link_dial_chan(struct side *s, const struct sockaddr *to)
{
	struct fabric_chan *chan;

	must_eq(s,
		fabric_dial(s->eq, to, s->src.ss_family ? (struct sockaddr *)&s->src : NULL,
			WAIT_MS, &chan),
		0);
	return chan;
}

static struct link *link_dial(struct side *s, const struct plan *plan)
{
	return link_new(
		s, link_dial_chan(s, plan->to ? plan->to : (const struct sockaddr *)&s->dst), plan);
}

/* Until the channel is connected, rejected or failed. */
static void link_settle(struct link *l)
{
	while (!l->connected && !l->rejected && !l->refused)
		side_wait(l->side);
}

static void link_wait_connected(struct link *l)
{
	link_settle(l);
	if (l->refused)
		must_eq(l->side, l->error, 0);
	must(l->side, l->connected);
}

static void link_wait_end(struct link *l)
{
	while (!l->ended)
		side_wait(l->side);
}

static void link_free(struct link *l)
{
	fabric_chan_free(l->chan);
	l->chan = NULL;
}

/* ---- completions ---- */

/* The next completion of a queue: poll, arm, poll once more, wait on the descriptor. */
static struct fabric_wc cq_next(struct side *s, struct fabric_cq *cq)
{
	uint64_t deadline = clock_now_ns() + WAIT_MS * NS_PER_MS;
	struct fabric_wc wc;

	for (;;) {
		struct pollfd fd = {.fd = fabric_cq_fd(cq), .events = POLLIN};
		int rc = fabric_cq_poll(cq, &wc, 1);

		if (!rc) {
			must_eq(s, fabric_cq_arm(cq), 0);
			rc = fabric_cq_poll(cq, &wc, 1);
		}
		if (rc) {
			must_eq(s, rc, 1);
			return wc;
		}
		if (!clock_until_ms(deadline))
			must(s, !"a completion within the deadline");
		poll(&fd, 1, clock_until_ms(deadline));
	}
}

static struct fabric_wc wc_next(struct link *l)
{
	struct fabric_wc wc = cq_next(l->side, l->cq);

	must(l->side, wc.chan == l->chan);
	return wc;
}

/* The next completion, which must be this one and good. */
static struct fabric_wc wc_good(struct link *l, uint64_t id, enum fabric_opcode opcode)
{
	struct fabric_wc wc = wc_next(l);

	if (wc.status != FABRIC_OK)
		side_fail(l->side, __FILE__, __LINE__, fabric_status_name(wc.status));
	must_eq(l->side, wc.id, id);
	must_eq(l->side, wc.opcode, opcode);
	return wc;
}

/* Nothing waits in the queue. */
static void wc_none(struct link *l)
{
	struct fabric_wc wc;

	must_eq(l->side, fabric_cq_poll(l->cq, &wc, 1), 0);
}

/* ---- requests ---- */

struct far { /* memory of the other side */
	uint64_t base;
	uint32_t key;
};

static int post(struct link *l, enum fabric_opcode opcode, uint64_t id, unsigned flags,
	const struct mem *m, size_t from, size_t bytes, struct far far, uint64_t at)
{
	struct fabric_sge sge = {m ? m->bytes + from : NULL, (uint32_t)bytes, m ? m->mr : NULL};
	struct fabric_wr wr = {
		.id = id,
		.opcode = opcode,
		.flags = flags,
		.sge = &sge,
		.sge_count = m ? 1 : 0,
		.remote_addr = far.base + at,
		.remote_key = far.key,
	};

	return fabric_post_send(l->chan, &wr);
}

static const struct far NOWHERE;

static int post_send(
	struct link *l, uint64_t id, unsigned flags, const struct mem *m, size_t from, size_t bytes)
{
	return post(l, FABRIC_SEND, id, flags, m, from, bytes, NOWHERE, 0);
}

static int post_recv(struct link *l, uint64_t id, const struct mem *m, size_t from, size_t bytes)
{
	return fabric_post_recv(
		l->chan, id, m ? m->bytes + from : NULL, (uint32_t)bytes, m ? m->mr : NULL);
}

/* ---- opening: the same call on both sides ---- */

/* The connecting side sends first on every channel: an empty SEND, so that either may go on. */
static void link_say_first(struct link *l)
{
	must_eq(l->side, post_send(l, ID_OPENER, FABRIC_SIGNALED, NULL, 0, 0), 0);
	wc_good(l, ID_OPENER, FABRIC_SEND);
}

static struct link *link_accept(struct side *s, struct request r, const struct plan *plan,
	const void *priv, size_t priv_len)
{
	struct link *l = link_new(s, r.chan, plan);

	must_eq(s, post_recv(l, ID_OPENER, NULL, 0, 0), 0);
	must_eq(s, fabric_chan_accept(l->chan, priv, priv_len), 0);
	link_wait_connected(l);
	must_eq(s, wc_good(l, ID_OPENER, FABRIC_RECV).bytes, 0);
	return l;
}

static struct link *link_connect(
	struct side *s, const struct plan *plan, const void *priv, size_t priv_len)
{
	struct link *l = link_dial(s, plan);

	must_eq(s, fabric_chan_connect(l->chan, priv, priv_len), 0);
	link_wait_connected(l);
	link_say_first(l);
	return l;
}

static struct link *link_open(struct side *s, const struct plan *plan)
{
	static const struct plan defaults;

	if (!plan)
		plan = &defaults;
	return s->client ? link_connect(s, plan, NULL, 0)
			 : link_accept(s, side_next_request(s), plan, NULL, 0);
}

/* ---- notes ---- */

static void note_post_recv(struct side *s, uint64_t slot)
{
	must_eq(s,
		post_recv(s->control, slot, s->note_mem, slot * sizeof(struct note),
			sizeof(struct note)),
		0);
}

static void note_take_wc(struct side *s, const struct fabric_wc *wc)
{
	must(s, wc->chan == s->control->chan);
	must_eq(s, wc->status, FABRIC_OK);
	if (wc->opcode == FABRIC_SEND) {
		s->notes_sent += wc->id != ID_OPENER;
		return;
	}
	must_eq(s, wc->bytes, sizeof(struct note));
	must(s, s->inbox_count < NOTES_MAX);
	memcpy(&s->inbox[s->inbox_count++], s->note_mem->bytes + wc->id * sizeof(struct note),
		sizeof(struct note));
	note_post_recv(s, wc->id);
}

/* Moves the control channel: one completion. */
static void note_progress(struct side *s)
{
	struct fabric_wc wc = cq_next(s, s->control->cq);

	note_take_wc(s, &wc);
}

static void note_post(struct side *s, struct note note)
{
	memcpy(s->note_mem->bytes + NOTES_MAX * sizeof note, &note, sizeof note);
	must_eq(s,
		post_send(s->control, NOTES_MAX, FABRIC_SIGNALED, s->note_mem,
			NOTES_MAX * sizeof note, sizeof note),
		0);
}

static void note_send(struct side *s, struct note note)
{
	unsigned before = s->notes_sent;

	note_post(s, note);
	while (s->notes_sent == before)
		note_progress(s);
}

static struct note note_recv_any(struct side *s)
{
	struct note note;

	while (!s->inbox_count)
		note_progress(s);
	note = s->inbox[0];
	memmove(s->inbox, s->inbox + 1, --s->inbox_count * sizeof note);
	return note;
}

static struct note note_recv(struct side *s)
{
	struct note note = note_recv_any(s);

	if (note.verdict)
		side_fail(s, __FILE__, __LINE__, "the other half left early");
	return note;
}

/* The next note if one is there; does not wait. */
static bool note_get(struct side *s, struct note *note)
{
	struct fabric_wc wc;
	int rc = 0;

	while (!s->inbox_count && (rc = fabric_cq_poll(s->control->cq, &wc, 1)) == 1)
		note_take_wc(s, &wc);
	must(s, rc >= 0);
	if (!s->inbox_count)
		return false;
	*note = note_recv(s);
	return true;
}

/* Both sides have come so far. */
static void meet(struct side *s)
{
	if (s->client)
		note_send(s, (struct note){{0}, 0});
	note_recv(s);
	if (!s->client)
		note_send(s, (struct note){{0}, 0});
}

/* The smaller of what the two halves give: their fabrics may be of two kinds. */
static uint64_t least_of_both(struct side *s, uint64_t ours)
{
	uint64_t theirs;

	if (s->client)
		note_send(s, (struct note){{ours}, 0});
	theirs = note_recv(s).w[0];
	if (!s->client)
		note_send(s, (struct note){{ours}, 0});
	return ours < theirs ? ours : theirs;
}

/* The server's device is the kernel's siw, some of whose ways are its own; what it cannot do tells.
 */
static bool server_is_siw(struct side *s)
{
	return !least_of_both(s, s->client || fabric_chan_caps(s->control->chan)->read_rights);
}

static void far_tell(struct side *s, const struct mem *m)
{
	note_send(s, (struct note){{fabric_mr_base(m->mr), fabric_mr_key(m->mr)}, 0});
}

static struct far far_learn(struct side *s)
{
	struct note note = note_recv(s);

	return (struct far){note.w[0], (uint32_t)note.w[1]};
}

/* The receives of the control channel, posted before it is connected. */
static void control_prepare(struct side *s, struct link *l)
{
	s->control = l;
	s->note_mem =
		mem_new(s, s->control->pd, (NOTES_MAX + 1) * sizeof(struct note), FABRIC_LOCAL);
	for (unsigned i = 0; i < NOTES_MAX; i++)
		note_post_recv(s, i);
}

/* ---- the end of a half ---- */

/* Requests that nobody took stay: the next case may be among them. */
static void side_clean(struct side *s)
{
	if (s->undo)
		s->undo(s);
	s->tell = NULL;
	s->undo = NULL;
	s->undo_of = NULL;
	for (unsigned i = 0; i < s->link_count; i++)
		fabric_chan_free(s->links[i]->chan);
	for (unsigned i = 0; i < s->mem_count; i++) {
		fabric_mr_free(s->mems[i]->mr);
		free(s->mems[i]->guarded);
		free(s->mems[i]);
	}
	for (unsigned i = 0; i < s->cq_count; i++)
		fabric_cq_free(s->cqs[i]);
	for (unsigned i = 0; i < s->pd_count; i++)
		fabric_pd_free(s->pds[i]);
	for (unsigned i = 0; i < s->link_count; i++)
		free(s->links[i]);
	s->link_count = s->pd_count = s->cq_count = s->mem_count = 0;
	s->inbox_count = s->notes_sent = 0;
	s->control = NULL;
	s->note_mem = NULL;
	s->failed = false;
	s->where = s->client ? "client" : "server"; /* a case that failed may have left its own */
}

#endif
