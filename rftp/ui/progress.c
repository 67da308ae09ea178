/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/progress.c: owns the line on the terminal.
 */
#include "rftp/ui/progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/message.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PROGRESS_PERIOD_NS (100 * NS_PER_MS)
#define PROGRESS_SMOOTH_S 2.0  /* the rate that is shown forgets what is older than about this */
#define PROGRESS_STEADY_S 20.0 /* and that which the time left is computed from */
#define PROGRESS_NAME_LEAST 8u /* columns of a name that say something */
#define PROGRESS_LOG_COLUMNS 160u

static unsigned progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
		return 79;
	return size.ws_col - 1u; /* a full last column would wrap */
}

void progress_start(struct progress *p, bool on)
{
	const char *term = getenv("TERM");
	bool draws = isatty(STDERR_FILENO) && (!term || strcmp(term, "dumb") != 0);

	*p = (struct progress){.on = on && draws, .logs = on && !draws};
	p->started_ns = p->drawn_ns = clock_now_ns();
	progress_rate_start(&p->rate, p->started_ns);
}

/* ---- the rate ---- */

void progress_rate_start(struct progress_rate *r, uint64_t now_ns)
{
	*r = (struct progress_rate){.at_ns = now_ns};
}

/* What is new counts for as much as its time is of the time that is remembered; at first all of it
 * is, and the steady rate is just the mean. */
static double blend(double rate, double recent, double passed_s, double remembered_s)
{
	return rate + (recent - rate) * passed_s / (remembered_s + passed_s);
}

static double at_most(double a, double b)
{
	return a < b ? a : b;
}

void progress_rate_add(struct progress_rate *r, uint64_t moved, uint64_t now_ns)
{
	double passed_s = (double)(now_ns - r->at_ns) / NS_PER_S, recent;

	if (passed_s <= 0)
		return;
	r->elapsed_s += passed_s;
	recent = moved > r->bytes ? (double)(moved - r->bytes) / passed_s : 0;
	/* what was counted for nothing before it began to move is no slow start */
	if (!r->bytes && !moved) {
		r->at_ns = now_ns;
		return;
	}
	r->now = r->now > 0 ? blend(r->now, recent, passed_s, PROGRESS_SMOOTH_S) : recent;
	r->steady = blend(r->steady, recent, passed_s, at_most(r->age_s, PROGRESS_STEADY_S));
	r->age_s += passed_s;
	r->bytes = moved;
	r->at_ns = now_ns;
}

/* ---- the line ---- */

enum part { PART_PERCENT, PART_AMOUNT, PART_RATE, PART_TIME, PART_FILES, PARTS };

/* Which is left out last. */
static const enum part importance[PARTS] = {
	PART_PERCENT, PART_TIME, PART_RATE, PART_AMOUNT, PART_FILES};

/* Rounded down: 100 is all of it.  Of files without a byte it is their number that counts. */
static int percent(const struct progress_state *s)
{
	uint64_t done = s->files + s->errors;

	if (s->total_bytes)
		return (int)(100.0 * (double)s->bytes / (double)s->total_bytes);
	if (s->total_files == MESSAGE_UNKNOWN || done >= s->total_files)
		return 100;
	return (int)(100.0 * (double)done / (double)s->total_files);
}

static void format_parts(
	struct text parts[PARTS], const struct progress_state *s, const struct progress_rate *r)
{
	char bytes[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX], speed[UNITS_TEXT_MAX],
		eta[UNITS_TEXT_MAX];
	bool known = s->total_bytes != MESSAGE_UNKNOWN && s->total_bytes >= s->bytes;

	units_format_amount(s->bytes, bytes);
	units_format_rate(r->now, speed);
	if (known) {
		units_format_amount(s->total_bytes, total);
		units_format_duration(
			r->steady > 0 ? (double)(s->total_bytes - s->bytes) / r->steady : -1, eta);
		text_printf(&parts[PART_PERCENT], "%3d%%", percent(s));
		text_printf(&parts[PART_AMOUNT], "%s of %s", bytes, total);
		text_printf(&parts[PART_TIME], "ETA %s", eta);
	} else {
		units_format_duration(r->elapsed_s, eta);
		text_puts(&parts[PART_AMOUNT], bytes);
		text_puts(&parts[PART_TIME], eta);
	}
	text_puts(&parts[PART_RATE], speed);
	if (s->total_files > 1 && s->total_files != MESSAGE_UNKNOWN)
		text_printf(&parts[PART_FILES], "%ju of %ju files", (uintmax_t)s->files,
			(uintmax_t)s->total_files);
	else if (s->files)
		text_printf(&parts[PART_FILES], "%ju file%s", (uintmax_t)s->files,
			s->files > 1 ? "s" : "");
	if (s->errors)
		text_printf(&parts[PART_FILES], "%s%ju failed", parts[PART_FILES].len ? ", " : "",
			(uintmax_t)s->errors);
}

static size_t character_bytes(const char *at)
{
	size_t bytes = 1;

	while (((unsigned char)at[bytes] & 0xc0) == 0x80)
		bytes++;
	return bytes;
}

/* The end of a name says most.  What stands above or below a character goes with it. */
static void format_name(struct text *out, const char *name, unsigned columns)
{
	struct text shown = {0};
	const char *at;

	escape_display(&shown, name, strlen(name));
	at = text_str(&shown);
	if (escape_columns(at, shown.len) > columns && columns >= PROGRESS_NAME_LEAST) {
		while (*at && escape_columns(at, strlen(at)) > columns - 3)
			at += character_bytes(at);
		while (*at && !escape_columns(at, character_bytes(at)))
			at += character_bytes(at);
		text_puts(out, "...");
	} else if (columns < PROGRESS_NAME_LEAST) {
		at = "";
	}
	text_puts(out, at);
	text_fini(&shown);
}

