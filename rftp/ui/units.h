/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/units: sizes, rates and times as people read them; base/number is the way back.
 */
#ifndef RFTP_UNITS_H
#define RFTP_UNITS_H

#include <stdint.h>

#define UNITS_TEXT_MAX 24

/* "812 B", "1.5 GiB": powers of 1024 */
void units_format_size(uint64_t bytes, char out[UNITS_TEXT_MAX]);
/* Four columns at most, as of ls -h and df -h: "812", "1.5G", "120G" */
void units_format_short(uint64_t bytes, char out[UNITS_TEXT_MAX]);
/* "1.07 GB": powers of 1000, for amounts that stand beside a rate */
void units_format_amount(uint64_t bytes, char out[UNITS_TEXT_MAX]);
/* "1.23 GB/s": powers of 1000, as networks are measured */
void units_format_rate(double bytes_per_second, char out[UNITS_TEXT_MAX]);
/* "0:07", "1:02:03" */
void units_format_duration(double seconds, char out[UNITS_TEXT_MAX]);

#endif
