/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fabric/contract: the contract of fabric.h, stated once and run on every fabric.
 *
 *   contract                                   each fabric of this build that works here
 *   contract --fabric NAME [--addr HOST] [--port N] [--src HOST]     one of them
 *   contract --case NAME ...                   only these cases
 *   contract --fabric NAME --serve HOST:PORT          the server halves, for a client elsewhere
 *   contract --fabric NAME --connect HOST:PORT        the client halves, which decide what is run
 *
 * Without --serve and --connect both halves of a case run in this process, as two threads with a
 * fabric each (but loop, whose ends must share one).  A fabric is one row of `backends`; a case is
 * one row of `cases`.
 */
#include "fabric/loop/loop.h"
#include "fabric/select.h"
#include "tests/fabric/case_break.h"
#include "tests/fabric/case_connect.h"
#include "tests/fabric/case_data.h"
#include "tests/fabric/case_engine.h"
#include "tests/fabric/case_queue.h"

#include <pthread.h>

/* ---- the fabrics ---- */

struct backend {
	const char *name;   /* in the names of cases */
	const char *fabric; /* of select_open, or "loop" */
	const char *addr;
	bool shared;         /* both sides use one instance */
	bool tells_breaks;   /* DISCONNECTED carries an error when the channel broke */
	bool accept_settles; /* soon, even with a peer that had gone before */
	struct select_config config;
	struct loop_faults faults;
};

static const struct backend backends[] = {
	{"loop", "loop", "127.0.0.1", true, true, true, {0}, {0}},
	{"loop-at-once", "loop", "127.0.0.1", true, true, true, {0}, {.at_once = true}},
	/* what a fabric may lack: this is refused */
	{"loop-bare", "loop", "127.0.0.1", true, true, true, {0},
		{.no_imm = true, .no_read = true, .no_watch = true}},
	{"soft", "soft", "127.0.0.1", false, true, true, {0}, {0}},
	{"soft6", "soft", "::1", false, true, true, {0}, {0}},
	{"soft-crc", "soft", "127.0.0.1", false, true, true, {.crc = true}, {0}},
	/* --addr is needed: no RDMA device has a loopback address.  A peer of rdma_cm is not told
	 * why.  The kernel may see a dialler's "I am gone" before its request, forget the one, and
	 * send the answer to the other for a minute */
	{"verbs", "verbs", "127.0.0.1", false, false, false, {0}, {0}},
};

static int backend_open(const struct backend *b, struct fabric **out)
{
	return strcmp(b->fabric, "loop") ? select_open(b->fabric, &b->config, out)
					 : loop_open(&b->faults, out);
}

/* ---- the cases ---- */

enum needs { NEEDS_IMM = 1, NEEDS_READ = 2 };

static const struct contract_case {
	const char *name;
	void (*client)(struct side *);
	void (*server)(struct side *);
	unsigned needs;
} cases[] = {
	{"listen", meet, listen_server, 0},
	{"private-data", private_client, private_server, 0},
	{"reject", reject_client, reject_server, 0},
	{"refused", refused_client, refused_server, 0},
	{"listener-free", orphan_client, orphan_server, 0},
	{"abandoned", abandon_client, abandon_server, 0},
	{"unconnected", unconnected_half, unconnected_half, 0},
	{"eq-fd", eq_fd_client, eq_fd_server, 0},
	{"send-sizes", sends_client, sends_server, 0},
	{"write-sizes", writes_client, writes_server, 0},
	{"stream", stream_half, stream_half, 0},
	{"duplex", duplex_half, duplex_half, 0},
	{"inline", inline_half, inline_half, 0},
	{"selective", selective_half, selective_half, 0},
	{"queue-full", full_client, full_server, 0},
	{"cq-arm", arm_client, arm_server, 0},
	{"mr-watch", watch_client, watch_server, 0},
	{"write-order", order_client, order_server, NEEDS_READ},
	{"shared-cq", shared_half, shared_half, 0},
	{"many-channels", many_half, many_half, 0},
	{"write-imm", imm_client, imm_server, NEEDS_IMM},
	{"read", read_client, read_server, NEEDS_READ},
	{"read-across", cross_client, cross_server, NEEDS_READ},
	{"engine-credit", engine_credit_half, engine_credit_half, 0},
	{"engine-status", engine_status_half, engine_status_half, 0},
	{"engine-window", engine_window_half, engine_window_half, 0},
	{"engine-pull", engine_pull_half, engine_pull_half, 0},
	{"engines-in-turn", engines_in_turn_half, engines_in_turn_half, 0},
	{"caps", caps_half, caps_half, 0},
	{"bad-write", bad_write_half, bad_write_half, 0},
	{"bad-write-imm", bad_imm_half, bad_imm_half, NEEDS_IMM},
	{"bad-read", bad_read_half, bad_read_half, NEEDS_READ},
	{"bad-local", local_client, local_server, 0},
	{"no-receive", rnr_client, rnr_server, 0},
	{"long-send", long_half, long_half, 0},
	{"peer-closes", gone_client, gone_server, 0},
	{"peer-vanishes", gone_client, vanish_server, 0},
	{"close-delivers", orderly_client, orderly_server, 0},
	{"both-close", both_close_half, both_close_half, 0},
	{"chan-free", reuse_client, reuse_server, 0},
	{"mr-free", revoke_client, revoke_server, 0},
	{"neighbour", neighbour_half, neighbour_half, 0},
};
#define CASES (sizeof cases / sizeof *cases)
#define CASE_STOP 0xffu

