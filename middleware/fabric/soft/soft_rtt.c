/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_rtt: what TCP knows of the round trip.
 *
 * In a file of its own because <netinet/tcp.h> lacks the field, and the kernel's header, which has
 * it, cannot be included beside it.
 */
#include "base/clock.h"
#include "fabric/soft/soft_impl.h"

#include <linux/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

uint64_t soft_rtt_ns(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	if (len < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt ||
		info.tcpi_min_rtt == UINT32_MAX) /* it has no sample */
		return 0;
	return (uint64_t)info.tcpi_min_rtt * 1000;
}
