/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/admission_sim: what admission does to latency, on the daemon's own module
 * (rftpd/jobs/admission), in simulated time.
 *
 * The workload is the one of the paper on priority-based RDMA transmission control: twelve sources
 * share a bottleneck of 20 Gb/s.  Events come as Poisson processes: of one source critical ones of
 * one frame, of eleven tolerant ones of 15 frames.  Each is sent at 10 Gb/s, once it is admitted.
 * The same seeded trace goes through every way of deciding who sends:
 *
 *   fifo      one class (the paper's RDMA-TCM)
 *   priority  critical before tolerant (its P-RDMA-TCM)
 *   edf       the same with the classes' deadlines
 *   spq       nobody is asked: the sources send, one event after the other,  at the line's rate
 * into a switch with strict priorities and a finite buffer, and go back to what was dropped
 *
 * Prints CSV: one row for each way, turn, reading of "about 10 % critical" (of the events, or of
 * the bytes), load, and class.
 *
 * Arguments: seconds of simulated time (default 600), seed (default 1).
 */
#include "rftpd/jobs/admission.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S 1e9
#define SOURCES 12u
#define FRAME (3840.0 * 2160 * 3)
#define FRAMES 15.0
#define BANDWIDTH 2.5e9 /* 20 Gb/s */
#define SHARE 1.25e9
#define TURN 25000000ull
/* SPQ: what the paper does not say of its switch and adapters is chosen here */
#define LINE 12.5e9 /* 100 Gb/s: what an adapter sends at */
#define BUFFER 16e6 /* bytes of the port, for each class */
#define RTT 100e-6
#define STEP 20e-6
#define PACKET 4096.0
#define SPQ_AFTER_S 10 /* what has not arrived so long after the last event does not count */
#define RETRIES_S 0.47 /* 7 time-outs of 67 ms without progress, and the connection is in error */

enum way { FIFO, PRIORITY, EDF, SPQ, WAYS };
static const char *const way_names[] = {"fifo", "priority", "edf", "spq"};
static const double loads[] = {0.09, 0.33, 0.5, 0.66, 0.8, 0.9};

/* ---- the trace ---- */

struct event {
	double at;          /* generated, s */
	double bytes, done; /* done: s; 0: never */
	unsigned source;
};

struct trace {
	struct event *events;
	size_t count, room;
	double seconds;
};

static double random_unit(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static void add_event(struct trace *t, double at, double bytes, unsigned source)
{
	if (t->count == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->events = realloc(t->events, t->room * sizeof *t->events);
		if (!t->events)
			abort();
	}
	t->events[t->count++] = (struct event){.at = at, .bytes = bytes, .source = source};
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct event *)a)->at, y = ((const struct event *)b)->at;

	return x < y ? -1 : x > y;
}

/* `of_bytes`: a tenth of the bytes is critical, or of the events. */
static void make_trace(struct trace *t, double load, bool of_bytes, uint64_t seed)
{
	double all = load * BANDWIDTH, critical, tolerant; /* events a second */

	if (of_bytes) {
		critical = 0.1 * all / FRAME;
		tolerant = 0.9 * all / (FRAMES * FRAME);
	} else {
		double events = all / (0.1 * FRAME + 0.9 * FRAMES * FRAME);

		critical = 0.1 * events;
		tolerant = 0.9 * events;
	}
	t->count = 0;
	for (unsigned s = 0; s < SOURCES; s++) {
		double rate = s ? tolerant / (SOURCES - 1) : critical;
		uint64_t state = seed * 1000003 + s;

		for (double at = 0;;) {
			at -= log(1 - random_unit(&state)) / rate;
			if (at >= t->seconds)
				break;
			add_event(t, at, s ? FRAMES * FRAME : FRAME, s);
		}
	}
	qsort(t->events, t->count, sizeof *t->events, by_time);
}

/* ---- admission ---- */

struct sender {             /* of one event */
	struct claim claim; /* first */
	struct event *event;
	double left, moved;      /* bytes: still to move; before this turn */
	double began, turn_ends; /* s, of its turn */
};

/* Those whose turns run: as many as shares fit into the bandwidth. */
#define RUNNING_MAX 2u
static struct sender *running[RUNNING_MAX];

static double now_s;

static struct sender *of(const struct claim *c)
{
	return (struct sender *)c;
}

