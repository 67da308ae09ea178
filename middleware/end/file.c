/* SPDX-License-Identifier: Apache-2.0 */
/*
 * end/file.c: a regular file as an end.
 *
 * Owns the file's two descriptors: the caller's, which is buffered, and one of O_DIRECT for whole
 * pages where that pays.  Buffered I/O is done at once in the thread that submits: the kernel would
 * do the same inside io_submit.
 *
 * No page of the file is ever written through both descriptors: O_DIRECT takes whole units of
 * `align` bytes (at least a page) at offsets that are multiples of it, everything else is buffered.
 * So the page cache holds nothing stale, whatever order blocks arrive in.
 */
#include "end/end_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FILE_DIRECT_MIN (1ull << 30)  /* AUTO: smaller files are faster through the page cache */
#define FILE_RESERVE_MIN (1ull << 20) /* smaller files gain nothing from preallocation */
#define FILE_PROBES 16u               /* bytes looked for in the page cache */
#define FILE_SIZE_MAX 0x7fffffffffffffffull

struct end_file {
	struct end end; /* first */
	int fd;
	int direct_fd;  /* -1 = none */
	uint32_t align; /* of O_DIRECT: a power of two */
	bool writing, sparse;
	int (*claim)(void *ctx, uint64_t bytes); /* struct end_file_params' */
	void *claim_ctx;
};

static struct end_file *file_of(struct end *end)
{
	return (struct end_file *)end;
}

/* Moves bytes from..to of the block through `fd`; returns where it came to; *err is 0 at end of
 * file. */
static uint32_t file_move(const struct end_file *file, int fd, struct block *block, uint32_t from,
	uint32_t to, int *err)
{
	*err = 0;
	while (from < to) {
		off_t at = (off_t)(block->offset + from);
		ssize_t n = file->writing ? pwrite(fd, block->payload + from, to - from, at)
					  : pread(fd, block->payload + from, to - from, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (n == 0 && file->writing)) {
			*err = n < 0 ? -errno : -EIO;
			break;
		}
		if (n == 0)
			break;
		from += (uint32_t)n;
	}
	return from;
}

static void file_move_buffered(struct end_file *file, struct block *block, uint32_t from)
{
	int err;

	block->length = file_move(file, file->fd, block, from, block->length, &err);
	block->error = err;
}

static bool file_is_zero(const uint8_t *bytes, uint32_t length)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, length - 1);
}

static int file_claim(const struct end_file *file, uint32_t bytes)
{
	return file->claim ? file->claim(file->claim_ctx, bytes) : 0;
}

/* What is not zero, by pages of the file, each run of them in one call. */
static void file_write_sparse(struct end_file *file, struct block *block)
{
	uint32_t from = 0, length = block->length;
	int err = 0;

	while (from < length && !err) {
		uint32_t to = from, page = BLOCK_ALIGN;

		for (; to < length; to += page) {
			page = length - to < BLOCK_ALIGN ? length - to : BLOCK_ALIGN;
			if (file_is_zero(block->payload + to, page))
				break;
		}
		if (to > from)
			err = file_claim(file, to - from);
		if (to > from && !err)
			file_move(file, file->fd, block, from, to, &err);
		from = to < length ? to + page : length; /* past the page of zeros */
	}
	block->error = err;
}

/* How much of the block goes by O_DIRECT; 0 = nothing.  Reading may go beyond the wanted length. */
static uint32_t file_direct_bytes(const struct end_file *file, const struct block *block)
{
	uint32_t head = block->length & ~(file->align - 1);

	if (file->direct_fd < 0 || block->offset & (file->align - 1))
		return 0;
	if (!file->writing && head != block->length && block->capacity - head >= file->align)
		head += file->align;
	return head;
}

static int file_start(struct end *end, struct block *block, struct iocb *iocb, int cancel_fd)
{
	struct end_file *file = file_of(end);
	uint32_t direct;
	int err;

	(void)cancel_fd; /* a regular file does not wait for a peer */
	if (block->offset > FILE_SIZE_MAX - block->length) {
		block->length = 0;
		block->error = -EFBIG;
		return 0;
	}
	if (file->sparse) {
		file_write_sparse(file, block);
		return 0;
	}
	err = file->writing ? file_claim(file, block->length) : 0;
	if (err) {
		block->error = err;
		block->length = 0;
		return 0;
	}
	direct = file_direct_bytes(file, block);
	if (!direct) {
		file_move_buffered(file, block, 0);
		return 0;
	}
	if (file->writing)
		io_prep_pwrite(
			iocb, file->direct_fd, block->payload, direct, (long long)block->offset);
	else
		io_prep_pread(
			iocb, file->direct_fd, block->payload, direct, (long long)block->offset);
	return 1;
}

