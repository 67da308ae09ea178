/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/progress: the line fits the terminal and says what is known.
 */
#include "tests/harness.h"

#include "proto/message.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/progress.h"

#include <locale.h>

static const char *line(
	const struct progress_state *s, double elapsed, double rate, unsigned columns)
{
	const struct progress_rate r = {.now = rate, .steady = rate, .elapsed_s = elapsed};
	static struct text out;

	text_clear(&out);
	progress_format(&out, s, &r, columns);
	return text_str(&out);
}

static void known_total(void)
{
	struct progress_state s = {
		.bytes = 512 << 20, .total_bytes = 1 << 30, .files = 2, .total_files = 5};

	CHECK(!strcmp(line(&s, 1, 512 << 20, 200),
		" 50%  537 MB of 1.07 GB  537 MB/s  ETA 0:01  2 of 5 files"));
	s.errors = 1;
	CHECK(strstr(line(&s, 1, 1e9, 200), ", 1 failed"));
	s.bytes = s.total_bytes - 1;
	CHECK(strstr(line(&s, 1, 1e9, 200), " 99%"));
	s.bytes = s.total_bytes;
	CHECK(strstr(line(&s, 1, 1e9, 200), "100%"));
	CHECK(strstr(line(&s, 1, 0, 200), "ETA --:--"));
}

static void files_without_bytes(void)
{
	struct progress_state s = {.files = 3, .total_files = 4};

	CHECK(strstr(line(&s, 1, 0, 200), " 75%"));
	s.errors = 1;
	CHECK(strstr(line(&s, 1, 0, 200), "100%"));
	s = (struct progress_state){.files = 3, .total_files = MESSAGE_UNKNOWN};
	CHECK(strstr(line(&s, 1, 0, 200), "100%"));
}

static void unknown_total(void)
{
	struct progress_state s = {
		.bytes = 1000, .total_bytes = MESSAGE_UNKNOWN, .total_files = MESSAGE_UNKNOWN};

	CHECK(!strcmp(line(&s, 61, 1000, 200), "1.00 kB  1.00 kB/s  1:01"));
	/* a source that grew: the total is no longer true */
	s.total_bytes = 10;
	CHECK(!strchr(line(&s, 61, 1000, 200), '%'));
	s = (struct progress_state){0};
	CHECK(strstr(line(&s, 0, 0, 200), "100%"));
}

static void fits_every_width(void)
{
	struct progress_state s = {.bytes = 1ull << 45,
		.total_bytes = 1ull << 46,
		.files = 123456,
		.total_files = 999999,
		.errors = 77,
		.name = "a directory/\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e/\xff\x1b[2J\n/f.txt"};

	for (unsigned columns = 0; columns < 160; columns++) {
		const char *text = line(&s, 1, 1e9, columns);

		CHECK(escape_columns(text, strlen(text)) <= columns);
		CHECK(escape_printable(text, strlen(text)));
	}
}

/* On a narrow terminal is what people look for first. */
static void forty_columns(void)
{
	struct progress_state s = {.bytes = 5ull << 30,
		.total_bytes = 10ull << 30,
		.files = 17,
		.total_files = 400,
		.name = "a/name"};
	const char *text = line(&s, 10, 5e8, 39);

	CHECK(strstr(text, " 50%"));
	CHECK(strstr(text, "ETA 0:11"));
	CHECK(strstr(text, "500 MB/s"));
	CHECK(strlen(text) <= 39);
}

