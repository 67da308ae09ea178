/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor_port.c: the ports of the RDMA devices: state and rate, MTU, which GID
 * connections use, and where in the machine they are.
 */
#include "rftp/doctor/doctor_impl.h"

#include "base/addr.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_OBJECT_BYTES 80
#define PORT_MEND_BYTES 200

static const char *port_object(const struct device_port *p, char out[PORT_OBJECT_BYTES])
{
	snprintf(out, PORT_OBJECT_BYTES, "%s port %u", p->device, p->port);
	return out;
}

static bool port_is_ethernet(const struct device_port *p)
{
	return p->iwarp || !strcmp(p->link_layer, "Ethernet");
}

static bool port_is_active(const struct device_port *p)
{
	return !strcmp(p->state, "ACTIVE");
}

/* One row for them all where there is none. */
static bool port_none(struct doctor *d)
{
	if (!d->port_count)
		doctor_say(d, DOCTOR_SKIP, "", NULL, "no RDMA device");
	return !d->port_count;
}

void doctor_state(struct doctor *d)
{
	char object[PORT_OBJECT_BYTES], mend[PORT_MEND_BYTES];
	bool any = false;

	if (port_none(d))
		return;
	for (unsigned i = 0; i < d->port_count; i++)
		any |= port_is_active(&d->ports[i]);
	for (unsigned i = 0; i < d->port_count; i++) {
		const struct device_port *p = &d->ports[i];

		port_object(p, object);
		if (port_is_active(p)) {
			doctor_say(d, DOCTOR_OK, object, NULL, "%s, %s, %s%s%s", p->state,
				p->link_layer, p->rate, p->netdev[0] ? ", over " : "", p->netdev);
			continue;
		}
		if (!port_is_ethernet(p) && !strcmp(p->state, "INIT"))
			snprintf(mend, sizeof mend,
				"systemctl start opensm  (on one host of the network)");
		else if (p->netdev[0])
			snprintf(mend, sizeof mend, "ip link set dev %s up", p->netdev);
		else
			snprintf(mend, sizeof mend, "rdma link show; look at cable and switch");
		/* one of several may be left unconnected on purpose */
		doctor_say(d, any ? DOCTOR_INFO : DOCTOR_FAIL, object, mend, "%s, not ACTIVE",
			p->state[0] ? p->state : "unknown");
	}
}

/* ---- MTU ---- */

static void port_mtu(
	struct doctor *d, const struct device_port *p, const struct device_probe *probe)
{
	char object[PORT_OBJECT_BYTES], mend[PORT_MEND_BYTES], path[64 + IF_NAMESIZE],
		line[32] = "";

	port_object(p, object);
	snprintf(path, sizeof path, "/sys/class/net/%s/mtu", p->netdev);
	if (p->netdev[0])
		doctor_read(d, path, line, sizeof line);
	if (p->iwarp) {
		doctor_say(d, DOCTOR_OK, object, NULL, "of %s: %s (iWARP leaves it to TCP)",
			p->netdev[0] ? p->netdev : "its interface", line[0] ? line : "unknown");
	} else if (probe->active_mtu >= probe->max_mtu || !port_is_ethernet(p)) {
		doctor_say(d, DOCTOR_OK, object, NULL, "%u of at most %u", probe->active_mtu,
			probe->max_mtu);
	} else {
		/* a frame has headers of RoCE, IP and Ethernet's own besides */
		snprintf(mend, sizeof mend,
			"ip link set dev %s mtu %u  (if all on the way carry it)",
			p->netdev[0] ? p->netdev : "DEV", probe->max_mtu + 100);
		doctor_say(d, DOCTOR_INFO, object, mend,
			"%u of at most %u, from %s's %s: more packets", probe->active_mtu,
			probe->max_mtu, p->netdev[0] ? p->netdev : "the interface",
			line[0] ? line : "unknown");
	}
}

void doctor_mtu(struct doctor *d)
{
	char object[PORT_OBJECT_BYTES];

	if (port_none(d))
		return;
	for (unsigned i = 0; i < d->port_count; i++) {
		struct device_probe probe;
		int err = d->no_rights ? -EACCES : d->probe(&d->ports[i], &probe);

		if (!port_is_active(&d->ports[i]))
			doctor_say(d, DOCTOR_SKIP, port_object(&d->ports[i], object), NULL,
				"the port is not active");
		else if (err)
			doctor_say(d, DOCTOR_SKIP, port_object(&d->ports[i], object), NULL,
				"the device cannot be asked: %s", strerror(-err));
		else
			port_mtu(d, &d->ports[i], &probe);
	}
}

/* ---- GID ---- */

