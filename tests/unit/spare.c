/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/spare: base/spare, on hosts and in control groups of its own making, and on this one.
 */
#include "base/spare.h"
#include "tests/fake_host.h"
#include "tests/harness.h"

#include <inttypes.h>

#define MIB (UINT64_C(1) << 20)

static const char *new_host(uint64_t available_mib)
{
	const char *root = scratch_dir();
	char text[256];

	snprintf(text, sizeof text,
		"MemTotal:       1000000 kB\nMemFree: 5 kB\nMemAvailable:  %" PRIu64
		" kB\nBuffers: 7 kB",
		available_mib * 1024);
	fake_file(root, text, "/proc/meminfo");
	return root;
}

/* One group of version 2; limit 0: "max" */
static void group(const char *root, const char *path, uint64_t limit_mib, uint64_t usage_mib,
	uint64_t files_mib)
{
	char text[256];

	snprintf(text, sizeof text, "%" PRIu64, limit_mib * MIB);
	fake_file(root, limit_mib ? text : "max", "/sys/fs/cgroup%s/memory.max", path);
	snprintf(text, sizeof text, "%" PRIu64, usage_mib * MIB);
	fake_file(root, text, "/sys/fs/cgroup%s/memory.current", path);
	snprintf(text, sizeof text,
		"anon 1\nfile 99999999999\ninactive_file %" PRIu64 "\nactive_file %" PRIu64
		"\nactive_file_of_another 77",
		files_mib * MIB / 2, files_mib * MIB / 2);
	fake_file(root, text, "/sys/fs/cgroup%s/memory.stat", path);
}

static void what_the_host_has(void)
{
	CHECK_EQ(spare_memory_bytes(new_host(700)), 700 * MIB);
}

static void who_knows_nothing_says_so(void)
{
	const char *root = scratch_dir();

	CHECK(spare_memory_bytes(root) == UINT64_MAX);
	fake_file(root, "MemTotal: 5 kB", "/proc/meminfo"); /* an old kernel's */
	CHECK(spare_memory_bytes(root) == UINT64_MAX);
	fake_file(root, "", "/proc/meminfo");
	fake_file(root, "no colons\n:\n", "/proc/self/cgroup");
	CHECK(spare_memory_bytes(root) == UINT64_MAX);
}

static void a_group_and_those_around_it(void)
{
	const char *root = new_host(700);

	fake_file(root, "0::/a.slice/b.service", "/proc/self/cgroup");
	CHECK_EQ(spare_memory_bytes(root), 700 * MIB); /* without a memory controller */
	group(root, "/a.slice/b.service", 0, 50, 0);
	group(root, "/a.slice", 900, 400, 0);
	CHECK_EQ(spare_memory_bytes(root), 500 * MIB);
	group(root, "/a.slice/b.service", 300, 100, 0);
	CHECK_EQ(spare_memory_bytes(root), 200 * MIB);
	group(root, "/a.slice/b.service", 300, 300, 180); /* files that it has read or written */
	CHECK_EQ(spare_memory_bytes(root), 180 * MIB);
	group(root, "/a.slice/b.service", 300, 400, 0);
	CHECK_EQ(spare_memory_bytes(root), 0);
	group(root, "/a.slice/b.service", 0, 50, 60);
	group(root, "/a.slice", 5000, 400, 0);
	CHECK_EQ(spare_memory_bytes(root), 700 * MIB);
}

/* The path may be the host's, or not below what is seen. */
static void a_container(void)
{
	static const char *const paths[] = {
		"0::/", "0::/system.slice/docker-5.scope", "0::/../../beside"};

	for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
		const char *root = new_host(700);

		fake_file(root, paths[i], "/proc/self/cgroup");
		group(root, "", 128, 28, 0);
		CHECK_EQ(spare_memory_bytes(root), 100 * MIB);
	}
}

static void version_one(void)
{
	static const char at[] = "/sys/fs/cgroup/memory/x/y";
	const char *root = new_host(700);

	fake_file(root, "9:name=systemd:/no\n4:cpu,memory:/x/y\n2:memoryless:/z\n0::/",
		"/proc/self/cgroup");
	fake_file(root, "104857600", "%s/memory.limit_in_bytes", at);
	fake_file(root, "62914560", "%s/memory.usage_in_bytes", at);
	CHECK_EQ(spare_memory_bytes(root), 40 * MIB);
	fake_file(root, "inactive_file 5\ntotal_inactive_file 10485760\ntotal_active_file 1048576",
		"%s/memory.stat", at);
	CHECK_EQ(spare_memory_bytes(root), 51 * MIB);
	fake_file(root, "9223372036854771712", "%s/memory.limit_in_bytes", at);
	CHECK_EQ(spare_memory_bytes(root), 700 * MIB);
}

static void this_host(void)
{
	uint64_t spare = spare_memory_bytes("");

	CHECK(spare > 0 && spare < UINT64_MAX);
}

HARNESS_MAIN({"what the host has", what_the_host_has},
	{"who knows nothing says so", who_knows_nothing_says_so},
	{"a group and those around it", a_group_and_those_around_it}, {"a container", a_container},
	{"version one", version_one}, {"this host", this_host})
