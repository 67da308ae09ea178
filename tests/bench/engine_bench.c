/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/engine_bench: one measurement of one engine, as a line of JSON.
 * tests/bench/engines.py runs many of them and makes tables.
 *
 *     engine_bench WHAT --engine NAME [options]
 *
 *     flow      blocks of --size bytes one after another for --ms
 *     latency   --count blocks, each sent when the one before has landed (and --gap-us later)
 *     sync      --count times: the sink has all its blocks full and empties all; until the source
 *               knows
 *     retain    as flow, for 300 ms; the sink keeps a block from 100 ms to 200 ms
 *     devices   --devices cameras, 25 frames a second each, over --sessions links, for --ms
 *
 * The engines are the tool's own, over channels of the tool's own; only what fills and empties
 * blocks is played.  Source and sink are two processes on one host, whose clock is the same.
 */
#include "tests/bench/sides.h"

#include "base/log.h"

#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define FRAME_BYTES (640u * 480u * 3u)
#define SIZE_DEFAULT 65536u
#define SEND_BYTES (512u << 10) /* at once, as transfer/source_blocks does */
#define FRAME_NS (NS_PER_S / 25)
#define RETAIN_MS 300u
#define RETAIN_FROM_NS (100 * NS_PER_MS)
#define RETAIN_UNTIL_NS (200 * NS_PER_MS)
#define BIN_NS (5 * NS_PER_MS)
#define WATCHDOG_S 120u

static bool is(const struct config *c, const char *what)
{
	return !strcmp(c->what, what);
}

/* ---- source ---- */

struct source {
	struct side side;      /* first */
	struct block *filled;  /* waits for room */
	uint64_t sent, wanted; /* blocks; wanted: how many may leave by now */
	uint64_t end_ns;
	unsigned first_device, devices; /* of this session */
	uint64_t start_ns;
	uint8_t *frame;
	bool ask; /* the sink is asked for room; the delay of synchronization asks by itself */
	bool settled;
};

static unsigned device_ticks(const struct config *c)
{
	return (unsigned)(c->ms * NS_PER_MS / FRAME_NS);
}

/* Fills the next block, if it is time for it and there is one: whether it is there. */
static bool fill_next(struct source *s)
{
	const struct config *c = s->side.config;
	uint32_t device = 0, sequence = (uint32_t)s->sent;
	struct block *b;

	if (s->sent >= s->wanted)
		return false;
	b = pool_take(s->side.pool, BLOCK_FILLING);
	if (!b)
		return false;
	if (is(c, "devices")) {
		device = s->first_device + (unsigned)(s->sent % s->devices);
		sequence = (uint32_t)(s->sent / s->devices);
		memcpy(b->payload, s->frame, c->size);
	}
	stamp(&s->side, b, device, sequence);
	pool_move(b, BLOCK_FILLED);
	b->session = device;
	b->sequence = sequence;
	s->filled = b;
	return true;
}

static void update_wanted(struct source *s)
{
	const struct config *c = s->side.config;
	uint64_t now = clock_now_ns(), ticks;

	if (is(c, "flow") || is(c, "retain")) {
		s->wanted = now < s->end_ns ? UINT64_MAX : s->sent;
	} else if (is(c, "devices")) {
		ticks = now < s->start_ns ? 0 : (now - s->start_ns) / FRAME_NS + 1;
		s->wanted = (ticks < device_ticks(c) ? ticks : device_ticks(c)) * s->devices;
	}
}

/* Sends what is there at the same time, as a transfer does.  Whether there was something. */
static bool send_filled(struct source *s)
{
	const struct config *c = s->side.config;
	struct block *blocks[32];
	unsigned count = 0, room = 0;

	if (!s->filled && !fill_next(s))
		return false;
	room = side_room(&s->side, s->ask);
	while (count < room && count < sizeof blocks / sizeof *blocks &&
		(uint64_t)count * c->size < SEND_BYTES && (s->filled || fill_next(s))) {
		struct block *b = s->filled;

		if (is(c, "latency"))
			s->side.shared->sent_ns = clock_now_ns();
		if (is(c, "devices"))
			s->side.shared->cost[b->sequence * c->devices + b->session] =
				clock_now_ns();
		blocks[count++] = b;
		s->filled = NULL;
		s->sent++;
		update_wanted(s);
	}
	if (count)
		must("send", s->side.from->ops->send(s->side.from, blocks, count));
	return count;
}

