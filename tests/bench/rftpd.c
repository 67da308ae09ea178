/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/rftpd: the daemon, some of whose registrations of memory that peers may write to
 * fail, for tests/bench/early.py: RFTP_TEST_FAILS in a thousand, by the seed RFTP_TEST_SEED.
 *
 * It is linked with --wrap=fabric_mr_new.
 */
#include "fabric/fabric.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int __real_fabric_mr_new(
	struct fabric_pd *pd, void *base, size_t bytes, unsigned access, struct fabric_mr **out);
int __wrap_fabric_mr_new(
	struct fabric_pd *pd, void *base, size_t bytes, unsigned access, struct fabric_mr **out);

static unsigned number_of(const char *name)
{
	const char *value = getenv(name);

	return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

static bool fails(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static unsigned seed;
	bool now;

	pthread_mutex_lock(&lock);
	if (!seed)
		seed = number_of("RFTP_TEST_SEED") + 1;
	now = (unsigned)rand_r(&seed) % 1000 < number_of("RFTP_TEST_FAILS");
	pthread_mutex_unlock(&lock);
	return now;
}

int __wrap_fabric_mr_new(
	struct fabric_pd *pd, void *base, size_t bytes, unsigned access, struct fabric_mr **out)
{
	if (access & FABRIC_REMOTE_WRITE && fails())
		return -ENOMEM;
	return __real_fabric_mr_new(pd, base, bytes, access, out);
}
