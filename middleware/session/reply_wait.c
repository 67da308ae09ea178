/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/reply_wait: see reply_wait.h.
 */
#include "session/reply_wait.h"

#define SAMPLES_MIN 4u      /* before them nothing is known */
#define SAMPLES_MAX 4096u   /* then the old ones count half */
#define UNKNOWN_NS 2000000u /* T, until then */
#define STEP_MIN_NS 5000u   /* between two READs */
#define FIRST_MIN_NS 20000u /* P below this is not worth a timer */

/* Four buckets an octave, from 1 us on. */
static unsigned bucket_of(uint64_t ns)
{
	uint64_t quarters = ns / 256; /* 4 and more: 1 us and more */
	unsigned octave, bucket;

	if (quarters < 4)
		return 0;
	octave = 61u - (unsigned)__builtin_clzll(quarters); /* of 1024 ns */
	bucket = octave * 4 + (unsigned)(quarters >> octave) - 4;
	return bucket < REPLY_WAIT_BUCKETS ? bucket : REPLY_WAIT_BUCKETS - 1;
}

/* The longest time that belongs to it. */
static uint64_t bucket_ns(unsigned bucket)
{
	return (UINT64_C(256) << bucket / 4) * (bucket % 4 + 5);
}

/* What so many of 100 took at most. */
static uint64_t percentile(const struct reply_wait *w, uint64_t percent)
{
	uint64_t want = (w->counted * percent + 99) / 100, seen = 0;

	for (unsigned i = 0; i < REPLY_WAIT_BUCKETS; i++) {
		seen += w->count[i];
		if (seen >= want)
			return bucket_ns(i);
	}
	return bucket_ns(REPLY_WAIT_BUCKETS - 1);
}

static void plan(struct reply_wait *w)
{
	uint64_t trips = w->read_ns == UINT64_MAX ? 0 : 2 * w->read_ns, t = UNKNOWN_NS, p = 0;

	if (w->counted >= SAMPLES_MIN) {
		t = percentile(w, 99);
		p = percentile(w, 50) / 2;
	}
	if (t < REPLY_WAIT_LEAST_NS)
		t = REPLY_WAIT_LEAST_NS;
	if (t > REPLY_WAIT_MOST_NS)
		t = REPLY_WAIT_MOST_NS;
	w->patience_ns = t + trips;
	w->first_ns = p < FIRST_MIN_NS ? 0 : p > w->patience_ns / 2 ? w->patience_ns / 2 : p;
}

static void start(struct reply_wait *w, uint64_t now, uint64_t first)
{
	w->begun_ns = now;
	w->due_ns = now + first;
	w->until_ns = now + w->patience_ns;
	w->step_ns = w->first_ns / 4 > STEP_MIN_NS ? w->first_ns / 4 : STEP_MIN_NS;
}

void reply_wait_init(struct reply_wait *w, uint64_t now)
{
	*w = (struct reply_wait){.read_ns = UINT64_MAX};
	plan(w);
	start(w, now, 0);
}

void reply_wait_begin(struct reply_wait *w, uint64_t now)
{
	start(w, now, w->first_ns);
	w->asked = true;
}

void reply_wait_measured(struct reply_wait *w, uint64_t took)
{
	if (took >= w->read_ns)
		return;
	w->read_ns = took;
	plan(w);
}

void reply_wait_missed(struct reply_wait *w, uint64_t now)
{
	w->due_ns = now + w->step_ns;
	if (w->step_ns < w->patience_ns)
		w->step_ns *= 2;
}

static void count(struct reply_wait *w, uint64_t took)
{
	w->count[bucket_of(took)]++;
	if (++w->counted >= SAMPLES_MAX) {
		w->counted = 0;
		for (unsigned i = 0; i < REPLY_WAIT_BUCKETS; i++)
			w->counted += w->count[i] /= 2;
	}
	plan(w);
}

void reply_wait_came(struct reply_wait *w, uint64_t now)
{
	if (w->asked)
		count(w, now - w->begun_ns);
	w->asked = false;
	start(w, now, 0);
}

void reply_wait_hurry(struct reply_wait *w, uint64_t now)
{
	w->due_ns = now;
	w->until_ns = now + w->patience_ns;
}

bool reply_wait_is_over(const struct reply_wait *w, uint64_t now)
{
	return now > w->until_ns;
}
