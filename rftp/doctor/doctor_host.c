/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor_host.c: what every fabric needs of the kernel and its limits.
 */
#include "rftp/doctor/doctor_impl.h"

#include "rftp/ui/units.h"
#include "tree/beneath.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#define HOST_FILES_LEAST 1024u
#define HOST_TCP_ENOUGH (16u << 20)
#define HOST_TCP_MEND                                                                              \
	"sysctl net.ipv4.tcp_rmem='4096 131072 268435456' net.ipv4.tcp_wmem='4096 65536 "          \
	"268435456'"

void doctor_openat2(struct doctor *d)
{
	struct utsname name = {.release = "?"};

	uname(&name);
	if (beneath_supported())
		doctor_say(d, DOCTOR_OK, "", NULL, "Linux %s has openat2", name.release);
	else
		doctor_say(d, DOCTOR_FAIL, "",
			"docker run --security-opt seccomp=... (or Linux 5.6)",
			"Linux %s: openat2 is missing or filtered: rftpd cannot serve, and trees "
			"cannot "
			"be fetched",
			name.release);
}

void doctor_files(struct doctor *d)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max == RLIM_INFINITY)
		doctor_say(d, DOCTOR_OK, "", NULL, "unlimited");
	else if (limit.rlim_max >= HOST_FILES_LEAST)
		doctor_say(d, DOCTOR_OK, "", NULL, "up to %ju at once", (uintmax_t)limit.rlim_max);
	else
		doctor_say(d, DOCTOR_WARN, "", "ulimit -Hn 65536  (lasting: nofile in limits.conf)",
			"up to %ju at once: trees of small files use several hundred",
			(uintmax_t)limit.rlim_max);
}

/* ---- huge pages ---- */

static uint64_t host_meminfo(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	unsigned long long value = 0;

	if (line)
		sscanf(line + strlen(name), " %llu", &value);
	return value;
}

void doctor_huge_pages(struct doctor *d)
{
	char text[4096], mode[128];
	uint64_t pages, free_pages, kib;
	bool transparent;

	doctor_read(d, "/proc/meminfo", text, sizeof text);
	pages = host_meminfo(text, "HugePages_Total:");
	free_pages = host_meminfo(text, "HugePages_Free:");
	kib = host_meminfo(text, "Hugepagesize:");
	transparent =
		doctor_read(d, "/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof mode) &&
		!strstr(mode, "[never]");
	if (free_pages)
		doctor_say(d, DOCTOR_OK, "", NULL, "%ju of %ju pages of %ju KiB are free%s",
			(uintmax_t)free_pages, (uintmax_t)pages, (uintmax_t)kib,
			transparent ? "; transparent ones, too" : "");
	else if (transparent)
		doctor_say(d, DOCTOR_OK, "", NULL, "transparent ones; none are reserved");
	else
		doctor_say(d, DOCTOR_INFO, "", "sysctl vm.nr_hugepages=512",
			"none are reserved or free, and transparent ones are off: registering "
			"memory "
			"takes longer");
}

/* ---- TCP ---- */

static uint64_t host_number(const struct doctor *d, const char *path, unsigned index)
{
	unsigned long long values[3] = {0};
	char line[128];

	if (!doctor_read(d, path, line, sizeof line) ||
		sscanf(line, "%llu %llu %llu", &values[0], &values[1], &values[2]) < (int)index + 1)
		return 0;
	return values[index];
}

uint64_t doctor_tcp_window(const struct doctor *d)
{
	uint64_t in = host_number(d, "/proc/sys/net/ipv4/tcp_rmem", 2);
	uint64_t out = host_number(d, "/proc/sys/net/ipv4/tcp_wmem", 2);

	return in < out ? in : out;
}

void doctor_tcp_buffers(struct doctor *d)
{
	uint64_t in = host_number(d, "/proc/sys/net/ipv4/tcp_rmem", 2);
	uint64_t out = host_number(d, "/proc/sys/net/ipv4/tcp_wmem", 2);
	uint64_t core = host_number(d, "/proc/sys/net/core/rmem_max", 0),
		 least = in < out ? in : out;
	char in_text[UNITS_TEXT_MAX], out_text[UNITS_TEXT_MAX],
		core_text[UNITS_TEXT_MAX] = "hidden";

	if (!least) {
		doctor_say(d, DOCTOR_SKIP, "", NULL, "the kernel does not show them");
		return;
	}
	units_format_size(in, in_text);
	units_format_size(out, out_text);
	if (core) /* a network namespace does not show it */
		units_format_size(core, core_text);
	/* whether that is too little, the way to a server decides: see the row rate */
	doctor_say(d, least >= HOST_TCP_ENOUGH ? DOCTOR_OK : DOCTOR_INFO, "",
		least >= HOST_TCP_ENOUGH ? NULL : HOST_TCP_MEND,
		"up to %s in, %s out (core.rmem_max %s, not used): a connection fills 10 Gb/s up "
		"to a "
		"round trip of %.1f ms",
		in_text, out_text, core_text, (double)least / 1.25e9 * 1e3);
}

void doctor_congestion(struct doctor *d)
{
	char used[64], available[256];

	if (!doctor_read(d, "/proc/sys/net/ipv4/tcp_congestion_control", used, sizeof used)) {
		doctor_say(d, DOCTOR_SKIP, "", NULL, "the kernel does not show it");
		return;
	}
	doctor_read(d, "/proc/sys/net/ipv4/tcp_available_congestion_control", available,
		sizeof available);
	doctor_say(d, DOCTOR_OK, "", NULL, "%s, of: %s", used, available);
}