/* One round: whether anything was done. */
static bool work_source(void *ctx)
{
	struct source *s = ctx;
	bool did;

	take_frames(&s->side);
	did = take_sent(&s->side) > 0;
	update_wanted(s);
	while (send_filled(s))
		did = true;
	return did;
}

static int64_t until_next(const struct source *s)
{
	uint64_t next = s->end_ns, now = clock_now_ns();

	if (is(s->side.config, "devices"))
		next = s->start_ns + s->sent / s->devices * FRAME_NS;
	return !next || s->sent < s->wanted ? -1 : next > now ? (int64_t)(next - now) : 0;
}

static bool settle_source(void *ctx)
{
	struct source *s = ctx;
	int r;

	if (work_source(s))
		return true;
	r = s->side.from->ops->settle(s->side.from);
	must("settle", r);
	s->settled = r > 0;
	return r > 0;
}

static bool hear_closed(void *ctx)
{
	struct source *s = ctx;

	take_frames(&s->side);
	return s->side.over;
}

static void finish_source(struct source *s)
{
	while (!s->settled)
		if (!settle_source(s))
			side_wait(&s->side, -1, settle_source, s);
	tell_complete(&s->side, s->sent);
	while (!hear_closed(s))
		side_wait(&s->side, -1, hear_closed, s);
	s->side.shared->heard++;
}

static bool source_done(const struct source *s)
{
	const struct config *c = s->side.config;

	if (s->filled)
		return false;
	if (is(c, "devices"))
		return s->sent >= (uint64_t)device_ticks(c) * s->devices;
	return clock_now_ns() >= s->end_ns;
}

/* flow, retain, devices */
static void run_timed(struct source *s)
{
	while (!source_done(s))
		if (!work_source(s))
			side_wait(&s->side, until_next(s), work_source, s);
}

static void run_latency(struct source *s)
{
	const struct config *c = s->side.config;

	for (unsigned i = 0; i < c->count; i++) {
		s->wanted++;
		while (s->side.shared->landed < i + 1)
			if (!work_source(s))
				side_wait(&s->side, -1, work_source, s);
		if (c->gap_us)
			usleep(c->gap_us);
	}
}

static void add_sample(struct shared *shared, uint64_t ns)
{
	uint32_t i = shared->samples++;

	if (i < SIDES_SAMPLES)
		shared->sample[i] = ns;
}

static bool work_room(void *ctx)
{
	struct source *s = ctx;

	return work_source(s) || side_room(&s->side, 0) == s->side.config->sink_blocks;
}

static bool hear_release(void *ctx)
{
	struct source *s = ctx;

	return work_source(s) || s->side.shared->landed * s->side.config->sink_blocks >= s->sent;
}

/* All is full; until the source knows that all is free.  The status engine has to ask: its time
 * begins there.  For others it begins when the sink begins to release. */
static void run_sync(struct source *s)
{
	const struct config *c = s->side.config;
	bool asks = c->ops == &engine_status;
	uint64_t from = 0;

	for (unsigned i = 0; i < c->count; i++) {
		s->wanted += c->sink_blocks;
		while (s->sent < s->wanted)
			if (!work_source(s))
				side_wait(&s->side, -1, work_source, s);
		while (asks && !hear_release(s))
			side_wait(&s->side, -1, hear_release, s);
		while (asks && s->side.shared->landed < i + 1)
			if (!hear_release(s))
				side_wait(&s->side, -1, hear_release, s);
		if (asks) {
			from = clock_now_ns();
			side_room(&s->side, 1);
		}
		while (side_room(&s->side, 0) < c->sink_blocks)
			if (!work_room(s))
				side_wait(&s->side, -1, work_room, s);
		add_sample(s->side.shared,
			clock_now_ns() - (asks ? from : s->side.shared->release_ns));
		/* the sink has rung, or is about to */
		while (s->side.shared->landed < i + 1)
			sched_yield();
	}
}

