/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of proto/status: the table is a bijection. */
#include "tests/harness.h"
#include "proto/status.h"

#include <limits.h>

/* Every number of the protocol, written out again: they never change. */
static const uint16_t numbers[] = {0, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 200,
	201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 300, 301, 302, 303, 304,
	305, 306, 307, 308, 399};
#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

static bool known(uint16_t status)
{
	for (size_t i = 0; i < COUNT; i++)
		if (numbers[i] == status)
			return true;
	return false;
}

static void every_number(void)
{
	for (unsigned status = 0; status <= UINT16_MAX; status++) {
		const char *name = status_name((uint16_t)status);
		const char *text = status_text((uint16_t)status);
		CHECK(name && *name && text && *text);
		CHECK_EQ(strcmp(name, "unknown") != 0, known((uint16_t)status));
		if (!known((uint16_t)status))
			CHECK_EQ(status_to_errno((uint16_t)status), -EPROTO);
		else if (status)
			CHECK(status_to_errno((uint16_t)status) < 0);
	}
	CHECK_EQ(status_to_errno(STATUS_OK), 0);
	CHECK_EQ(status_from_errno(0), STATUS_OK);
}

static void names_differ(void)
{
	for (size_t i = 0; i < COUNT; i++)
		for (size_t j = 0; j < i; j++) {
			CHECK(strcmp(status_name(numbers[i]), status_name(numbers[j])));
			CHECK(strcmp(status_text(numbers[i]), status_text(numbers[j])));
		}
}

static void bijection(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		uint16_t status = numbers[i];
		CHECK_EQ(status_from_errno(status_to_errno(status)), status);
		CHECK_EQ(status_from_errno(-status_to_errno(status)), status);
	}
}

static void from_errno(void)
{
	static const struct {
		int error;
		uint16_t status;
	} rows[] = {{ENOENT, STATUS_NOT_FOUND}, {EACCES, STATUS_DENIED}, {EPERM, STATUS_DENIED},
		{EROFS, STATUS_READ_ONLY}, {EEXIST, STATUS_EXISTS}, {EISDIR, STATUS_IS_DIRECTORY},
		{ENOTDIR, STATUS_NOT_DIRECTORY}, {ENOTEMPTY, STATUS_NOT_EMPTY},
		{ENAMETOOLONG, STATUS_NAME}, {EXDEV, STATUS_OUTSIDE},
		{EREMOTE, STATUS_CROSS_DEVICE}, {ELOOP, STATUS_LOOP}, {EBUSY, STATUS_BUSY},
		{ETXTBSY, STATUS_BUSY}, {ENOSPC, STATUS_NO_SPACE}, {EDQUOT, STATUS_NO_SPACE},
		{EIO, STATUS_IO}, {EFBIG, STATUS_TOO_LARGE}, {ENOMEM, STATUS_NO_MEMORY},
		{EBADMSG, STATUS_PROTOCOL}, {EMSGSIZE, STATUS_PROTOCOL},
		{EPIPE, STATUS_DISCONNECTED}, {ECONNRESET, STATUS_DISCONNECTED},
		{ECANCELED, STATUS_CANCELLED}, {ETIMEDOUT, STATUS_TIMEOUT}, {EMFILE, STATUS_LIMIT},
		{EINVAL, STATUS_INVALID}, {EOPNOTSUPP, STATUS_UNSUPPORTED}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_EQ(status_from_errno(rows[i].error), rows[i].status);
		CHECK_EQ(status_from_errno(-rows[i].error), rows[i].status);
	}
	CHECK_EQ(status_from_errno(ENOTTY), STATUS_OTHER);
	CHECK_EQ(status_from_errno(123456), STATUS_OTHER);
	CHECK_EQ(status_from_errno(INT_MAX), STATUS_OTHER);
	CHECK_EQ(status_from_errno(INT_MIN), STATUS_OTHER);
	for (int error = -4096; error <= 4096; error++)
		CHECK(known(status_from_errno(error)));
}

HARNESS_MAIN({"every number has a name and a text, or is unknown", every_number},
	{"no two rows share a name or a text", names_differ},
	{"status to errno and back", bijection}, {"errno to status", from_errno})