static uint64_t now_ns(void)
{
	return (uint64_t)(now_s * S) + 1000000000;
}

static double turn_bytes(const struct sender *s)
{
	double turn =
		s->claim.turn_bytes == ADMISSION_ENDLESS ? INFINITY : (double)s->claim.turn_bytes;

	return s->left < turn ? s->left : turn;
}

static void granted(struct claim *c)
{
	unsigned i = 0;

	while (running[i]) /* there is room, or more was granted than there is */
		if (++i == RUNNING_MAX)
			abort();
	running[i] = of(c);
	of(c)->began = now_s;
	of(c)->turn_ends = now_s + turn_bytes(of(c)) / (double)c->rate;
}

static void changed(struct claim *c)
{
	fprintf(stderr, "%s: a turn was lent, which none of these should be\n", c->name);
	exit(1);
}

static void queued(struct claim *c, unsigned position, uint64_t wait_ns)
{
	(void)c, (void)position, (void)wait_ns;
}

static uint64_t moved(const struct claim *c)
{
	const struct sender *s = of(c);
	bool runs = false;

	for (unsigned i = 0; i < RUNNING_MAX; i++)
		runs |= running[i] == s;
	return (uint64_t)(s->moved + (runs ? (now_s - s->began) * (double)c->rate : 0));
}

static const struct claim_ops ops = {
	.granted = granted, .changed = changed, .queued = queued, .moved = moved};

static void ask(struct admission *a, struct sender *s, struct event *e, enum way way)
{
	bool critical = !e->source;

	*s = (struct sender){.event = e, .left = e->bytes};
	s->claim.ops = &ops;
	s->claim.rank = way != FIFO && !critical;
	s->claim.share = (uint64_t)SHARE;
	s->claim.bytes = (uint64_t)e->bytes;
	s->claim.deadline_ns = way == EDF
				       ? (uint64_t)((e->at + (critical ? 0.1 : 1)) * S) + 1000000000
				       : ADMISSION_NEVER;
	s->claim.expires_ns = ADMISSION_NEVER;
	if (admission_add(a, &s->claim, now_ns()))
		abort();
}

static void end_turn(struct admission *a, struct sender **slot)
{
	struct sender *s = *slot;
	double bytes = turn_bytes(s);

	*slot = NULL;
	s->moved += bytes;
	s->left -= bytes;
	if (s->left > 0.5) {
		admission_again(a, &s->claim, now_ns());
		return;
	}
	admission_release(a, &s->claim);
	s->event->done = now_s + RTT;
}

static void run_admission(struct trace *t, enum way way, uint64_t turn)
{
	const struct admission_limits limits = {(uint64_t)BANDWIDTH, turn, 0, UINT32_MAX};
	struct sender *senders = calloc(t->count + 1, sizeof *senders);
	struct admission a;
	size_t next = 0;

	if (!senders)
		abort();
	admission_init(&a, &limits);
	for (;;) {
		struct sender **first = NULL;

		for (unsigned i = 0; i < RUNNING_MAX; i++)
			if (running[i] && (!first || running[i]->turn_ends < (*first)->turn_ends))
				first = &running[i];
		if (next < t->count && (!first || t->events[next].at <= (*first)->turn_ends)) {
			now_s = t->events[next].at;
			ask(&a, &senders[next], &t->events[next], way);
			next++;
		} else if (first) {
			now_s = (*first)->turn_ends;
			end_turn(&a, first);
		} else {
			break;
		}
		admission_run(&a, now_ns());
	}
	free(senders);
}

/* ---- strict priorities in the switch ---- */

struct blind {
	size_t *queue;
	size_t head, tail;
	double left;     /* bytes that are not in order at the sink */
	double useless;  /* until then what arrives is behind something that was dropped; s */
	double progress; /* the last time that it got on; s */
};

