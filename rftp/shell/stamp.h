/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/stamp: times as touch(1) takes them.
 */
#ifndef RFTP_STAMP_H
#define RFTP_STAMP_H

#include <time.h>

/*
 * "@SECONDS[.FRACTION]" since 1970, or "YYYY-MM-DD[(T| )HH:MM[:SS[.FRACTION]]][Z|(+|-)HH[:MM]]",
 * local time where no zone is said.  0 or -EINVAL.
 */
int stamp_parse_date(const char *text, struct timespec *);
/* "[[CC]YY]MMDDhhmm[.ss]", local; without a year `now`'s, of two digits 1969 to 2068. */
int stamp_parse_short(const char *text, time_t now, struct timespec *);

#endif