static void names(void)
{
	struct progress_state s = {.bytes = 1, .total_bytes = 2, .files = 1, .total_files = 3};
	const char *text;

	s.name = "dir/file";
	CHECK(strstr(line(&s, 1, 1, 100), "  1 of 3 files  dir/file"));
	s.name = "0123456789/123456789/123456789/123456789/123456789/123456789/end";
	text = line(&s, 1, 1, 80);
	CHECK(strlen(text) == 80 && strstr(text, "files  ...") && !strcmp(text + 77, "end"));
	CHECK(setlocale(LC_CTYPE, "C.UTF-8"));
	/* an accent of its own is not put on the dots */
	s.name = "0123456789/123456789/123456789/e\xcc\x81"
		 "e\xcc\x81"
		 "e\xcc\x81"
		 "e\xcc\x81/end";
	for (unsigned columns = 45; columns < 70; columns++)
		CHECK(!strstr(line(&s, 1, 1, columns), "...\xcc"));
	setlocale(LC_CTYPE, "C");
	s.name = "0123456789/123456789/123456789/123456789/123456789/123456789/end";
	text = line(&s, 1, 1, 50); /* no room that would say something */
	CHECK(!strstr(text, "end"));
	/* of one file everybody knows it */
	s.total_files = 1;
	CHECK(!strstr(line(&s, 1, 1, 200), "end"));
	s.total_files = 3;
	s.name = "";
	CHECK(strstr(line(&s, 1, 1, 200), "3 files") && !strstr(line(&s, 1, 1, 200), "files "));
}

/* Rates that jump: by how much the time left is wrong, and by how much it changes, after `from`
 * seconds of ten times a second. */
static void run_rate(double low, double high, double from_s, double *wrong, double *change)
{
	uint64_t seed = harness_seed(), now = 1000000000, moved = 0;
	const double mean = (low + high) / 2, all = mean * 120;
	struct progress_rate r;
	double last = 0;

	*wrong = *change = 0;
	progress_rate_start(&r, now);
	for (unsigned i = 1; i < 600; i++) {
		double u = (double)(harness_random(&seed) >> 11) / (double)(1ull << 53), left, eta;

		now += 100000000;
		moved += (uint64_t)((low + u * (high - low)) / 10);
		progress_rate_add(&r, moved, now);
		left = (all - (double)moved) / mean;
		eta = (all - (double)moved) / r.steady;
		if (i > from_s * 10) {
			double w = eta > left ? eta / left : left / eta, c;

			c = eta > last ? eta - last : last - eta;
			*wrong = w > *wrong ? w : *wrong;
			*change = c > *change ? c : *change;
		}
		last = eta;
	}
}

static void time_left_settles(void)
{
	struct progress_rate r;
	uint64_t now = 0, moved = 0;
	double wrong, change;

	/* from nothing to twice the mean, at random: after ten seconds it is right within a
	 * quarter, and does not jump by more than three seconds of a hundred at once */
	run_rate(0, 200e6, 10, &wrong, &change);
	CHECK(wrong < 1.25);
	CHECK(change < 3);
	/* the same rate all the time: right from the first second on */
	run_rate(100e6, 100e6, 1, &wrong, &change);
	CHECK(wrong < 1.01);
	/* it goes a tenth as fast from now on: after a minute that is known */
	progress_rate_start(&r, now);
	for (unsigned i = 0; i < 1200; i++) {
		now += 100000000;
		moved += i < 600 ? 10000000 : 1000000;
		progress_rate_add(&r, moved, now);
	}
	CHECK(r.steady < 15e6 && r.steady >= 10e6);
	CHECK(r.now < 10.5e6);
	/* a scan, or a queue, before it begins to move, is not slowness */
	now = moved = 0;
	progress_rate_start(&r, now);
	for (unsigned i = 0; i < 600; i++) {
		now += 100000000;
		moved += i < 500 ? 0 : 1000000;
		progress_rate_add(&r, moved, now);
	}
	CHECK(r.steady > 9.9e6 && r.steady < 10.1e6);
}

static void ordinals(void)
{
	static const struct {
		unsigned number;
		const char *text;
	} rows[] = {{1, "1st"}, {2, "2nd"}, {3, "3rd"}, {4, "4th"}, {10, "10th"}, {11, "11th"},
		{12, "12th"}, {13, "13th"}, {21, "21st"}, {102, "102nd"}, {111, "111th"},
		{1013, "1013th"}};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text out = {0};

		progress_ordinal(&out, rows[i].number);
		CHECK(!strcmp(text_str(&out), rows[i].text));
		text_fini(&out);
	}
}

HARNESS_MAIN({"ordinals", ordinals}, {"known_total", known_total}, {"unknown_total", unknown_total},
	{"files_without_bytes", files_without_bytes}, {"fits_every_width", fits_every_width},
	{"forty_columns", forty_columns}, {"names", names},
	{"time_left_settles", time_left_settles})
