/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/exit_code: every status has a class, and classes join.
 */
#include "tests/harness.h"

#include "rftp/exit_code.h"

static void classes(void)
{
	CHECK_EQ(exit_code_from_status(STATUS_OK), 0);
	CHECK_EQ(exit_code_from_status(STATUS_NOT_FOUND), 6);
	CHECK_EQ(exit_code_from_status(STATUS_OUTSIDE), 7);
	CHECK_EQ(exit_code_from_status(STATUS_NO_SPACE), 8);
	CHECK_EQ(exit_code_from_status(STATUS_DIGEST), 9);
	CHECK_EQ(exit_code_from_status(STATUS_IS_DIRECTORY), 10);
	CHECK_EQ(exit_code_from_status(STATUS_CHANGED), 11);
	CHECK_EQ(exit_code_from_status(STATUS_LIMIT), 12);
	CHECK_EQ(exit_code_from_status(STATUS_IO), 13);
	CHECK_EQ(exit_code_from_status(STATUS_DISCONNECTED), 4);
	CHECK_EQ(exit_code_from_status(STATUS_CANCELLED), 130);
	CHECK_EQ(exit_code_from_status(60000), 1);
}

/* A status that proto knows and this table does not would end as "other" by accident. */
static void none_is_forgotten(void)
{
	for (unsigned status = 1; status < 1000; status++) {
		if (!strcmp(status_name((uint16_t)status), "unknown") || status == STATUS_OTHER)
			continue;
		if (exit_code_from_status((uint16_t)status) == EXIT_CODE_OTHER)
			printf("# status %u (%s)\n", status, status_name((uint16_t)status));
		CHECK(exit_code_from_status((uint16_t)status) != EXIT_CODE_OTHER);
	}
}

static void joins(void)
{
	CHECK_EQ(exit_code_join(EXIT_CODE_OK, EXIT_CODE_IO), EXIT_CODE_IO);
	CHECK_EQ(exit_code_join(EXIT_CODE_IO, EXIT_CODE_OK), EXIT_CODE_IO);
	CHECK_EQ(exit_code_join(EXIT_CODE_IO, EXIT_CODE_IO), EXIT_CODE_IO);
	CHECK_EQ(exit_code_join(EXIT_CODE_IO, EXIT_CODE_DENIED), EXIT_CODE_OTHER);
	CHECK_EQ(exit_code_join(EXIT_CODE_IO, EXIT_CODE_INTERRUPTED), EXIT_CODE_INTERRUPTED);
}

HARNESS_MAIN({"classes", classes}, {"none_is_forgotten", none_is_forgotten}, {"joins", joins})
