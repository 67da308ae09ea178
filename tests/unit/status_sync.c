/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/status_sync: when the source of the engine `status` reads, played against sinks of all
 * speeds. */
#include "../harness.h"

#include "engine/status/status_sync.h"

#define DEPTH 64u

static void reads_when_it_runs_out(void)
{
	struct status_sync s;

	status_sync_init(&s, DEPTH, 1);
	CHECK(!status_sync_due(&s, 0, DEPTH));
	CHECK(!status_sync_due(&s, 0, 1));
	CHECK(status_sync_due(&s, 0, 0));
}

static void a_wait_makes_it_read_earlier_and_left_slots_later(void)
{
	struct status_sync s;

	status_sync_init(&s, DEPTH, 1);
	for (unsigned i = 0; i < 20; i++) {
		status_sync_asked(&s);
		status_sync_waits(&s);
		status_sync_answered(&s, i, 0, DEPTH, 0);
	}
	CHECK_EQ(s.lead, DEPTH / 2); /* and no more */
	CHECK(status_sync_due(&s, 100, DEPTH / 2));
	CHECK(!status_sync_due(&s, 100, DEPTH / 2 + 1));
	for (unsigned i = 0; i < DEPTH; i++) {
		status_sync_asked(&s);
		status_sync_answered(&s, i, 2, DEPTH / 2, 0);
	}
	CHECK_EQ(s.lead, 0);
	/* an answer that brings nothing says nothing about the lead */
	status_sync_asked(&s);
	status_sync_waits(&s);
	status_sync_answered(&s, 0, 0, 0, 0);
	CHECK_EQ(s.lead, 0);
}

static void it_pauses_while_answers_bring_little(void)
{
	struct status_sync s;
	uint64_t pause, now = 1000000;

	status_sync_init(&s, DEPTH, 1);
	status_sync_answered(&s, now, 0, DEPTH / 2, 0);
	CHECK_EQ(s.pause_ns, 0);
	status_sync_answered(&s, now, 0, 0, 0);
	CHECK(!status_sync_due(&s, now + STATUS_SYNC_PAUSE_MIN_NS - 1, 0));
	CHECK(status_sync_due(&s, now + STATUS_SYNC_PAUSE_MIN_NS, 0));
	CHECK_EQ(s.pause_ns, STATUS_SYNC_PAUSE_MIN_NS);
	/* a long stall is one answer that came too early, and asked about in steps of its own
	 * length */
	for (unsigned i = 0; i < 100; i++) {
		now = s.next_ns;
		status_sync_answered(&s, now, 0, 0, 0);
		CHECK(s.next_ns - now <= STATUS_SYNC_PAUSE_MAX_NS);
		CHECK(s.next_ns - now <= (now - s.since_ns) / 4 + STATUS_SYNC_PAUSE_MIN_NS);
	}
	CHECK_EQ(s.pause_ns, STATUS_SYNC_PAUSE_MIN_NS);
	/* a quarter after a while: the rest of the half will take as long */
	s.since_ns = now;
	status_sync_answered(&s, now + 80000, 0, DEPTH / 4, 0);
	CHECK_EQ(s.next_ns, now + 160000);
	status_sync_answered(&s, now + 160000, 0, DEPTH / 4, 0);
	CHECK(!s.early);
	CHECK_EQ(s.next_ns, now + 160000 + s.pause_ns);
	/* in time, again and again: a little sooner each time */
	pause = s.pause_ns;
	status_sync_answered(&s, now + 200000, 0, DEPTH / 2, 0);
	CHECK(s.pause_ns < pause && s.pause_ns > pause / 2);
	/* all that can come: the sink has run dry */
	pause = s.pause_ns;
	status_sync_answered(&s, now + 300000, 0, DEPTH, 0);
	CHECK_EQ(s.pause_ns, pause / 2);
}

static void kept_slots_are_not_waited_for(void)
{
	struct status_sync s;

	status_sync_init(&s, 4, 1);
	status_sync_answered(&s, 0, 0, 1, 3); /* all that can come back */
	CHECK_EQ(s.pause_ns, 0);
	status_sync_answered(&s, 0, 0, 0, 4);
	CHECK_EQ(s.pause_ns, STATUS_SYNC_PAUSE_MIN_NS);
}