void progress_format(struct text *out, const struct progress_state *s,
	const struct progress_rate *r, unsigned columns)
{
	struct text parts[PARTS] = {0};
	bool fits[PARTS] = {0};
	unsigned used = 0;

	format_parts(parts, s, r);
	/* what does not fit is left out whole */
	for (unsigned i = 0; i < PARTS; i++) {
		enum part part = importance[i];
		unsigned more = (unsigned)parts[part].len + (used ? 2 : 0);

		fits[part] = parts[part].len && used + more <= columns;
		used += fits[part] ? more : 0;
	}
	used = 0;
	for (unsigned i = 0; i < PARTS; i++) {
		if (fits[i]) {
			text_printf(out, "%s%s", used ? "  " : "", text_str(&parts[i]));
			used += (unsigned)parts[i].len + (used ? 2 : 0);
		}
		text_fini(&parts[i]);
	}
	/* of one file everybody knows the name */
	if (s->name && *s->name && s->total_files != 1 &&
		columns >= used + 2 + PROGRESS_NAME_LEAST) {
		text_puts(out, "  ");
		format_name(out, s->name, columns - used - 2);
	}
}

/* ---- where it stands ---- */

static void progress_show(struct progress *p, bool visible)
{
	p->visible = visible;
	log_line_drawn(visible); /* other threads have things to say, too */
}

/* Whether the terminal is ours: a job in the background neither draws over what its user types, nor
 * is stopped for that.  One that controls nobody is whoever's has it. */
static bool is_in_front(void)
{
	pid_t front = tcgetpgrp(STDERR_FILENO);

	return front < 0 || front == getpgrp();
}

/* Whether a line may stand there.  One that stood there when the shell took the terminal back is
 * nobody's to take away. */
static bool may_draw(struct progress *p)
{
	bool may = p->on && is_in_front();

	if (p->visible && !may)
		progress_show(p, false);
	return may;
}

/* Whether it is time to say something. */
static bool is_due(struct progress *p, uint64_t now)
{
	if (p->logs)
		return now - p->drawn_ns >= PROGRESS_LOG_NS;
	return now - p->drawn_ns >= PROGRESS_PERIOD_NS && may_draw(p);
}

/* `line` is freed. */
static void put_line(struct progress *p, struct text *line)
{
	struct text whole = {0};

	text_printf(&whole, p->logs ? "rftp: %s\n" : "\r%s\033[K", text_str(line));
	if (write(STDERR_FILENO, text_str(&whole), whole.len) > 0 && !p->logs)
		progress_show(p, true);
	text_fini(&whole);
	text_fini(line);
}

static unsigned columns_of(const struct progress *p)
{
	return p->logs ? PROGRESS_LOG_COLUMNS : progress_columns();
}

void progress_draw(struct progress *p, const struct progress_state *s)
{
	uint64_t now = clock_now_ns();
	struct text line = {0};

	if (!p->on && !p->logs)
		return;
	if (now - p->rate.at_ns >= PROGRESS_PERIOD_NS)
		progress_rate_add(&p->rate, s->bytes - s->had_bytes, now);
	if (!is_due(p, now))
		return;
	p->drawn_ns = now;
	progress_format(&line, s, &p->rate, columns_of(p));
	put_line(p, &line);
}

void progress_scan(struct progress *p, uint64_t files, uint64_t bytes)
{
	uint64_t now = clock_now_ns();
	char amount[UNITS_TEXT_MAX];
	struct text line = {0};

	if (!is_due(p, now))
		return;
	p->drawn_ns = now;
	text_printf(&line, "scanning: %ju file%s", (uintmax_t)files, files == 1 ? "" : "s");
	if (bytes != MESSAGE_UNKNOWN) {
		units_format_amount(bytes, amount);
		text_printf(&line, ", %s", amount);
	}
	if (line.len > columns_of(p))
		text_cut(&line, columns_of(p));
	put_line(p, &line);
}

void progress_say(struct progress *p, const char *what)
{
	struct text line = {0};

	if (!may_draw(p))
		return;
	text_puts(&line, what);
	if (line.len > columns_of(p))
		text_cut(&line, columns_of(p));
	put_line(p, &line);
}

void progress_ordinal(struct text *out, unsigned number)
{
	static const char *const endings[] = {"th", "st", "nd", "rd"};
	unsigned last = number % 10;

	if (last > 3 || number / 10 % 10 == 1)
		last = 0;
	text_printf(out, "%u%s", number, endings[last]);
}

void progress_place(struct text *out, const struct message_queued *queued)
{
	double seconds = (double)queued->wait_ns / 1e9;

	progress_ordinal(out, queued->position);
	if (queued->class.len)
		text_printf(
			out, " in %.*s", (int)queued->class.len, (const char *)queued->class.data);
	else
		text_puts(out, " in line");
	if (queued->wait_ns == MESSAGE_UNKNOWN)
		return;
	text_printf(out, seconds < 10 ? ", about %.1f s" : ", about %.0f s", seconds);
}

void progress_wait(struct progress *p, const char *place)
{
	struct text line = {0};

	text_printf(&line, "waiting: %s", place);
	progress_say(p, text_str(&line));
	text_fini(&line);
}

void progress_erase(struct progress *p)
{
	static const char erase[] = "\r\033[K";

	if (!p->visible || !may_draw(p))
		return;
	if (write(STDERR_FILENO, erase, sizeof erase - 1) < 0) {
		/* the terminal has gone; so has the line */
	}
	progress_show(p, false);
}
