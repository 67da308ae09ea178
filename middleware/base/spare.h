/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/spare: how much memory can be had before something else has to go.
 */
#ifndef BASE_SPARE_H
#define BASE_SPARE_H

#include <stdint.h>

/*
 * Bytes: the kernel's estimate for the host (MemAvailable), or what is left to this process's
 * control group and those around it, where that is less; caches of files count as left.  Others
 * take theirs meanwhile: ask for a part of it only.  `root` is where /proc and /sys are, "" but for
 * tests.  UINT64_MAX: not known.
 *
 * Control groups of version 2, and the memory controller of version 1, under /sys/fs/cgroup.
 */
uint64_t spare_memory_bytes(const char *root);

#endif