static void run_source(void *ctx)
{
	struct source *s = ctx;
	const struct config *c = s->side.config;

	side_begin(&s->side);
	if (is(c, "latency"))
		run_latency(s);
	else if (is(c, "sync"))
		run_sync(s);
	else
		run_timed(s);
	finish_source(s);
	side_close(&s->side);
}

static void source_main(const struct config *c)
{
	struct fabric *fabric = sides_fabric(c);
	struct source *s = calloc(c->sessions, sizeof *s);
	struct worker *workers = calloc(c->sessions, sizeof *workers);
	uint8_t *frame = malloc(c->size);
	struct effort before;
	uint64_t start;

	if (!s || !workers || !frame)
		die("memory", ENOMEM);
	memset(frame, 0x5a, c->size);
	for (unsigned i = 0; i < c->sessions; i++)
		side_open_source(&s[i].side, c, sides_connect(c, fabric, i), i);
	before = effort_now();
	/* cameras begin together, a moment from now */
	start = clock_now_ns() + (is(c, "devices") ? 20 * NS_PER_MS : 0);
	c->shared->start_ns = start;
	for (unsigned i = 0; i < c->sessions; i++) {
		s[i].start_ns = start;
		s[i].end_ns = is(c, "devices") || is(c, "latency") || is(c, "sync")
				      ? 0
				      : start + c->ms * NS_PER_MS;
		s[i].ask = !is(c, "sync");
		s[i].frame = frame;
		s[i].devices = c->devices / c->sessions;
		s[i].first_device = i * s[i].devices;
		if (c->sessions > 1) { /* one bell cannot be shared */
			s[i].side.wake_fd = -1;
			must("thread", worker_start(&workers[i], "source", run_source, &s[i]));
		}
	}
	if (c->sessions == 1)
		run_source(&s[0]);
	else
		for (unsigned i = 0; i < c->sessions; i++)
			worker_stop(&workers[i]);
	c->shared->source_effort = effort_since(before);
	for (unsigned i = 0; i < c->sessions; i++)
		link_free(s[i].side.link);
	if (!c->loop)
		fabric_close(fabric);
	free(s);
	free(workers);
	free(frame);
}

/* ---- sink ---- */

struct sink {
	struct side side; /* first */
	struct link *link;
	unsigned session;
	const struct config *config;
	struct worker worker;
	_Atomic bool opened;
	uint64_t landed;
	struct block **held; /* sync: all that landed */
	uint32_t held_count;
	struct block *kept; /* retain */
	bool kept_once;
};

static void land_flow(struct sink *s, struct block *b, const struct transfer_block *h, uint64_t now)
{
	const struct config *c = s->config;
	struct shared *shared = c->shared;
	uint64_t since = now - shared->start_ns;

	if (is(c, "retain")) {
		if (since / BIN_NS < SIDES_SAMPLES)
			shared->sample[since / BIN_NS] += c->size;
		if (since >= RETAIN_FROM_NS && !s->kept_once) {
			s->kept = b;
			s->kept_once = true;
			engine_sink_retain(s->side.to, b);
			return;
		}
	} else if (is(c, "devices")) {
		uint64_t at = (uint64_t)h->sequence * c->devices + h->session - 1;

		if (at < SIDES_SAMPLES)
			shared->sample[at] = now;
	}
	release(&s->side, b);
}

static void land(struct sink *s, struct block *b, uint64_t now)
{
	struct transfer_block header;
	struct shared *shared = s->config->shared;

	check_stamp(&s->side, b, &header);
	s->landed++;
	if (is(s->config, "sync")) {
		s->held[s->held_count++] = b;
	} else if (is(s->config, "latency")) {
		add_sample(shared, now - shared->sent_ns);
		release(&s->side, b);
		must("flush", engine_sink_flush(s->side.to));
		shared->landed++;
		ring(s->config->to_source);
	} else {
		land_flow(s, b, &header, now);
	}
}