static void file_finish(struct end *end, struct block *block, long result)
{
	struct end_file *file = file_of(end);
	uint32_t direct = file_direct_bytes(file, block);
	uint32_t moved;
	int err;

	if (result == -EINVAL || result == -EOPNOTSUPP)
		result = 0; /* opened with O_DIRECT, and refuses it now: all of it buffered */
	else if (file->writing && result > 0 && result < (long)direct) {
		/* the kernel stopped on the way: why, or the rest of it */
		moved = (uint32_t)result & ~(file->align - 1);
		result = file_move(file, file->direct_fd, block, moved, direct, &err);
		if (err)
			result = err;
	}
	if (result < 0) {
		block->length = 0;
		block->error = (int)result;
		return;
	}
	/* reading: a short result is the end of the file, or not: the buffered descriptor knows */
	if ((uint64_t)result < block->length)
		file_move_buffered(file, block, (uint32_t)result);
}

static int file_sync(struct end *end)
{
	int n;

	/* both descriptors are of one inode */
	do
		n = fsync(file_of(end)->fd);
	while (n && errno == EINTR);
	return n ? -errno : 0;
}

static int file_free(struct end *end)
{
	struct end_file *file = file_of(end);
	int err = 0;

	if (file->direct_fd >= 0 && close(file->direct_fd) && errno != EINTR)
		err = -errno;
	if (close(file->fd) && errno != EINTR && !err)
		err = -errno;
	free(file);
	return err;
}

static const struct end_ops file_ops = {
	.start = file_start, .finish = file_finish, .sync = file_sync, .free = file_free};

/*
 * Whether the file lies on a file system of a block device of this host: O_DIRECT goes to the
 * device there, and fallocate does not write.  Others (tmpfs, overlay, network) have no device
 * number.
 */
static bool file_on_device(const struct stat *st, const struct statfs *fs)
{
	return major(st->st_dev) && fs->f_type != FUSE_SUPER_MAGIC &&
	       fs->f_type != MSDOS_SUPER_MAGIC;
}

/*
 * Whether most of a file to read is in the page cache: copying it from there beats reading it from
 * the device again.  Looks at single bytes spread over it; not knowing counts as not cached.
 * Looking makes the kernel read ahead there, so each look is at other places.
 */
static bool file_is_cached(int fd, uint64_t size)
{
	uint64_t stride = size / FILE_PROBES, shift = 0;
	unsigned hits = 0;

	if (getrandom(&shift, sizeof(shift), GRND_NONBLOCK) != sizeof(shift))
		return false;
	shift %= stride;
	for (unsigned i = 0; i < FILE_PROBES; i++) {
		char byte;
		struct iovec iov = {&byte, 1};

		hits += preadv2(fd, &iov, 1, (off_t)(i * stride + shift), RWF_NOWAIT) == 1;
	}
	return hits > FILE_PROBES / 2;
}

/* Opens the second descriptor.  0 or -errno: the file system refuses, or wants what blocks are not.
 */
static int file_open_direct(struct end_file *file)
{
	char path[32];
	long page = sysconf(_SC_PAGESIZE);
	int fd;

	file->align = BLOCK_ALIGN;
	if (page > (long)file->align)
		file->align = (uint32_t)page;
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
		stx.stx_mask & STATX_DIOALIGN) {
		if (!stx.stx_dio_offset_align || stx.stx_dio_mem_align > BLOCK_ALIGN)
			return -EINVAL;
		if (stx.stx_dio_offset_align > file->align)
			file->align = stx.stx_dio_offset_align;
	}
#endif
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	fd = open(path, (file->writing ? O_WRONLY : O_RDONLY) | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file->direct_fd = fd;
	file->end.direct = true;
	return 0;
}

/*
 * Sees to it that `size` bytes fit.  Looks at the free space first: fallocate would fill the disk,
 * for everybody, before it says that it is too small.  Then on a device's file system it allocates:
 * with the size, if O_DIRECT follows (writes beyond the end of a file are done one by one), else
 * beyond the end.  Not on tmpfs: that would touch every page, and writing to pages that were
 * touched is no faster. 0, or -ENOSPC, -EDQUOT, -EFBIG.
 */
static int file_reserve(
	struct end_file *file, const struct stat *st, const struct statfs *fs, uint64_t size)
{
	bool device = file_on_device(st, fs);
	struct statvfs vfs = {0};
	int n;

