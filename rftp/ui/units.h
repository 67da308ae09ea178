/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/units: sizes, rates and times, between numbers and what people write.
 */
#ifndef RFTP_UNITS_H
#define RFTP_UNITS_H

#include <stdint.h>

#define UNITS_TEXT_MAX 24

/* "4096", "64K", "64KiB" (1024), "64KB" (1000), up to T; case does not matter.  0; -EINVAL: no
 * size; -ERANGE: does not fit. */
int units_parse_size(const char *, uint64_t *out);
/* Digits only, min..max.  -EINVAL, -ERANGE. */
int units_parse_number(const char *, uint64_t min, uint64_t max, uint64_t *out);

/* "812 B", "1.5 GiB" */
void units_format_size(uint64_t bytes, char out[UNITS_TEXT_MAX]);
/* Four columns at most, as of ls -h and df -h: "812", "1.5G", "120G" */
void units_format_short(uint64_t bytes, char out[UNITS_TEXT_MAX]);
/* "1.23 GB/s": powers of 1000, as networks are measured */
void units_format_rate(double bytes_per_second, char out[UNITS_TEXT_MAX]);
/* "0:07", "1:02:03" */
void units_format_duration(double seconds, char out[UNITS_TEXT_MAX]);

#endif
