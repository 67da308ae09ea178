/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/preload/disk.c: a disk that is not told the truth, or does not tell it, and what is flushed
 * to it.
 *
 * Preloaded into a program, it writes a line for each fsync, fdatasync and syncfs to the file
 * RFTP_TEST_FLUSHES.  With RFTP_TEST_PUNCH "none" no hole can be made in a file, and with "behind"
 * only where it has none to lose, behind its end.  With RFTP_TEST_FLIP "write" one bit of the first
 * large pwrite is another one on its way to the disk; with "read" one of the first large pread is,
 * on its way from it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE 65536u

static void note(const char *line)
{
	const char *path = getenv("RFTP_TEST_FLUSHES");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd >= 0 && write(fd, line, strlen(line)) < 0)
		abort();
	if (fd >= 0)
		close(fd);
}

static bool flips(const char *way, size_t length)
{
	static atomic_bool done;
	const char *flip = getenv("RFTP_TEST_FLIP");

	return flip && !strcmp(flip, way) && length >= LARGE && !atomic_exchange(&done, true);
}

int fsync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	note("fsync\n");
	return next(fd);
}

int fdatasync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");

	note("fdatasync\n");
	return next(fd);
}

int syncfs(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "syncfs");

	note("syncfs\n");
	return next(fd);
}

int fallocate(int fd, int mode, off_t at, off_t length)
{
	int (*next)(int, int, off_t, off_t) =
		(int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate");
	const char *punch = getenv("RFTP_TEST_PUNCH");
	struct stat st;

	if (punch && mode & FALLOC_FL_PUNCH_HOLE &&
		(!strcmp(punch, "none") || (!fstat(fd, &st) && at < st.st_size))) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return next(fd, mode, at, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t at)
{
	ssize_t (*next)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	unsigned char *copy;
	ssize_t n;

	if (!flips("write", length))
		return next(fd, data, length, at);
	copy = malloc(length);
	if (!copy)
		abort();
	memcpy(copy, data, length);
	copy[length / 2] ^= 4;
	n = next(fd, copy, length, at);
	free(copy);
	return n;
}

ssize_t pread(int fd, void *data, size_t length, off_t at)
{
	ssize_t (*next)(int, void *, size_t, off_t) =
		(ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
	ssize_t n = next(fd, data, length, at);

	if (n > (ssize_t)LARGE / 2 && flips("read", length))
		((unsigned char *)data)[n / 2] ^= 4;
	return n;
}