/* ---- running a half ---- */

static const char hello_magic[] = "contract";
#define HELLO_BYTES sizeof hello_magic /* with the number of the case in place of the NUL */
static const struct plan control_plan = {.send_depth = 4, .recv_depth = NOTES_MAX + 1};

enum outcome { GOOD, BAD, SKIPPED };

/* The rest of a half, in a frame of its own: nothing of it lives across the jump. */
static void half_guarded(struct side *s, void (*run)(struct side *, unsigned), unsigned number)
{
	if (!setjmp(s->escape))
		run(s, number);
}

static void client_open(struct side *s, unsigned number)
{
	char hello[HELLO_BYTES];
	struct link *l = link_dial(s, &control_plan);

	memcpy(hello, hello_magic, HELLO_BYTES);
	hello[HELLO_BYTES - 1] = (char)number;
	control_prepare(s, l);
	must_eq(s, fabric_chan_connect(l->chan, hello, HELLO_BYTES), 0);
	link_wait_connected(l);
	/* a note that answers it may be reported before it is: note_progress takes both */
	must_eq(s, post_send(l, ID_OPENER, FABRIC_SIGNALED, NULL, 0, 0), 0);
}

static void client_run(struct side *s, unsigned number)
{
	struct note last;

	client_open(s, number);
	cases[number].client(s);
	do
		last = note_recv_any(s);
	while (!last.verdict);
	must_eq(s, last.verdict, VERDICT_GOOD);
	fabric_chan_disconnect(s->control->chan);
	link_wait_end(s->control);
	side_drain(s);
}

static void client_stop(struct side *s, unsigned number)
{
	client_open(s, number);
	fabric_chan_disconnect(s->control->chan);
	link_wait_end(s->control);
}

static void client_needs(struct side *s, unsigned number)
{
	struct fabric_chan *chan;

	must_eq(s, fabric_dial(s->eq, (struct sockaddr *)&s->dst, NULL, WAIT_MS, &chan), 0);
	if ((cases[number].needs & NEEDS_IMM && !fabric_chan_caps(chan)->has_imm) ||
		(cases[number].needs & NEEDS_READ && !fabric_chan_caps(chan)->has_read))
		harness_skipped = "this fabric has none";
	fabric_chan_free(chan);
}

static enum outcome client_case(struct side *s, unsigned number)
{
	bool failed;

	harness_skipped = NULL;
	half_guarded(s, client_needs, number);
	if (!s->failed && !harness_skipped)
		half_guarded(s, client_run, number);
	failed = s->failed;
	side_clean(s);
	return failed ? BAD : harness_skipped ? SKIPPED : GOOD;
}

/*
 * Waits for ever for the client's next case; -1: there is none.  Its request may have come before
 * the end of the last case's control channel, of which the client knew: nothing is promised
 * between channels.
 */
