/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/reread: see reread.h.
 */
#include "transfer/reread.h"

#include "block/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* From now on reads go through a page cache that has nothing of the file. */
static int reread_drop(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_DIRECT))
		return -errno;
	while (fdatasync(fd))
		if (errno != EINTR)
			return -errno;
	return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Up to a block; less at the end of the file.  Bytes or -errno. */
static ssize_t reread_block(int fd, uint8_t *buffer, uint32_t block, uint64_t at)
{
	size_t done = 0;
	bool dropped = false;

	while (done < block) {
		ssize_t n = pread(fd, buffer + done, block - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		/* opened with O_DIRECT, and refuses it now, or behind a short read */
		if (n < 0 && errno == EINVAL && !dropped) {
			int err = reread_drop(fd);

			if (err)
				return err;
			dropped = true;
			continue;
		}
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int reread_root(const struct end *end, uint64_t size, uint32_t block_bytes, uint64_t entry,
	bool cached, const atomic_bool *stop, uint64_t *root)
{
	struct digest_tree *tree = NULL;
	void *buffer = NULL;
	uint64_t at = 0, count = 0;
	int fd = end_file_again(end), flags, err;

	if (fd < 0)
		return fd;
	flags = fcntl(fd, F_GETFL);
	if (cached)
		err = flags & O_DIRECT && fcntl(fd, F_SETFL, flags & ~O_DIRECT) < 0 ? -errno : 0;
	else
		err = flags & O_DIRECT ? 0 : reread_drop(fd);
	if (!err)
		err = digest_tree_new(&tree);
	if (!err)
		err = -posix_memalign(&buffer, BLOCK_ALIGN, block_bytes);
	while (!err && at < size) {
		ssize_t n = reread_block(fd, buffer, block_bytes, at);

		if (atomic_load_explicit(stop, memory_order_relaxed))
			err = -ECANCELED;
		else if (n <= 0)
			err = n ? (int)n : -ENODATA;
		else
			err = digest_tree_add(tree, count++, digest_leaf(buffer, (size_t)n));
		at += err ? 0 : (uint64_t)n;
	}
	if (!err && at != size)
		err = -ENODATA;
	if (!err)
		err = digest_tree_root(tree, count, size, entry, root);
	free(buffer);
	digest_tree_free(tree);
	close(fd);
	return err;
}
