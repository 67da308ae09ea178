/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fake_host.h: a directory that looks like the /sys, /proc and /dev of another host: RDMA
 * devices where there are none.
 */
#ifndef TESTS_FAKE_HOST_H
#define TESTS_FAKE_HOST_H

#include "tests/scratch.h"

#include <stdarg.h>

/* ROOT/path, made with its directories, holds `text` and a newline. */
static inline void fake_file(const char *root, const char *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline void fake_file(const char *root, const char *text, const char *format, ...)
{
	char path[512], line[4096];
	int n = snprintf(path, sizeof path, "%s", root);
	va_list ap;

	va_start(ap, format);
	vsnprintf(path + n, sizeof path - (size_t)n, format, ap);
	va_end(ap);
	for (char *at = path + n + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			abort();
		*at = '/';
	}
	snprintf(line, sizeof line, "%s\n", text);
	if (!scratch_write(path, line))
		abort();
}

struct fake_port {
	const char *device, *node_type, *state, *link_layer, *rate, *numa_node;
};

static inline void fake_port(const char *root, const struct fake_port *p)
{
	static const char dir[] = "/sys/class/infiniband";

	fake_file(root, p->node_type ? p->node_type : "1: CA", "%s/%s/node_type", dir, p->device);
	fake_file(root, p->state ? p->state : "4: ACTIVE", "%s/%s/ports/1/state", dir, p->device);
	fake_file(root, p->link_layer ? p->link_layer : "Ethernet", "%s/%s/ports/1/link_layer", dir,
		p->device);
	fake_file(root, p->rate ? p->rate : "100 Gb/sec (4X EDR)", "%s/%s/ports/1/rate", dir,
		p->device);
	if (p->numa_node)
		fake_file(root, p->numa_node, "%s/%s/device/numa_node", dir, p->device);
}

static inline void fake_gid(const char *root, const char *device, unsigned index, const char *gid,
	const char *type, const char *netdev)
{
	static const char dir[] = "/sys/class/infiniband";

	fake_file(root, gid, "%s/%s/ports/1/gids/%u", dir, device, index);
	if (type)
		fake_file(root, type, "%s/%s/ports/1/gid_attrs/types/%u", dir, device, index);
	if (netdev)
		fake_file(root, netdev, "%s/%s/ports/1/gid_attrs/ndevs/%u", dir, device, index);
}

#define FAKE_GID_EMPTY "0000:0000:0000:0000:0000:0000:0000:0000"
#define FAKE_GID_LINK "fe80:0000:0000:0000:5054:00ff:fe12:3456"
#define FAKE_GID_10_6_0_1 "0000:0000:0000:0000:0000:ffff:0a06:0001"

/* RoCE on eth7, GIDs as the kernel makes them: v1 and v2 of each address. */
static inline void fake_roce(const char *root, const char *device)
{
	fake_port(root, &(struct fake_port){.device = device, .numa_node = "1"});
	fake_gid(root, device, 0, FAKE_GID_LINK, "IB/RoCE v1", "eth7");
	fake_gid(root, device, 1, FAKE_GID_LINK, "RoCE v2", "eth7");
	fake_gid(root, device, 2, FAKE_GID_10_6_0_1, "IB/RoCE v1", "eth7");
	fake_gid(root, device, 3, FAKE_GID_10_6_0_1, "RoCE v2", "eth7");
	fake_gid(root, device, 4, FAKE_GID_EMPTY, NULL, NULL);
	fake_file(root, "1500", "/sys/class/net/eth7/mtu");
}

#endif
