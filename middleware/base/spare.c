/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/spare: see spare.h.  proc_meminfo(5), cgroups(7); the kernel's
 * Documentation/admin-guide/cgroup-v2 and cgroup-v1/memory.
 */
#include "base/spare.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct hierarchy {
	const char *controller; /* as in /proc/self/cgroup; version 2 has "" there */
	const char *mount, *limit, *usage;
	const char *cache[2]; /* in memory.stat: bytes of files that the kernel can let go of */
};

static const struct hierarchy hierarchies[] = {
	{"", "/sys/fs/cgroup", "memory.max", "memory.current", {"active_file", "inactive_file"}},
	{"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
		{"total_active_file", "total_inactive_file"}},
};

#define HIERARCHIES (sizeof hierarchies / sizeof *hierarchies)

static FILE *open_in(const char *directory, const char *name)
{
	char path[2 * PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", directory, name);

	return n < 0 || (size_t)n >= sizeof path ? NULL : fopen(path, "re");
}

/* Of "NAME[:] NUMBER ..." lines, the sum of those with these names.  Whether there was one. */
static bool sum_of(FILE *f, const char *const *names, unsigned count, uint64_t *sum)
{
	char line[256], name[64];
	unsigned long long value;
	bool any = false;

	*sum = 0;
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "%63[^: ]%*[: ]%llu", name, &value) != 2)
			continue;
		for (unsigned i = 0; i < count; i++) {
			if (!strcmp(name, names[i])) {
				*sum += value;
				any = true;
			}
		}
	}
	return any;
}

static uint64_t host_spare(const char *root)
{
	static const char *const names[] = {"MemAvailable"};
	FILE *f = open_in(root, "proc/meminfo");
	bool known;
	uint64_t kib;

	if (!f)
		return UINT64_MAX;
	known = sum_of(f, names, 1, &kib);
	fclose(f);
	return known && kib <= UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

/* "max" is no number, and no limit. */
static bool number_in(const char *directory, const char *name, uint64_t *value)
{
	FILE *f = open_in(directory, name);
	unsigned long long n;
	bool is;

	if (!f)
		return false;
	is = fscanf(f, "%llu", &n) == 1;
	fclose(f);
	if (is)
		*value = n;
	return is;
}

static uint64_t group_spare(const struct hierarchy *h, const char *directory)
{
	uint64_t limit, usage, cache = 0;
	FILE *f;

	if (!number_in(directory, h->limit, &limit) || !number_in(directory, h->usage, &usage))
		return UINT64_MAX;
	f = open_in(directory, "memory.stat");
	if (f) {
		sum_of(f, h->cache, 2, &cache);
		fclose(f);
	}
	usage -= cache < usage ? cache : usage;
	return usage < limit ? limit - usage : 0;
}

/* `path`: of the group, from the hierarchy's top.  In a container it may be a path of the host's:
 * then its own top is what limits it. */
static uint64_t groups_spare(const char *root, const struct hierarchy *h, char *path)
{
	uint64_t least = UINT64_MAX;
	char *end;

	if (strstr(path, "/..")) /* a group beside those that this process sees */
		*path = '\0';
	do {
		char directory[2 * PATH_MAX];
		int n = snprintf(directory, sizeof directory, "%s%s%s", root, h->mount, path);
		uint64_t spare = n > 0 && (size_t)n < sizeof directory ? group_spare(h, directory)
								       : UINT64_MAX;

		least = spare < least ? spare : least;
		end = strrchr(path, '/');
		if (end)
			*end = '\0';
	} while (end);
	return least;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (;; list++) {
		const char *end = list + strcspn(list, ",");

		if ((size_t)(end - list) == len && !memcmp(list, word, len))
			return true;
		if (!*end)
			return false;
		list = end;
	}
}

uint64_t spare_memory_bytes(const char *root)
{
	uint64_t least = host_spare(root);
	char line[PATH_MAX + 256];
	FILE *f = open_in(root, "proc/self/cgroup");

	/* "NUMBER:CONTROLLER,...:PATH" */
	while (f && fgets(line, sizeof line, f)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*controllers++ = *path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		for (unsigned i = 0; i < HIERARCHIES; i++) {
			uint64_t spare = UINT64_MAX;

			if (has_word(controllers, hierarchies[i].controller))
				spare = groups_spare(root, &hierarchies[i], path);
			least = spare < least ? spare : least;
		}
	}
	if (f)
		fclose(f);
	return least;
}