	if (size > FILE_SIZE_MAX)
		return -EFBIG;
	if (!device && fs->f_type != TMPFS_MAGIC)
		return 0;
	/* f_blocks is 0 for a tmpfs without limit */
	if (!fstatvfs(file->fd, &vfs) && vfs.f_blocks &&
		(uint64_t)vfs.f_bfree * vfs.f_frsize + (uint64_t)st->st_blocks * 512 < size)
		return -ENOSPC;
	if (!device)
		return 0;
	/* what only root may have, if we may, is written to when it comes, and not set aside:
	 * others would have none meanwhile, whatever becomes of this file */
	if (vfs.f_blocks && (uint64_t)vfs.f_bavail * vfs.f_frsize < size)
		return 0;
	do
		n = fallocate(
			file->fd, file->direct_fd >= 0 ? 0 : FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
	while (n && errno == EINTR);
	if (n && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		return -errno;
	return 0; /* where it cannot, writing goes on without */
}

static int file_preallocate(const struct end_file *file, uint64_t size)
{
	int n;

	if (size > FILE_SIZE_MAX)
		return -EFBIG;
	do
		n = size ? fallocate(file->fd, 0, 0, (off_t)size) : 0;
	while (n && errno == EINTR);
	return !n || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
}

static int file_make_sparse(struct end_file *file, uint64_t size)
{
	if (size > FILE_SIZE_MAX)
		return -EFBIG;
	file->sparse = true;
	return ftruncate(file->fd, (off_t)size) ? -errno : 0;
}

/* What depends on where the file is and how much comes: O_DIRECT, preallocation, read-ahead. */
static int file_prepare(
	struct end_file *file, const struct stat *st, const struct end_file_params *p)
{
	uint64_t size = p->size;
	struct statfs fs;
	bool large;
	int err;

	if (p->writing && p->sparse)
		return file_make_sparse(file, size);
	if (!file->writing && size == UINT64_MAX)
		size = (uint64_t)st->st_size;
	if (p->direct == END_DIRECT_ON) {
		err = file_open_direct(file);
		if (err)
			return err;
	}
	if (size != UINT64_MAX && size >= FILE_RESERVE_MIN && !fstatfs(file->fd, &fs)) {
		large = size >= FILE_DIRECT_MIN && file_on_device(st, &fs);
		if (p->direct == END_DIRECT_AUTO && large &&
			(file->writing || !file_is_cached(file->fd, size)))
			(void)file_open_direct(file); /* refused: it stays buffered */
		if (file->writing) {
			err = file_reserve(file, st, &fs, size);
			if (err)
				return err;
		}
	}
	if (file->writing && p->preallocate && size != UINT64_MAX)
		return file_preallocate(file, size);
	if (!file->writing && file->direct_fd < 0)
		(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

int end_file_open(int fd, bool writing, uint64_t size, enum end_direct direct, struct end **out)
{
	return end_file_open_as(fd,
		&(struct end_file_params){.writing = writing, .size = size, .direct = direct}, out);
}

int end_file_open_as(int fd, const struct end_file_params *params, struct end **out)
{
	struct end_file *file;
	struct stat st;
	int err;

	*out = NULL;
	file = calloc(1, sizeof(*file));
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	file->end.ops = &file_ops;
	file->fd = fd;
	file->direct_fd = -1;
	file->writing = params->writing;
	file->claim = params->claim;
	file->claim_ctx = params->claim_ctx;
	if (fstat(fd, &st)) {
		err = -errno;
		goto err_free;
	}
	err = S_ISDIR(st.st_mode) ? -EISDIR : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!err)
		err = file_prepare(file, &st, params);
	if (err)
		goto err_free;
	*out = &file->end;
	return 0;

err_free:
	(void)file_free(&file->end);
	return err;
}

void end_file_data(struct end *end, uint64_t offset, uint64_t *from, uint64_t *to)
{
	const struct end_file *file = file_of(end);
	off_t data = lseek(file->fd, (off_t)offset, SEEK_DATA), hole;

	*from = *to = UINT64_MAX;
	if (data < 0 && errno == ENXIO)
		return; /* nothing but a hole, to the end */
	if (data < 0) { /* the file system does not know */
		*from = offset;
		return;
	}
	hole = lseek(file->fd, data, SEEK_HOLE);
	*from = (uint64_t)data;
	if (hole > data)
		*to = (uint64_t)hole;
}

int end_file_again(const struct end *end)
{
	char path[32];
	int fd;

	if (end->ops != &file_ops)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ((const struct end_file *)end)->fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0 && errno == EINVAL)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
