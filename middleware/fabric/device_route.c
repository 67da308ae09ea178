/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/device_route: which interface, and which of our addresses, the kernel would use towards an
 * address.  Sends nothing.
 */
#include "fabric/device.h"

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <unistd.h>

static socklen_t size_of(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
			&((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, 16);
	return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
}

int device_route(
	const struct sockaddr *dst, struct sockaddr_storage *source, char netdev[IF_NAMESIZE])
{
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	socklen_t len = sizeof *source;
	struct ifaddrs *all;

	*source = (struct sockaddr_storage){0};
	if (fd < 0)
		return -errno;
	/* of a datagram socket, connecting is routing */
	if (connect(fd, dst, size_of(dst)) < 0 ||
		getsockname(fd, (struct sockaddr *)source, &len) < 0)
		err = -errno;
	close(fd);
	if (!err && getifaddrs(&all) < 0)
		err = -errno;
	if (err)
		return err;
	err = -ENOENT;
	for (const struct ifaddrs *i = all; i && err; i = i->ifa_next) {
		if (!i->ifa_addr || !same_host(i->ifa_addr, (const struct sockaddr *)source) ||
			strlen(i->ifa_name) >= IF_NAMESIZE)
			continue;
		strcpy(netdev, i->ifa_name);
		err = 0;
	}
	freeifaddrs(all);
	return err;
}

int device_address(const char *netdev, struct sockaddr_storage *out)
{
	struct ifaddrs *all;
	int err = -ENOENT;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : 0;

		if ((family != AF_INET && family != AF_INET6) || strcmp(i->ifa_name, netdev) ||
			(!err && family == AF_INET6))
			continue;
		*out = (struct sockaddr_storage){0};
		memcpy(out, i->ifa_addr, size_of(i->ifa_addr));
		err = 0;
		if (family == AF_INET)
			break;
	}
	freeifaddrs(all);
	return err;
}