/* sync: all are full, and the source has settled down; they are all given back */
static void release_all(struct sink *s)
{
	struct shared *shared = s->config->shared;
	uint64_t from;

	usleep(300);
	from = clock_now_ns();
	shared->release_ns = from;
	for (uint32_t i = 0; i < s->held_count; i++)
		release(&s->side, s->held[i]);
	must("flush", engine_sink_flush(s->side.to));
	if (shared->landed < SIDES_SAMPLES)
		shared->cost[shared->landed] = clock_now_ns() - from;
	s->held_count = 0;
	shared->landed++;
	ring(s->config->to_source);
}

static bool work_sink(void *ctx)
{
	struct sink *s = ctx;
	struct block *done[32];
	int n = s->side.to->ops->poll(s->side.to, done, 32);
	uint64_t now;

	must("poll", n);
	take_frames(&s->side);
	now = n || s->kept ? clock_now_ns() : 0;
	for (int i = 0; i < n; i++)
		land(s, done[i], now);
	if (n)
		s->config->shared->last_ns = now;
	if (s->kept && now - s->config->shared->start_ns >= RETAIN_UNTIL_NS) {
		release(&s->side, s->kept);
		s->kept = NULL;
	}
	if (s->held_count && s->held_count == s->config->sink_blocks)
		release_all(s);
	must("flush", engine_sink_flush(s->side.to));
	return n > 0 || (s->side.over && s->landed == s->side.total);
}

static int64_t until_release(const struct sink *s)
{
	uint64_t now = clock_now_ns(), until = s->config->shared->start_ns + RETAIN_UNTIL_NS;

	return !s->kept ? -1 : until > now ? (int64_t)(until - now) : 0;
}

static void run_sink(void *ctx)
{
	struct sink *s = ctx;

	side_open_sink(&s->side, s->config, s->link, s->session);
	s->opened = true;
	side_begin(&s->side);
	while (!s->side.over || s->landed < s->side.total)
		if (!work_sink(s))
			side_wait(&s->side, until_release(s), work_sink, s);
	engine_sink_revoke(s->side.to);
	s->config->shared->blocks += s->landed;
	tell_complete(&s->side, s->landed);
	/* a source that has it already may have left */
	control_flush(link_control(s->link), SIDES_MS);
	side_close(&s->side);
}

static void sink_main(void *ctx)
{
	const struct config *c = ctx;
	struct fabric *fabric = sides_fabric(c);
	struct sink *s = calloc(c->sessions, sizeof *s);
	struct acceptor acceptor;
	struct effort before;

	if (!s)
		die("memory", ENOMEM);
	acceptor_start(&acceptor, c, fabric);
	for (unsigned i = 0; i < c->sessions; i++) {
		await("a session", c->shared->meetings[i].linked);
		s[i].config = c;
		s[i].session = i;
		s[i].link = acceptor.links[i];
		s[i].held = calloc(c->sink_blocks, sizeof(struct block *));
		if (!s[i].held)
			die("memory", ENOMEM);
		must("thread", worker_start(&s[i].worker, "sink", run_sink, &s[i]));
		await("a side", s[i].opened);
	}
	before = effort_now();
	for (unsigned i = 0; i < c->sessions; i++)
		worker_stop(&s[i].worker);
	c->shared->sink_effort = effort_since(before);
	/* what closes the connection may overtake the last frame */
	while (c->shared->heard < c->sessions)
		usleep(200);
	acceptor_stop(&acceptor);
	if (!c->loop)
		fabric_close(fabric);
	for (unsigned i = 0; i < c->sessions; i++)
		free(s[i].held);
	free(s);
}

/* ---- the result ---- */

