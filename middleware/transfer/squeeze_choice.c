/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/squeeze_choice: see squeeze_choice.h.
 */
#include "transfer/squeeze_choice.h"

#define NS_PER_S 1000000000ull
#define CHOICE_WINDOW_NS (NS_PER_S / 4)
#define CHOICE_TRIAL_NS (NS_PER_S / 10)
#define CHOICE_EARLY_NS (NS_PER_S / 20) /* of a link that keeps up, before the first trial */
#define CHOICE_EARLY_BLOCKS 8u
#define CHOICE_PAUSE_NS                                                                            \
	NS_PER_S /* between trials at first; doubled with each one that changes nothing */
#define CHOICE_PAUSE_MAX_NS (60 * NS_PER_S)
#define CHOICE_BETTER_PERCENT 110u /* of the other's rate: less than that is noise */
#define CHOICE_WORSE_PERCENT 75u   /* of it: so little needs no window to be seen */
#define CHOICE_PASS_MAX 64u

void squeeze_choice_init(
	struct squeeze_choice *c, bool asked, uint64_t window_bytes, uint32_t block_bytes)
{
	*c = (struct squeeze_choice){.asked = asked,
		.on = asked,
		.window_bytes = window_bytes,
		.block_bytes = block_bytes,
		.early = true,
		.pause_ns = CHOICE_PAUSE_NS};
}

bool squeeze_choice_next(struct squeeze_choice *c)
{
	if (!c->on)
		return false;
	if (c->pass) {
		c->pass--;
		return false;
	}
	return true;
}

void squeeze_choice_note(struct squeeze_choice *c, bool shrank)
{
	if (shrank) {
		c->misses = 0;
		return;
	}
	/* 1, 2, 4 ... are passed over, until one shrinks again */
	if (c->misses < 31)
		c->misses++;
	c->pass = c->misses < 7 ? 1u << (c->misses - 1) : CHOICE_PASS_MAX;
}

/* From here on, behind what is under way. */
static void choice_begin(struct squeeze_choice *c, uint64_t now_ns)
{
	c->since_ns = c->begun_ns = now_ns;
	/* before the first block nothing has left */
	c->skip_bytes = c->early ? c->block_bytes : c->window_bytes;
	c->bytes = c->busy_ns = c->skipped_bytes = 0;
	c->last_ns = now_ns;
}

static void choice_turn(struct squeeze_choice *c, bool trial, uint64_t now_ns)
{
	c->on = !c->on;
	c->trial = trial;
	choice_begin(c, now_ns);
}

/* The trial's window is over: it stays, or all is as before, and for longer. */
static void choice_judge(struct squeeze_choice *c, uint64_t rate, uint64_t now_ns)
{
	bool better = rate * 100 > c->rate * CHOICE_BETTER_PERCENT;

	if (better) {
		c->pause_ns = CHOICE_PAUSE_NS;
		c->trial = false;
		choice_begin(c, now_ns);
	} else {
		c->pause_ns = c->pause_ns * 2 < CHOICE_PAUSE_MAX_NS ? c->pause_ns * 2
								    : CHOICE_PAUSE_MAX_NS;
		choice_turn(c, false, now_ns);
	}
	c->next_ns = now_ns + c->pause_ns;
}

static uint64_t choice_rate(uint64_t bytes, uint64_t ns)
{
	return (uint64_t)((double)bytes * NS_PER_S / (double)ns);
}

/* Whether a trial goes so badly that it shows at once: what was under way before, as all else did,
 * has left faster, so it counts for the trial. */
static bool choice_is_worse(const struct squeeze_choice *c, uint64_t now_ns)
{
	const uint64_t ns = now_ns - c->begun_ns;

	return c->trial && ns >= CHOICE_TRIAL_NS &&
	       choice_rate(c->skipped_bytes + c->bytes, ns) * 100 < c->rate * CHOICE_WORSE_PERCENT;
}

/* Whether the window is over that is measured.  Of the first blocks a few are enough, if nearly all
 * of them have left: then it is the compressor that is waited for, and not the link. */
static bool choice_is_measured(
	const struct squeeze_choice *c, uint64_t now_ns, uint64_t under_way_bytes)
{
	const uint64_t ns = now_ns - c->since_ns;

	if (c->early && !c->busy_ns && under_way_bytes <= c->bytes / 2)
		return ns >= CHOICE_EARLY_NS &&
		       c->bytes >= (uint64_t)CHOICE_EARLY_BLOCKS * c->block_bytes;
	return ns >= (c->trial ? CHOICE_TRIAL_NS : CHOICE_WINDOW_NS) && c->bytes >= c->window_bytes;
}

void squeeze_choice_round(
	struct squeeze_choice *c, uint64_t now_ns, const struct squeeze_round *round)
{
	uint64_t rate;

	if (!c->asked)
		return;
	if (!c->last_ns)
		choice_begin(c, now_ns);
	if (c->skip_bytes) {
		c->skip_bytes -= round->bytes < c->skip_bytes ? round->bytes : c->skip_bytes;
		c->skipped_bytes += round->bytes;
		c->since_ns = c->last_ns = now_ns;
	} else {
		c->bytes += round->bytes;
		c->busy_ns += round->busy ? now_ns - c->last_ns : 0;
		c->last_ns = now_ns;
	}
	if (choice_is_worse(c, now_ns)) {
		choice_judge(c, 0, now_ns);
		return;
	}
	if (c->skip_bytes || !choice_is_measured(c, now_ns, round->under_way_bytes))
		return;
	rate = choice_rate(c->bytes, now_ns - c->since_ns);
	c->early = false;
	if (c->trial) {
		choice_judge(c, rate, now_ns);
		return;
	}
	c->rate = rate;
	/* a link that has enough to do while blocks are compressed is what all wait for */
	if ((c->on && c->busy_ns > (now_ns - c->since_ns) / 2) || now_ns < c->next_ns)
		choice_begin(c, now_ns);
	else
		choice_turn(c, true, now_ns);
}