static int server_hello(struct side *s)
{
	for (;;) {
		const struct request *r = s->requests;
		struct fabric_event ev;
		int rc;

		if (!s->request_count) {
			rc = fabric_eq_wait(s->eq, &ev, -1);
			if (rc < 0)
				return -1;
			if (rc != 1 || ev.type != FABRIC_EVENT_REQUEST)
				continue;
			side_keep_request(s, &ev);
		}
		if (r->priv_len >= HELLO_BYTES && !memcmp(r->priv, hello_magic, HELLO_BYTES - 1))
			return r->priv[HELLO_BYTES - 1];
		/* left over from a case that failed */
		fabric_chan_reject(side_pop_request(s).chan, NULL, 0);
	}
}

static void server_open(struct side *s)
{
	struct link *l = link_new(s, side_next_request(s).chan, &control_plan);

	must_eq(s, post_recv(l, ID_OPENER, NULL, 0, 0), 0);
	control_prepare(s, l);
	must_eq(s, fabric_chan_accept(l->chan, NULL, 0), 0);
	link_wait_connected(l);
	wc_good(l, ID_OPENER, FABRIC_RECV);
}

static void server_run(struct side *s, unsigned number)
{
	server_open(s);
	if (number < CASES) {
		cases[number].server(s);
		/* its completion may be flushed: the client leaves as soon as it has read it */
		note_post(s, (struct note){{0}, VERDICT_GOOD});
	}
	link_wait_end(s->control); /* the client has read it, or is gone */
}

static void server_tell_bad(struct side *s, unsigned number)
{
	(void)number;
	if (s->control && s->control->connected && !s->control->ended) {
		note_send(s, (struct note){{0}, VERDICT_BAD});
		link_wait_end(s->control);
	}
}

static void server_loop(struct side *s)
{
	int number;

	do {
		number = server_hello(s);
		half_guarded(s, server_run, (unsigned)number);
		if (s->failed)
			half_guarded(s, server_tell_bad, 0);
		side_clean(s);
	} while (number >= 0 && number != CASE_STOP);
}

/* ---- sides ---- */

static int side_open(struct side *s, const struct backend *b, bool client, struct fabric *fabric)
{
	int rc = 0;

	memset(s, 0, sizeof *s);
	s->client = client;
	s->where = client ? "client" : "server";
	s->tells_breaks = b->tells_breaks;
	s->accept_settles = b->accept_settles;
	s->fabric = fabric;
	if (!fabric)
		rc = backend_open(b, &s->fabric);
	return rc ? rc : fabric_eq_new(s->fabric, &s->eq);
}

static void side_close(struct side *s, bool keep_fabric)
{
	while (s->request_count)
		fabric_chan_free(side_pop_request(s).chan);
	fabric_listener_free(s->listener);
	fabric_eq_free(s->eq);
	if (!keep_fabric)
		fabric_close(s->fabric);
}

static int parse(const char *host, uint16_t port, struct sockaddr_storage *out)
{
	struct addr addr;
	size_t count;
	int rc = addr_resolve(host, port, true, &addr, 1, &count);

	if (!rc)
		*out = addr.ss;
	return rc;
}

static int side_listen(struct side *s, const struct sockaddr_storage *at)
{
	return fabric_listen(s->eq, (const struct sockaddr *)at, sizeof *at, &s->listener);
}

/* ---- options and reports ---- */

struct options {
	const char *fabric, *addr, *src;
	uint16_t port;
	bool serve, connect;
	char host[64];
	const char *cases[CASES];
	unsigned case_count;
};

struct tally {
	int number, bad;
};

static void report(struct tally *t, enum outcome outcome, const char *fabric, const char *name)
{
	t->number++;
	t->bad += outcome == BAD;
	printf("%s %d - %s/%s%s%s\n", outcome == BAD ? "not ok" : "ok", t->number, fabric, name,
		outcome == SKIPPED ? " # SKIP " : "", outcome == SKIPPED ? harness_skipped : "");
}

static bool wanted(const struct options *o, const char *name)
{
	for (unsigned i = 0; i < o->case_count; i++)
		if (!strcmp(o->cases[i], name))
			return true;
	return !o->case_count;
}

static void client_cases(struct side *s, const struct options *o, const char *name, struct tally *t)
{
	for (unsigned i = 0; i < CASES; i++)
		if (wanted(o, cases[i].name))
			report(t, client_case(s, i), name, cases[i].name);
	half_guarded(s, client_stop, CASE_STOP);
	side_clean(s);
}

