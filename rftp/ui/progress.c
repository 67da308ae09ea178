/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/progress.c: owns the line on the terminal.  Does not know what is transferred.
 */
#include "rftp/ui/progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/message.h"
#include "rftp/ui/units.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PROGRESS_PERIOD_NS (100 * NS_PER_MS)
#define PROGRESS_SMOOTH_S 2.0 /* the rate forgets what is older than about this */

static unsigned progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
		return 79;
	return size.ws_col - 1u; /* a full last column would wrap */
}

void progress_start(struct progress *p, bool on)
{
	*p = (struct progress){.on = on && isatty(STDERR_FILENO)};
	p->started_ns = p->drawn_ns = clock_now_ns();
}

void progress_format(struct text *out, const struct progress_state *s, double elapsed_s,
	double rate, unsigned columns)
{
	char bytes[UNITS_TEXT_MAX], total[UNITS_TEXT_MAX], speed[UNITS_TEXT_MAX],
		eta[UNITS_TEXT_MAX];
	bool known = s->total_bytes != MESSAGE_UNKNOWN && s->total_bytes >= s->bytes;
	struct text parts[5] = {0};

	units_format_amount(s->bytes, bytes);
	units_format_rate(rate, speed);
	if (known) {
		units_format_amount(s->total_bytes, total);
		units_format_duration(
			rate > 0 ? (double)(s->total_bytes - s->bytes) / rate : -1, eta);
		text_printf(&parts[0], "%3d%%", /* rounded down: 100 is all of it */
			s->total_bytes ? (int)(100.0 * (double)s->bytes / (double)s->total_bytes)
				       : 100);
		text_printf(&parts[1], "  %s of %s", bytes, total);
		text_printf(&parts[3], "  ETA %s", eta);
	} else {
		units_format_duration(elapsed_s, eta);
		text_printf(&parts[1], "%s", bytes);
		text_printf(&parts[3], "  %s", eta);
	}
	text_printf(&parts[2], "  %s", speed);
	if (s->total_files > 1 && s->total_files != MESSAGE_UNKNOWN)
		text_printf(&parts[4], "  %ju of %ju files", (uintmax_t)s->files,
			(uintmax_t)s->total_files);
	else if (s->files)
		text_printf(
			&parts[4], "  %ju file%s", (uintmax_t)s->files, s->files > 1 ? "s" : "");
	if (s->errors)
		text_printf(&parts[4], ", %ju failed", (uintmax_t)s->errors);

	/* what does not fit is left out whole, the least important last part first */
	for (size_t i = 0; i < 5; i++) {
		if (out->len + parts[i].len <= columns)
			text_add(out, text_str(&parts[i]), parts[i].len);
		text_fini(&parts[i]);
	}
}

static void progress_show(struct progress *p, bool visible)
{
	p->visible = visible;
	log_line_drawn(visible); /* other threads have things to say, too */
}

void progress_draw(struct progress *p, const struct progress_state *s)
{
	uint64_t now = clock_now_ns();
	double passed = (double)(now - p->drawn_ns) / NS_PER_S, recent, keep;
	struct text line = {0};

	if (!p->on || now - p->drawn_ns < PROGRESS_PERIOD_NS)
		return;
	recent = s->bytes > p->last_bytes ? (double)(s->bytes - p->last_bytes) / passed : 0;
	keep = PROGRESS_SMOOTH_S / (PROGRESS_SMOOTH_S + passed);
	p->rate = p->rate > 0 ? keep * p->rate + (1 - keep) * recent : recent;
	p->last_bytes = s->bytes;
	p->drawn_ns = now;

	text_puts(&line, "\r");
	progress_format(&line, s, (double)(now - p->started_ns) / NS_PER_S, p->rate,
		progress_columns() + 1);
	text_puts(&line, "\033[K");
	if (write(STDERR_FILENO, text_str(&line), line.len) > 0)
		progress_show(p, true);
	text_fini(&line);
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

	if (!p->on)
		return;
	text_printf(&line, "\rwaiting: %s\033[K", place);
	if (write(STDERR_FILENO, text_str(&line), line.len) > 0)
		progress_show(p, true);
	text_fini(&line);
}

void progress_erase(struct progress *p)
{
	static const char erase[] = "\r\033[K";

	if (!p->visible)
		return;
	if (write(STDERR_FILENO, erase, sizeof erase - 1) < 0) {
		/* the terminal has gone; so has the line */
	}
	progress_show(p, false);
}
