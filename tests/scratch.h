/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/scratch.h: directories, files and blocks for a test to work with.
 *
 * A directory of scratch_dir is removed with all that is in it when the program ends, also when a
 * CHECK failed; a small file system mounted on it is unmounted before.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include "block/block.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH_MAX 64

struct scratch {
	char path[200];
	bool mounted;
};
static struct scratch scratch_all[SCRATCH_MAX];
static int scratch_count;

/* By descriptors: paths in here may be longer than the kernel takes.  Each level holds one. */
static void scratch_remove(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			unlinkat(fd, entry->d_name, 0))
			scratch_remove(fd, entry->d_name);
	if (dir)
		closedir(dir);
	if (unlinkat(parent, name, AT_REMOVEDIR))
		perror(name);
}

static void scratch_remove_all(void)
{
	while (scratch_count) {
		struct scratch *s = &scratch_all[--scratch_count];

		if (s->mounted)
			umount2(s->path, MNT_DETACH);
		scratch_remove(AT_FDCWD, s->path);
	}
}

/* A new empty directory; aborts when there can be none. */
static inline const char *scratch_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	struct scratch *s = &scratch_all[scratch_count];

	if (scratch_count == SCRATCH_MAX)
		abort();
	if (!scratch_count)
		atexit(scratch_remove_all);
	snprintf(s->path, sizeof(s->path), "%s/rftp-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(s->path)) {
		perror(s->path);
		abort();
	}
	scratch_count++;
	return s->path;
}

/* A tmpfs of `bytes` on a new directory; NULL when we may not. */
static inline const char *scratch_small(unsigned bytes)
{
	const char *dir = scratch_dir();
	char options[32];

	snprintf(options, sizeof(options), "size=%u", bytes);
	if (mount("tmpfs", dir, "tmpfs", 0, options))
		return NULL;
	scratch_all[scratch_count - 1].mounted = true;
	return dir;
}

/* "dir/name" in one of a few buffers. */
static inline const char *scratch_path(const char *dir, const char *name)
{
	static char paths[8][8192];
	static int at;
	char *path = paths[at++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* Whether it worked; if not, it has been printed why. */
static inline bool scratch_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (n != (ssize_t)strlen(text))
		printf("# %s: %s\n", path, n < 0 ? strerror(errno) : "the disk is full");
	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text);
}

/* Whether the file is there and holds just `text`. */
static inline bool scratch_is(const char *path, const char *text)
{
	char buf[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	return n == (ssize_t)strlen(text) && !memcmp(buf, text, (size_t)n);
}

/* Entries of a directory without "." and ".."; -1 = cannot be read. */
static inline int scratch_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = -2;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline int scratch_open_fds(void)
{
	return scratch_entries("/proc/self/fd");
}

/* A block with its own memory, as it lies in a pool: one page in front of the payload. */
static inline struct block *scratch_block(uint32_t capacity)
{
	struct block *block = calloc(1, sizeof(*block));
	uint8_t *memory = aligned_alloc(BLOCK_ALIGN, BLOCK_ALIGN + (size_t)capacity);

	if (!block || !memory)
		abort();
	memset(memory, 0xa5, BLOCK_ALIGN + (size_t)capacity);
	block->payload = memory + BLOCK_ALIGN;
	block->capacity = capacity;
	return block;
}

static inline void scratch_block_free(struct block *block)
{
	if (!block)
		return;
	free(block->payload - BLOCK_ALIGN);
	free(block);
}

#endif
