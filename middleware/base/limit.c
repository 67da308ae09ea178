/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/limit: see limit.h.
 */
#include "base/limit.h"

#include <dirent.h>
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

uint64_t limit_free_files(void)
{
	struct rlimit limit;
	uint64_t used = 0;
	DIR *dir = opendir("/proc/self/fd");

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_cur = 1024; /* what is usual */
	while (dir && readdir(dir))
		used++;
	if (dir)
		closedir(dir);
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}
