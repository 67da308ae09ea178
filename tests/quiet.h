/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/quiet.h: where the log of a test goes that provokes errors by the thousand.  Only the log:
 * what a failed assert and a sanitizer say is on stderr, which is shown.
 */
#ifndef TESTS_QUIET_H
#define TESTS_QUIET_H

#include "base/log.h"

#include <stdbool.h>
#include <stdlib.h>

/* Nowhere, or with RFTP_LOG set all of it to stderr.  Whether that could be done. */
static inline bool quiet_log(const char *program)
{
	bool wanted = getenv("RFTP_LOG") != NULL;

	log_setup(program, wanted ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	return wanted || !log_to_file("/dev/null");
}

#endif
