/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/progress: the line fits the terminal and says what is known.
 */
#include "tests/harness.h"

#include "proto/message.h"
#include "rftp/ui/progress.h"

static const char *line(
	const struct progress_state *s, double elapsed, double rate, unsigned columns)
{
	static struct text out;

	text_clear(&out);
	progress_format(&out, s, elapsed, rate, columns);
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
		.errors = 77};

	for (unsigned columns = 0; columns < 120; columns++)
		CHECK(strlen(line(&s, 1, 1e9, columns)) <= columns);
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
	{"fits_every_width", fits_every_width})