static void print_usage(const char *name, const struct config *c, const struct usage *of,
	const struct effort *effort)
{
	struct usage sum = {0};

	for (unsigned i = 0; i < c->sessions; i++) {
		sum.thread_ns += of[i].thread_ns;
		sum.frames += of[i].frames;
		sum.starved += of[i].starved;
		sum.pool_bytes += of[i].pool_bytes;
		sum.requests.writes += of[i].requests.writes;
		sum.requests.sends += of[i].requests.sends;
		sum.requests.reads += of[i].requests.reads;
		sum.requests.signalled += of[i].requests.signalled;
		sum.requests.receives += of[i].requests.receives;
		sum.requests.send_queue += of[i].requests.send_queue;
		sum.requests.receive_queue += of[i].requests.receive_queue;
		/* the sessions end one after another: the first has seen them all */
		if (of[i].rss_bytes > sum.rss_bytes)
			sum.rss_bytes = of[i].rss_bytes;
		if (of[i].threads > sum.threads)
			sum.threads = of[i].threads;
	}
	printf(",\"%s\":{\"cpu_ns\":%llu,\"sleeps\":%llu,\"thread_ns\":%llu,\"frames\":%llu,"
	       "\"starved\":%llu,\"pool\":%llu,"
	       "\"writes\":%llu,\"sends\":%llu,\"reads\":%llu,\"signalled\":%llu,\"receives\":%llu,"
	       "\"send_queue\":%u,\"receive_queue\":%u,\"rss\":%llu,\"threads\":%llu}",
		name, (unsigned long long)effort->cpu_ns, (unsigned long long)effort->sleeps,
		(unsigned long long)sum.thread_ns, (unsigned long long)sum.frames,
		(unsigned long long)sum.starved, (unsigned long long)sum.pool_bytes,
		(unsigned long long)sum.requests.writes, (unsigned long long)sum.requests.sends,
		(unsigned long long)sum.requests.reads, (unsigned long long)sum.requests.signalled,
		(unsigned long long)sum.requests.receives, sum.requests.send_queue,
		sum.requests.receive_queue, (unsigned long long)sum.rss_bytes,
		(unsigned long long)sum.threads);
}

static void print_list(const char *name, const uint64_t *of, size_t count, uint64_t less)
{
	printf(",\"%s\":[", name);
	for (size_t i = 0; i < count && i < SIDES_SAMPLES; i++)
		printf("%s%lld", i ? "," : "", (long long)(of[i] - less));
	printf("]");
}

static void print_result(const struct config *c)
{
	struct shared *sh = c->shared;

	printf("{\"what\":\"%s\",\"engine\":\"%s\",\"fabric\":\"%s\",\"size\":%u,"
	       "\"source_blocks\":%u,\"sink_blocks\":%u,\"sessions\":%u,\"imm\":%s,\"torn\":%llu,"
	       "\"blocks\":%llu,\"ns\":%llu",
		c->what, c->ops->name, c->fabric, c->size, c->source_blocks, c->sink_blocks,
		c->sessions, sh->meetings[0].imm ? "true" : "false", (unsigned long long)sh->torn,
		(unsigned long long)sh->blocks, (unsigned long long)(sh->last_ns - sh->start_ns));
	print_usage("source", c, sh->source, &sh->source_effort);
	print_usage("sink", c, sh->sink, &sh->sink_effort);
	if (is(c, "latency") || is(c, "sync"))
		print_list("samples", sh->sample, sh->samples, 0);
	if (is(c, "sync"))
		print_list("cost", sh->cost, c->count, 0);
	if (is(c, "retain"))
		print_list("bins", sh->sample, RETAIN_MS * NS_PER_MS / BIN_NS, 0);
	if (is(c, "devices")) {
		print_list(
			"landed", sh->sample, (size_t)device_ticks(c) * c->devices, sh->start_ns);
		print_list("posted", sh->cost, (size_t)device_ticks(c) * c->devices, sh->start_ns);
	}
	printf("}\n");
}

/* ---- main ---- */

