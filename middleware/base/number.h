/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/number: numbers and sizes as people write them, the same in every program.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

/* Digits only, min..max.  0; -EINVAL: no number; -ERANGE. */
int number_parse(const char *, uint64_t min, uint64_t max, uint64_t *out);
/* "4096", "64K" and "64KiB" (1024), "64KB" (1000), up to T; case does not matter.  0; -EINVAL: no
 * size; -ERANGE: does not fit. */
int number_parse_size(const char *, uint64_t *out);

/* The same with a fraction: "2.5G"; of a rate in bytes a second. */
int number_parse_rate(const char *, uint64_t *out);

/* "1.5", "100ms", "2s", "5m", "1h", "1d": without a letter seconds.  0; -EINVAL: no time; -ERANGE:
 * over NUMBER_TIME_MAX_NS. */
#define NUMBER_TIME_MAX_NS (UINT64_C(366) * 86400 * 1000000000)
int number_parse_time(const char *, uint64_t *ns);

#endif