/* Where connections over the port start: the way to the server, when it leads over it. */
static bool port_source(struct doctor *d, const struct device_port *p, struct sockaddr_storage *out,
	bool *to_server)
{
	struct addr addresses[4];
	char netdev[IF_NAMESIZE];
	size_t count = 0;

	*to_server = false;
	if (d->session.host)
		addr_resolve(d->session.host, d->session.port, false, addresses, 4, &count);
	for (size_t i = 0; i < count && !*to_server; i++)
		*to_server =
			!device_route((const struct sockaddr *)&addresses[i].ss, out, netdev) &&
			!strcmp(netdev, p->netdev);
	return *to_server || (p->netdev[0] && !device_address(p->netdev, out));
}

static void port_gid(struct doctor *d, const struct device_port *p)
{
	char object[PORT_OBJECT_BYTES], mend[PORT_MEND_BYTES], from[ADDR_TEXT_MAX];
	struct device_gid gids[DEVICE_GIDS_MAX];
	unsigned count = device_gids(d->root, p, gids);
	struct sockaddr_storage source;
	const struct device_gid *gid;
	bool to_server, known = port_source(d, p, &source, &to_server);

	port_object(p, object);
	gid = device_pick_gid(p, gids, count, known ? (const struct sockaddr *)&source : NULL);
	if (!gid) {
		snprintf(mend, sizeof mend, "ip addr add ADDRESS/LENGTH dev %s",
			p->netdev[0] ? p->netdev : "DEV");
		doctor_say(d, port_is_active(p) ? DOCTOR_FAIL : DOCTOR_SKIP, object,
			port_is_active(p) ? mend : NULL,
			"none of its %u GIDs is made of an address that connections start from",
			count);
		return;
	}
	if (!port_is_ethernet(p) || p->iwarp) {
		doctor_say(d, DOCTOR_OK, object, NULL, "index %u, %s: the port's own", gid->index,
			gid->text);
		return;
	}
	from[0] = '\0';
	if (known) {
		addr_set_port((struct sockaddr *)&source, 0);
		addr_format((const struct sockaddr *)&source, from);
		from[strlen(from) - strlen(":0")] = '\0';
	}
	if (!strstr(gid->type, "v2")) {
		snprintf(mend, sizeof mend, "cma_roce_mode -d %s -p %u -m 2", p->device, p->port);
		doctor_say(d, DOCTOR_WARN, object, mend,
			"index %u, %s, %s: there is none of RoCE v2, and v1 crosses no router",
			gid->index, gid->text, gid->type);
		return;
	}
	doctor_say(d, DOCTOR_OK, object, NULL, "index %u, %s, %s: made of %s%s", gid->index,
		gid->text, gid->type, from[0] ? from : "an address of the interface",
		to_server ? ", where the way to the server starts" : "");
}

void doctor_gid(struct doctor *d)
{
	if (port_none(d))
		return;
	for (unsigned i = 0; i < d->port_count; i++)
		port_gid(d, &d->ports[i]);
}

/* ---- NUMA ---- */

/* How many CPUs of a list such as "0-3,8" this process may run on, and how many it names. */
static void port_cpus(const char *list, unsigned *ours, unsigned *all)
{
	cpu_set_t allowed;

	*ours = *all = 0;
	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof allowed, &allowed);
	for (const char *at = list; *at;) {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (end == at)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) {
			++*all;
			*ours += CPU_ISSET(cpu, &allowed) != 0;
		}
		at = end + (*end == ',');
	}
}

static void port_numa(struct doctor *d, const struct device_port *p)
{
	char path[64], list[256], mend[PORT_MEND_BYTES];
	unsigned ours, all;

	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", p->numa_node);
	if (p->numa_node < 0 || !doctor_exists(d, "/sys/devices/system/node/node1") ||
		!doctor_read(d, path, list, sizeof list)) {
		doctor_say(d, DOCTOR_OK, p->device, NULL, "as near to all CPUs");
		return;
	}
	port_cpus(list, &ours, &all);
	snprintf(mend, sizeof mend, "numactl --cpunodebind=%d --membind=%d rftp ...", p->numa_node,
		p->numa_node);
	doctor_say(d, ours ? DOCTOR_OK : DOCTOR_WARN, p->device, ours ? NULL : mend,
		"node %d, CPUs %s: this program may run on %u of %u", p->numa_node, list, ours,
		all);
}

void doctor_numa(struct doctor *d)
{
	if (port_none(d))
		return;
	for (unsigned i = 0; i < d->port_count; i++)
		if (!i || strcmp(d->ports[i].device, d->ports[i - 1].device))
			port_numa(d, &d->ports[i]);
}