static unsigned number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text || n > UINT32_MAX) {
		fprintf(stderr, "engine_bench: not a number: %s\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static void usage(void)
{
	fprintf(stderr, "usage: engine_bench flow|latency|sync|retain|devices --engine NAME "
			"[--fabric NAME] [--host IP]\n"
			"  [--size BYTES] [--source-blocks N] [--sink-blocks N] [--channels N] "
			"[--sessions N]\n"
			"  [--devices N] [--count N] [--gap-us N] [--ms N]\n");
	exit(2);
}

static void parse(struct config *c, int argc, char **argv)
{
	static const struct option options[] = {
		{"engine", required_argument, NULL, 'e'},
		{"fabric", required_argument, NULL, 'f'},
		{"host", required_argument, NULL, 'h'},
		{"size", required_argument, NULL, 's'},
		{"source-blocks", required_argument, NULL, 'b'},
		{"sink-blocks", required_argument, NULL, 'B'},
		{"channels", required_argument, NULL, 'c'},
		{"sessions", required_argument, NULL, 'S'},
		{"devices", required_argument, NULL, 'd'},
		{"count", required_argument, NULL, 'n'},
		{"gap-us", required_argument, NULL, 'g'},
		{"ms", required_argument, NULL, 'm'},
		{0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 'e':
			c->ops = engine_by_name(optarg);
			break;
		case 'f':
			c->fabric = optarg;
			break;
		case 'h':
			c->host = optarg;
			break;
		case 's':
			c->size = number(optarg);
			break;
		case 'b':
			c->source_blocks = number(optarg);
			break;
		case 'B':
			c->sink_blocks = number(optarg);
			break;
		case 'c':
			c->channels = number(optarg);
			break;
		case 'S':
			c->sessions = number(optarg);
			break;
		case 'd':
			c->devices = number(optarg);
			break;
		case 'n':
			c->count = number(optarg);
			break;
		case 'g':
			c->gap_us = number(optarg);
			break;
		case 'm':
			c->ms = number(optarg);
			break;
		default:
			usage();
		}
	if (optind + 1 != argc || !c->ops)
		usage();
	c->what = argv[optind];
	if (!c->size)
		c->size = is(c, "devices") ? FRAME_BYTES : SIZE_DEFAULT;
	if (is(c, "retain"))
		c->ms = RETAIN_MS;
	if ((!is(c, "flow") && !is(c, "latency") && !is(c, "sync") && !is(c, "retain") &&
		    !is(c, "devices")) ||
		c->size < 8 || c->size > BLOCK_BYTES_MAX || !c->source_blocks ||
		c->sink_blocks < 2 || !c->channels || !c->sessions ||
		c->sessions > SIDES_SESSIONS || c->devices % c->sessions ||
		(is(c, "devices") && (uint64_t)device_ticks(c) * c->devices > SIDES_SAMPLES) ||
		c->count > SIDES_SAMPLES || (c->sessions > 1 && !is(c, "devices")))
		usage();
}

/* Both sides in this process. */
static void run_loop(struct config *c)
{
	struct worker sink = {0};

	must("loop", loop_open(NULL, &c->loop));
	must("thread", worker_start(&sink, "sink-main", sink_main, c));
	source_main(c);
	worker_stop(&sink);
	fabric_close(c->loop);
}

static void run_processes(struct config *c)
{
	pid_t child = fork();
	int status;

	must("fork", child < 0 ? -errno : 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(WATCHDOG_S);
		sink_main(c);
		_exit(0);
	}
	source_main(c);
	if (waitpid(child, &status, 0) != child || status)
		die("the sink's process", EPIPE);
}

int main(int argc, char **argv)
{
	struct config c = {
		.fabric = "soft",
		.host = "127.0.0.1",
		.source_blocks = 3,
		.sink_blocks = 3,
		.channels = 1,
		.sessions = 1,
		.devices = 12,
		.count = 100,
		.ms = 500,
	};

	log_setup("engine_bench", LOG_LEVEL_WARNING);
	parse(&c, argc, argv);
	c.shared = mmap(
		NULL, sizeof *c.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	c.to_source = eventfd(0, EFD_NONBLOCK);
	if (c.shared == MAP_FAILED || c.to_source < 0)
		die("memory", errno);
	contexts_make(&c.contexts);
	alarm(WATCHDOG_S);
	if (!strcmp(c.fabric, "loop"))
		run_loop(&c);
	else
		run_processes(&c);
	print_result(&c);
	contexts_free(&c.contexts);
	return c.shared->torn ? 1 : 0;
}