static void a_second_read_is_left_out_where_it_brings_nothing(void)
{
	struct status_sync s;
	unsigned seconds = 0;

	status_sync_init(&s, DEPTH, 1);
	for (unsigned i = 0; i < 100; i++) { /* it brings something now and then */
		status_sync_asked(&s);
		CHECK(status_sync_second(&s));
		status_sync_answered(&s, i, 0, DEPTH / 2, 0);
		status_sync_second_answered(&s, i, 0, i % (STATUS_SYNC_VAIN + 1) ? 1 : 2, 0);
	}
	for (unsigned i = 0; i < 1000; i++) { /* never */
		struct status_sync before;

		status_sync_asked(&s);
		status_sync_answered(&s, i, 0, DEPTH / 2, 0);
		if (!status_sync_second(&s))
			continue;
		seconds++;
		before = s;
		status_sync_second_answered(&s, i, 0, 0, 0);
		CHECK(s.lead == before.lead && s.pause_ns == before.pause_ns &&
			s.next_ns == before.next_ns);
	}
	CHECK(seconds >= 1000 / 64 && seconds <= 1000 / 64 + STATUS_SYNC_VAIN_MAX);
	while (!status_sync_second(&s)) /* and again */
		status_sync_asked(&s);
	status_sync_second_answered(&s, 0, 0, 2, 0);
	status_sync_asked(&s);
	CHECK(status_sync_second(&s));
}

/* A sink that empties a slot each `drain_ns`, a source that is always ahead, an answer after
 * `rtt_ns`: how many READs for how many slots, and for how long the sink had nothing to do. */
static void play(uint64_t drain_ns, uint64_t rtt_ns, double *reads_a_window, double *idle)
{
	const unsigned windows = 200;
	struct status_sync s;
	uint64_t now = 0, emptied_ns = 0, idle_ns = 0, started = 0;
	uint64_t sent = 0, emptied = 0, known = 0, reads = 0;

	status_sync_init(&s, DEPTH, 1);
	while (sent < (uint64_t)windows * DEPTH) {
		uint64_t free = DEPTH - (sent - known);
		bool answered = false;

		if (sent == windows * DEPTH / 2) { /* it has had time to learn */
			reads = idle_ns = 0;
			started = now;
		}
		if (free) {
			if (sent == emptied && emptied_ns < now) { /* the sink had run out */
				idle_ns += now - emptied_ns;
				emptied_ns = now;
			}
			sent++;
			now += drain_ns / 10; /* the wire is faster than the sink */
		} else if (!status_sync_due(&s, now, 0)) {
			now = s.next_ns;
		} else {
			reads++;
			status_sync_asked(&s);
			status_sync_waits(&s);
			now += rtt_ns;
			answered = true;
		}
		while (emptied < sent && emptied_ns + drain_ns <= now) {
			emptied++;
			emptied_ns += drain_ns;
		}
		if (!answered)
			continue;
		status_sync_answered(&s, now, 0, (uint32_t)(emptied - known), 0);
		known = emptied;
	}
	*reads_a_window = (double)reads / (windows / 2);
	*idle = (double)idle_ns / (double)(now - started);
}

static void few_reads_and_a_busy_sink(void)
{
	static const uint64_t drains[] = {1000, 10000, 100000, 300000};

	for (unsigned i = 0; i < sizeof drains / sizeof *drains; i++) {
		double reads, idle;

		play(drains[i], 5000, &reads, &idle);
		printf("# a slot each %" PRIu64
		       " us: %.1f READs a window, the sink idle for %.1f %%\n",
			drains[i] / 1000, reads, 100 * idle);
		CHECK(reads <= 3.5);
		CHECK(idle <= 0.05);
	}
}

HARNESS_MAIN({"reads when it runs out", reads_when_it_runs_out},
	{"a wait makes it read earlier, slots that are left later",
		a_wait_makes_it_read_earlier_and_left_slots_later},
	{"it pauses while answers bring little", it_pauses_while_answers_bring_little},
	{"slots that the sink keeps are not waited for", kept_slots_are_not_waited_for},
	{"a second READ is left out where it brings nothing",
		a_second_read_is_left_out_where_it_brings_nothing},
	{"few READs, and a busy sink", few_reads_and_a_busy_sink})
