/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz.h: what fuzz targets share: an input that is taken piece by piece, and must().
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts where it does not hold, and says which it was: the tail of a log is all that is kept. */
#define must(holds) must_hold(holds, #holds, __FILE__, __LINE__)

static inline void must_hold(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: must hold: %s (errno %d)\n", file, line, what, errno);
	abort();
}

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next byte; 0 at the end. */
static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	uint16_t high = fuzz_byte(in);

	return (uint16_t)(high << 8 | fuzz_byte(in));
}

/* At most `len` bytes of it; *got says how many. */
static inline const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t len, size_t *got)
{
	const uint8_t *at = in->at;

	*got = len < in->left ? len : in->left;
	in->at += *got;
	in->left -= *got;
	return at;
}

/* What comes up to a NUL, or all, as a string that is the caller's. */
static inline char *fuzz_string(struct fuzz_input *in)
{
	size_t len = strnlen((const char *)in->at, in->left);
	char *s = malloc(len + 1);

	must(s);
	if (len)
		memcpy(s, in->at, len);
	s[len] = '\0';
	if (len < in->left)
		len++;
	in->at += len;
	in->left -= len;
	return s;
}

#endif
