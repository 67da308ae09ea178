/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/opener_wire: see opener_wire.h.
 */
#include "base/opener_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef SYS_fchmodat2
#define OPENER_SYS_FCHMODAT2 SYS_fchmodat2
#elif defined __alpha__ || defined __mips__
#define OPENER_SYS_FCHMODAT2 (-1) /* which no kernel has: ENOSYS */
#else
#define OPENER_SYS_FCHMODAT2 452 /* on all others */
#endif

union control { /* for its alignment */
	struct cmsghdr head;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

int opener_send(int fd, const void *data, size_t size, const int *fds, unsigned count)
{
	struct iovec iov = {(void *)(uintptr_t)data, size};
	union control control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (count) {
		struct cmsghdr *c = &control.head;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

long opener_recv(int fd, void *data, size_t size, int fds[2])
{
	/* recvmsg fills it */
	/* cppcheck-suppress ctuuninitvar */
	struct iovec iov = {data, size};
	union control control = {0};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control};
	struct cmsghdr *c;
	ssize_t n;

	fds[0] = fds[1] = -1;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c),
				c->cmsg_len - CMSG_LEN(0) < 2 * sizeof(int)
					? c->cmsg_len - CMSG_LEN(0)
					: 2 * sizeof(int));
	if (!(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	for (unsigned i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return -EMSGSIZE;
}

int opener_change_mode(int fd, uint32_t mode)
{
	return (int)syscall(OPENER_SYS_FCHMODAT2, fd, "", mode, AT_EMPTY_PATH);
}