static void *server_thread(void *side)
{
	server_loop(side);
	return NULL;
}

/* Both halves here.  The sides are large; they are static to spare the stack. */
static void run_both(const struct backend *b, const struct options *o, struct tally *t)
{
	static struct side server, client;
	struct sockaddr_storage at;
	pthread_t thread;
	int rc = parse(o->addr ? o->addr : b->addr, o->port, &at);

	if (!rc)
		rc = side_open(&server, b, false, NULL);
	if (rc) {
		harness_skipped = strerror(-rc);
		report(t, o->fabric ? BAD : SKIPPED, b->name, "open");
		return;
	}
	rc = side_listen(&server, &at);
	if (rc) {
		/* no such address on this host (IPv6 is off), or no device behind it */
		harness_skipped = strerror(-rc);
		report(t, o->fabric ? BAD : SKIPPED, b->name, "listen");
		side_close(&server, false);
		return;
	}
	if (side_open(&client, b, true, b->shared ? server.fabric : NULL) ||
		fabric_listener_addr(server.listener, &client.dst) ||
		(o->src && parse(o->src, 0, &client.src)) ||
		pthread_create(&thread, NULL, server_thread, &server)) {
		report(t, BAD, b->name, "start");
		exit(1);
	}
	client_cases(&client, o, b->name, t);
	pthread_join(thread, NULL);
	side_close(&client, b->shared);
	side_close(&server, false);
}

static int run_one_side(const struct backend *b, const struct options *o, struct tally *t)
{
	static struct side side;
	struct sockaddr_storage at;
	char text[ADDR_TEXT_MAX];
	int rc = parse(o->host, o->port, &at);

	if (!rc)
		rc = side_open(&side, b, o->connect, NULL);
	if (!rc && o->serve)
		rc = side_listen(&side, &at);
	if (!rc && o->serve)
		rc = fabric_listener_addr(side.listener, &at);
	if (!rc && o->src)
		rc = parse(o->src, 0, &side.src);
	if (rc) {
		fprintf(stderr, "contract: %s, %s: %s\n", b->name, o->host, strerror(-rc));
		return 1;
	}
	if (o->serve) {
		addr_format((struct sockaddr *)&at, text);
		printf("# serving %s\n", text);
		server_loop(&side);
	} else {
		side.dst = at;
		client_cases(&side, o, b->name, t);
	}
	side_close(&side, false);
	return 0;
}

static int usage(void)
{
	fputs("usage: contract [--fabric NAME] [--addr HOST] [--port N] [--src HOST] [--case "
	      "NAME]...\n"
	      "                [--serve HOST:PORT | --connect HOST:PORT]\n",
		stderr);
	return 2;
}

static int parse_options(struct options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1]; /* argv ends in NULL */

		if (!value)
			return -EINVAL;
		if (!strcmp(argv[i], "--fabric"))
			o->fabric = value;
		else if (!strcmp(argv[i], "--addr"))
			o->addr = value;
		else if (!strcmp(argv[i], "--src"))
			o->src = value;
		else if (!strcmp(argv[i], "--port"))
			o->port = (uint16_t)strtoul(value, NULL, 10);
		else if (!strcmp(argv[i], "--case") && o->case_count < CASES)
			o->cases[o->case_count++] = value;
		else if (!strcmp(argv[i], "--serve") || !strcmp(argv[i], "--connect")) {
			o->serve = argv[i][2] == 's';
			o->connect = !o->serve;
			if (addr_split(value, o->host, sizeof o->host, ADDR_DEFAULT_PORT, &o->port))
				return -EINVAL;
		} else {
			return -EINVAL;
		}
	}
	return (o->serve || o->connect) && !o->fabric ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct tally t = {0};
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (parse_options(&o, argc, argv))
		return usage();
	for (unsigned i = 0; i < sizeof backends / sizeof *backends && !rc; i++) {
		const struct backend *b = &backends[i];

		if (o.fabric && strcmp(o.fabric, b->name))
			continue;
		if (o.serve || o.connect)
			rc = run_one_side(b, &o, &t);
		else
			run_both(b, &o, &t);
	}
	if (!t.number && !o.serve)
		return usage();
	if (!o.serve)
		printf("1..%d\n", t.number);
	return rc || t.bad ? 1 : 0;
}
