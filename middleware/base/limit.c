/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/limit: see limit.h.
 */
#include "base/limit.h"

#include <errno.h>
#include <sys/resource.h>

int limit_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}
