/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/requests: requests on a fabric itself, as a line of JSON: how many a second, how long
 * one takes, and what they cost each end.  tests/bench/pull_requests.py runs many of them.
 *
 *     requests WHAT [options]
 *
 * WHAT is one of these:
 *
 * - write: the daemon's threads WRITE to the client's memory.  One-sided, started by the daemon.
 * - read: the client's threads READ.  One-sided, answered by the daemon.
 * - place: they WRITE, and with --flush READ behind it what lies there, unless a WRITE's completion
 *   says as much.  The same.
 * - reply: the client asks by SEND, the daemon answers with the data, by SEND.  Two-sided READ.
 * - store: the client sends the data by SEND, the daemon acknowledges by SEND.  Two-sided WRITE.
 * - put: the client WRITEs the data and says so by SEND; the daemon writes the result down, which
 *   the client READs.  One-sided WRITE, with work for the daemon, which sends nothing.
 *
 * --verify: who gets the data compares its checksum (of `place`, nobody looks).  --fsync DIR: who
 * gets it writes it to a file there and flushes that.  --copies N: the client copies the data N
 * times more.  Only here does anything cross without a checksum: in the programs nothing does.
 */
#include "tests/bench/requests.h"

#include "base/log.h"

#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>

#define WATCHDOG_S 120u

/* ---- the two processes ---- */

static void start_runners(struct runner *r, struct ends *ends, const struct config *c,
	const char *name, void (*run)(void *))
{
	for (unsigned i = 0; i < c->ends.threads; i++) {
		r[i].config = c;
		r[i].end = &ends->of[i];
		r[i].copy = calloc(1, c->ends.size);
		if (!r[i].copy)
			die("memory", ENOMEM);
		memset(r[i].copy, 0x5a, c->ends.size);
		open_file(&r[i], name);
		must("thread", worker_start(&r[i].worker, name, run, &r[i]));
	}
}

static void stop_runners(struct runner *r, const struct config *c)
{
	for (unsigned i = 0; i < c->ends.threads; i++) {
		worker_stop(&r[i].worker);
		free(r[i].copy);
		if (r[i].file >= 0)
			close(r[i].file);
	}
}

static void daemon_main(const struct config *c)
{
	static struct runner runners[ENDS_MAX];
	static struct ends ends;
	struct shared *shared = c->shared;
	struct ends_effort before;

	ends_open(&ends, &c->ends);
	ends_accept(&ends);
	for (unsigned i = 0; i < c->ends.threads; i++) {
		struct runner r = {.config = c};

		for (uint32_t k = 0; k < ends.of[i].count; k++)
			stamp(&r, end_slot(&ends.of[i], k), k);
	}
	if (c->what == WRITE)
		start_runners(runners, &ends, c, "daemon", run_starter);
	else if (c->what != READ && c->what != PLACE)
		start_runners(runners, &ends, c, "daemon", run_answerer);
	shared->daemon_ready = true;
	while (!shared->begun)
		usleep(100);
	before = ends_effort_now();
	if (c->what == WRITE)
		stop_runners(runners, c); /* they end by themselves */
	shared->daemon_done = true;
	while (!shared->over)
		usleep(500);
	shared->daemon = ends_effort_since(before);
	if (c->what != WRITE && c->what != READ && c->what != PLACE)
		stop_runners(runners, c);
	shared->daemon_stopped = true;
	ends_close(&ends);
}

static void client_main(const struct config *c)
{
	static struct runner runners[ENDS_MAX];
	static struct ends ends;
	struct shared *shared = c->shared;
	struct ends_effort before;

	ends_open(&ends, &c->ends);
	ends_connect(&ends);
	if (c->what != WRITE)
		start_runners(runners, &ends, c, "client", run_starter);
	while (!shared->daemon_ready)
		usleep(100);
	before = ends_effort_now();
	shared->start_ns = clock_now_ns();
	shared->end_ns = shared->start_ns + c->ms * NS_PER_MS;
	shared->begun = true;
	if (c->what == WRITE)
		while (!shared->daemon_done)
			usleep(500);
	else
		stop_runners(runners, c);
	shared->over = true;
	shared->client = ends_effort_since(before);
	while (!shared->daemon_stopped) /* else what it has yet to post finds no connection */
		usleep(500);
	ends_close(&ends);
}