static double run_spq(struct trace *t)
{
	struct blind blind[SOURCES];
	double buffered[2] = {0, 0}, dropped = 0;
	size_t next = 0, open = 0;

	memset(blind, 0, sizeof blind);
	for (unsigned i = 0; i < SOURCES; i++)
		if (!(blind[i].queue = calloc(t->count + 1, sizeof(size_t))))
			abort();
	for (now_s = 0; (next < t->count || open) && now_s < t->seconds + SPQ_AFTER_S;
		now_s += STEP) {
		double wanted[2] = {0, 0}, room[2], out = BANDWIDTH * STEP;

		for (; next < t->count && t->events[next].at <= now_s; next++, open++) {
			struct blind *b = &blind[t->events[next].source];

			b->queue[b->tail++] = next;
			if (b->tail - b->head == 1) {
				b->left = t->events[next].bytes;
				b->progress = now_s;
			}
		}
		for (unsigned i = 0; i < SOURCES; i++)
			if (blind[i].head < blind[i].tail)
				wanted[i > 0] += fmin(blind[i].left, LINE * STEP);
		for (unsigned q = 0; q < 2; q++) {
			double served = fmin(out, buffered[q] + wanted[q]);

			room[q] = BUFFER - buffered[q] + served;
			out -= served;
			buffered[q] += fmin(wanted[q], room[q]) - served;
		}
		for (unsigned i = 0; i < SOURCES; i++) {
			struct blind *b = &blind[i];
			unsigned q = i > 0;
			double sent, in;

			if (b->head == b->tail)
				continue;
			sent = fmin(b->left, LINE * STEP);
			in = wanted[q] > room[q] ? sent * room[q] / wanted[q] : sent;
			dropped += sent - in;
			if (now_s >= b->useless) {
				b->left -= in;
				if (in > 0)
					b->progress = now_s;
			}
			if (sent - in > 1 && now_s >= b->useless)
				b->useless = now_s + RTT;
			if (b->left < 1 || now_s - b->progress > RETRIES_S) {
				struct event *e = &t->events[b->queue[b->head++]];

				/* what is before it in the buffer has to leave */
				e->done = b->left < 1 ? now_s + buffered[q] / BANDWIDTH + RTT : 0;
				open--;
				b->useless = 0;
				b->progress = now_s;
				if (b->head < b->tail)
					b->left = t->events[b->queue[b->head]].bytes;
			}
		}
	}
	for (unsigned i = 0; i < SOURCES; i++)
		free(blind[i].queue);
	return dropped;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_class(const struct trace *t, bool critical, const char *head, double dropped)
{
	double *latency = calloc(t->count + 1, sizeof *latency), limit = critical ? 0.1 : 1;
	double bytes = 0, in_time = 0;
	size_t n = 0, failed = 0;

	if (!latency)
		abort();
	for (size_t i = 0; i < t->count; i++) {
		const struct event *e = &t->events[i];

		if (!e->source != critical)
			continue;
		bytes += e->bytes;
		failed += !e->done;
		latency[n++] = e->done ? e->done - e->at : INFINITY;
		in_time += e->done && e->done - e->at <= limit ? e->bytes : 0;
	}
	qsort(latency, n, sizeof *latency, by_value);
	printf("%s,%s,%zu,%zu,%.3f,%.3f,%.4f,%.0f\n", head, critical ? "critical" : "tolerant", n,
		failed, n ? latency[n / 2] * 1e3 : 0, n ? latency[(n * 95) / 100] * 1e3 : 0,
		bytes > 0 ? in_time / bytes : 1, dropped / PACKET);
	free(latency);
}

int main(int argc, char **argv)
{
	struct trace t = {.seconds = argc > 1 ? atof(argv[1]) : 600};
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	printf("way,turn_bytes,ten_percent_of,load,class,events,failed,p50_ms,p95_ms,accepted,"
	       "dropped_packets\n");
	for (unsigned of_bytes = 0; of_bytes < 2; of_bytes++)
		for (unsigned l = 0; l < sizeof loads / sizeof *loads; l++)
			for (unsigned w = 0; w < 2 * WAYS - 1; w++) {
				enum way way = w % WAYS;
				uint64_t turn = w < WAYS ? TURN : ADMISSION_ENDLESS;
				double dropped = 0;
				char head[100];

				make_trace(&t, loads[l], of_bytes, seed);
				if (way == EDF && turn == ADMISSION_ENDLESS)
					continue; /* deadlines are in the order of arrival then */
				if (way == SPQ)
					dropped = run_spq(&t);
				else
					run_admission(&t, way, turn);
				snprintf(head, sizeof head, "%s,%s,%s,%.2f", way_names[way],
					way == SPQ ? ""
					: w < WAYS ? "25000000"
						   : "none",
					of_bytes ? "bytes" : "events", loads[l]);
				print_class(&t, true, head, dropped);
				print_class(&t, false, head, dropped);
			}
	free(t.events);
	return 0;
}
