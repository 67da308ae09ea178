/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/recode_fuzz.h: the property of every codec: what get accepts, put encodes to the same
 * bytes, and get takes it again.
 */
#ifndef TESTS_FUZZ_RECODE_FUZZ_H
#define TESTS_FUZZ_RECODE_FUZZ_H

#include "tests/recode.h"

static inline void recode_must(bool ok)
{
	if (!ok)
		abort();
}

/* `fixed`: private data may be padded; its own bytes are so many.  0: all of it comes back. Whether
 * get accepted. */
static inline bool recode_fuzz(recode_function *run, const uint8_t *data, size_t size, size_t fixed)
{
	static uint8_t out[MESSAGE_DATA_MAX], again[MESSAGE_DATA_MAX];
	ssize_t n = run(data, size, out, sizeof(out));

	if (n < 0) {
		recode_must(n == -EMSGSIZE || n == -EBADMSG);
		return false;
	}
	recode_must((size_t)n == (fixed ? fixed : size));
	recode_must(n == 0 || !memcmp(out, data, (size_t)n));
	recode_must(run(out, (size_t)n, again, sizeof(again)) == n);
	recode_must(n == 0 || !memcmp(out, again, (size_t)n));
	return true;
}

#endif
