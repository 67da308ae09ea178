/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/samples.h: messages written out by hand, and what every codec must do with them.
 *
 * A sample is text: bytes in hexadecimal, "bb*N" for a byte N times, blanks between.  It is written
 * from the specification, not by our put functions, so that a get and a put which are wrong in the
 * same way do not pass.
 */
#ifndef TESTS_SAMPLES_H
#define TESTS_SAMPLES_H

#include "tests/harness.h"
#include "tests/recode.h"

#include <ctype.h>

#define SAMPLE_MAX (MESSAGE_DATA_MAX + 64)

struct sample {
	uint16_t type;
	recode_function *run; /* NULL: the one of the type */
	const char *text;
};

/* One value of a sample changed: `width` bytes at `offset` become `value`. */
struct tweak {
	recode_function *run;
	const char *text;
	unsigned offset, width;
	uint64_t value;
	int error; /* what get must say: 0, -EMSGSIZE or -EBADMSG */
};

static inline size_t sample_parse(const char *text, uint8_t *out)
{
	size_t len = 0;

	while (*text) {
		char pair[3] = {0}, *end;
		size_t repeat = 1;
		if (isspace((unsigned char)*text)) {
			text++;
			continue;
		}
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			abort();
		memcpy(pair, text, 2);
		text += 2;
		if (*text == '*') {
			repeat = strtoul(text + 1, &end, 10);
			text = end;
		}
		if (len + repeat > SAMPLE_MAX)
			abort();
		memset(out + len, (int)strtoul(pair, NULL, 16), repeat);
		len += repeat;
	}
	return len;
}

/* Round trip, every truncation, trailing bytes, every buffer too short to put into. */
static inline void sample_check(const struct sample *s)
{
	static uint8_t in[SAMPLE_MAX + 4], out[SAMPLE_MAX];
	recode_function *run = s->run ? s->run : recode_find(s->type);
	size_t len = sample_parse(s->text, in);
	/* long messages repeat themselves: not every length of them is worth a copy */
	size_t step = len > 8192 ? 89 : 1;

	CHECK(run != NULL);
	CHECK_EQ(recode_exact(run, in, len, out, len), len);
	CHECK(!memcmp(in, out, len));
	for (size_t cut = 0; cut < len; cut += step) {
		ssize_t n = recode_exact(run, in, cut, out, len);
		CHECK(n == -EMSGSIZE || n == -EBADMSG);
		CHECK_EQ(recode_exact(run, in, len, out, cut), -EMSGSIZE);
	}
	for (size_t more = 1; more <= 4; more++) {
		memset(in + len, 0, more);
		if (s->type == 0) { /* private data: zeros are padding, anything else is not */
			CHECK_EQ(recode_exact(run, in, len + more, out, len), len);
			in[len + more - 1] = 1;
		}
		CHECK_EQ(recode_exact(run, in, len + more, out, len), -EBADMSG);
	}
}

static inline void sample_check_all(const struct sample *samples, size_t count)
{
	for (size_t i = 0; i < count && !harness_failed; i++) {
		sample_check(&samples[i]);
		if (harness_failed)
			printf("# in sample %zu: type %#x, %.80s\n", i, samples[i].type,
				samples[i].text);
	}
}

static inline void sample_tweak_all(const struct tweak *tweaks, size_t count)
{
	static uint8_t in[SAMPLE_MAX], out[SAMPLE_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct tweak *t = &tweaks[i];
		size_t len = sample_parse(t->text, in);
		ssize_t n;
		for (unsigned k = 0; k < t->width; k++)
			in[t->offset + k] = (uint8_t)(t->value >> 8 * (t->width - 1 - k));
		n = recode_exact(t->run, in, len, out, SAMPLE_MAX);
		if ((t->error ? n != t->error : n != (ssize_t)len) ||
			(n > 0 && memcmp(in, out, len)))
			printf("# tweak %zu: offset %u, value %#" PRIx64 ": %zd\n", i, t->offset,
				t->value, n);
		CHECK_EQ(n, t->error ? t->error : (ssize_t)len);
		CHECK(n < 0 || !memcmp(in, out, len));
	}
}

/* Every row of types from..to has a codec and the reverse, and its shortest and longest samples
 * have the row's min and max. */
static inline void sample_check_rows(
	const struct sample *samples, size_t count, unsigned from, unsigned to)
{
	static uint8_t in[SAMPLE_MAX];

	for (unsigned type = 0; type <= UINT16_MAX; type++) {
		const struct message_row *row = message_row((uint16_t)type);
		struct message_header header = {(uint16_t)type, 0, 0};
		size_t min = SIZE_MAX, max = 0;
		unsigned number = type & ~MESSAGE_REPLY;
		CHECK_EQ(row != NULL, recode_find((uint16_t)type) != NULL);
		CHECK(message_name((uint16_t)type) != NULL);
		if (!row) {
			CHECK(!strcmp(message_name((uint16_t)type), "unknown message"));
			CHECK_EQ(message_check(&header), -EBADMSG);
			continue;
		}
		CHECK_EQ(row->type, type);
		CHECK(row->name == message_name((uint16_t)type));
		if (number < from || number > to)
			continue;
		for (size_t i = 0; i < count; i++) {
			size_t len;
			if (samples[i].type != type)
				continue;
			len = sample_parse(samples[i].text, in);
			min = len < min ? len : min;
			max = len > max ? len : max;
		}
		if (min != row->min || max != row->max)
			printf("# %s: samples have %zu..%zu, its row %u..%u\n", row->name, min, max,
				row->min, row->max);
		CHECK_EQ(min, row->min);
		CHECK_EQ(max, row->max);
		for (header.length = 0; header.length <= row->max + 2; header.length++)
			CHECK_EQ(message_check(&header),
				header.length >= min && header.length <= max ? 0 : -EBADMSG);
		header.length = UINT32_MAX;
		CHECK_EQ(message_check(&header), -EBADMSG);
	}
}

#endif