/* ---- the result ---- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_result(const struct config *c)
{
	struct shared *s = c->shared;
	uint64_t *all = calloc((size_t)ENDS_MAX * SAMPLES, sizeof *all), count = 0;

	if (!all)
		die("memory", ENOMEM);
	for (unsigned i = 0; i < c->ends.threads; i++)
		for (uint32_t k = 0; k < s->samples[i] && k < SAMPLES; k++)
			all[count++] = s->sample[i][k];
	if (!count)
		die("no request came to its end", ETIMEDOUT);
	qsort(all, count, sizeof *all, compare);
	printf("{\"what\":\"%s\",\"fabric\":\"%s\",\"threads\":%u,\"depth\":%u,\"size\":%u,"
	       "\"verify\":%s,\"fsync\":%s,\"copies\":%u,\"requests\":%llu,\"ns\":%llu,"
	       "\"median_ns\":%llu,\"p95_ns\":%llu,\"result_reads\":%llu",
		what_names[c->what], c->ends.fabric, c->ends.threads, c->ends.depth, c->ends.size,
		c->verify ? "true" : "false", c->dir ? "true" : "false", c->copies,
		(unsigned long long)s->done, (unsigned long long)(s->last_ns - s->start_ns),
		(unsigned long long)all[count / 2], (unsigned long long)all[count * 95 / 100],
		(unsigned long long)s->looked);
	printf(",\"client_cpu_ns\":%llu,\"client_fabric_ns\":%llu,\"daemon_cpu_ns\":%llu,"
	       "\"daemon_fabric_ns\":%llu}\n",
		(unsigned long long)s->client.cpu_ns, (unsigned long long)s->client.fabric_ns,
		(unsigned long long)s->daemon.cpu_ns, (unsigned long long)s->daemon.fabric_ns);
	free(all);
}

/* ---- main ---- */

static unsigned number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text || n > UINT32_MAX) {
		fprintf(stderr, "requests: not a number: %s\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static void usage(void)
{
	fprintf(stderr,
		"usage: requests write|read|place|reply|store|put [--fabric NAME] [--host IP]\n"
		"  [--threads N] [--depth N] [--size BYTES] [--ms N] [--copies N] [--verify] "
		"[--flush] [--fsync DIR]\n");
	exit(2);
}

static void parse(struct config *c, int argc, char **argv)
{
	static const struct option options[] = {
		{"fabric", required_argument, NULL, 'f'},
		{"host", required_argument, NULL, 'h'},
		{"threads", required_argument, NULL, 't'},
		{"depth", required_argument, NULL, 'd'},
		{"size", required_argument, NULL, 's'},
		{"ms", required_argument, NULL, 'm'},
		{"copies", required_argument, NULL, 'c'},
		{"verify", no_argument, NULL, 'v'},
		{"flush", no_argument, NULL, 'F'},
		{"fsync", required_argument, NULL, 'S'},
		{0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 'f':
			c->ends.fabric = optarg;
			break;
		case 'h':
			c->ends.host = optarg;
			break;
		case 't':
			c->ends.threads = number(optarg);
			break;
		case 'd':
			c->ends.depth = number(optarg);
			break;
		case 's':
			c->ends.size = number(optarg);
			break;
		case 'm':
			c->ms = number(optarg);
			break;
		case 'c':
			c->copies = number(optarg);
			break;
		case 'v':
			c->verify = true;
			break;
		case 'F':
			c->flush = true;
			break;
		case 'S':
			c->dir = optarg;
			break;
		default:
			usage();
		}
	if (optind + 1 != argc)
		usage();
	while (c->what < WHATS && strcmp(argv[optind], what_names[c->what]) != 0)
		c->what++;
	if (c->what == WHATS || !c->ends.threads || c->ends.threads > ENDS_MAX || !c->ends.depth ||
		c->ends.depth > DEPTH_MAX || c->ends.size < ENDS_NOTE_BYTES ||
		c->ends.size > 64u << 20 || !c->ms || c->ms > WATCHDOG_S * 500)
		usage();
}

int main(int argc, char **argv)
{
	static struct config c = {
		.ends = {.fabric = "soft",
			.host = "127.0.0.1",
			.threads = 1,
			.depth = 1,
			.size = 64},
		.ms = 500,
	};
	pid_t child;
	int status;

	log_setup("requests", LOG_LEVEL_WARNING);
	parse(&c, argc, argv);
	c.shared = mmap(
		NULL, sizeof *c.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c.shared == MAP_FAILED)
		die("memory", errno);
	c.ends.port = &c.shared->port;
	c.ends.memory = c.shared->memory;
	c.ends.client_lands = c.what == REPLY;
	c.ends.daemon_lands = c.what == STORE;
	alarm(WATCHDOG_S);
	child = fork();
	must("fork", child < 0 ? -errno : 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(WATCHDOG_S);
		daemon_main(&c);
		_exit(0);
	}
	client_main(&c);
	if (waitpid(child, &status, 0) != child || status)
		die("the daemon's process", EPIPE);
	print_result(&c);
	return 0;
}
