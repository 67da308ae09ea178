/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/squeeze_choice: see squeeze_choice.h.
 */
#include "transfer/squeeze_choice.h"

#define NS_PER_S 1000000000ull
#define CHOICE_WINDOW_NS (NS_PER_S / 4)
#define CHOICE_TRIAL_NS (NS_PER_S / 10)
#define CHOICE_PAUSE_NS                                                                            \
	NS_PER_S /* between trials at first; doubled with each one that changes nothing */
#define CHOICE_PAUSE_MAX_NS (60 * NS_PER_S)
#define CHOICE_BETTER_PERCENT 110u /* of the other's rate: less than that is noise */
#define CHOICE_PASS_MAX 64u

void squeeze_choice_init(struct squeeze_choice *c, bool asked, uint64_t window_bytes)
{
	*c = (struct squeeze_choice){.asked = asked,
		.on = asked,
		.window_bytes = window_bytes,
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
	c->since_ns = 0;
	c->skip_bytes = c->window_bytes;
	c->bytes = c->busy_ns = 0;
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

void squeeze_choice_round(struct squeeze_choice *c, uint64_t now_ns, uint64_t bytes, bool busy)
{
	uint64_t length = c->trial ? CHOICE_TRIAL_NS : CHOICE_WINDOW_NS, rate;

	if (!c->asked)
		return;
	if (!c->last_ns)
		choice_begin(c, now_ns);
	if (c->skip_bytes) {
		c->skip_bytes -= bytes < c->skip_bytes ? bytes : c->skip_bytes;
		c->since_ns = c->last_ns = now_ns;
		return;
	}
	c->bytes += bytes;
	c->busy_ns += busy ? now_ns - c->last_ns : 0;
	c->last_ns = now_ns;
	if (now_ns - c->since_ns < length || c->bytes < c->window_bytes)
		return;
	rate = (uint64_t)((double)c->bytes * NS_PER_S / (double)(now_ns - c->since_ns));
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
