/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/select: the one place that knows which fabrics there are.  `loop` is for tests, which open
 * it themselves.
 */
#include "fabric/select.h"

#include "base/addr.h"
#include "fabric/device.h"
#include "fabric/soft/soft.h"
#ifdef RFTP_VERBS
#include "fabric/verbs/verbs.h"
#endif

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int open_soft(const struct select_config *config, struct fabric **out)
{
	struct soft_config soft = {
		.threads = config->threads,
		.handshake_ms = config->handshake_ms,
		.crc = config->crc,
		.inherited = config->inherited,
		.inherited_count = config->inherited_count,
	};

	return soft_open(&soft, out);
}

#ifdef RFTP_VERBS
static int open_verbs(const struct select_config *config, struct fabric **out)
{
	(void)config; /* its threads and deadlines are the kernel's */
	return verbs_open(out);
}
#endif

static const struct fabric_choice {
	const char *name;
	int (*open)(const struct select_config *, struct fabric **);
	bool devices;             /* needs RDMA devices */
	void (*close_gone)(void); /* NULL: nothing to do */
	bool tcp;                 /* listens on a TCP port of the host */
} fabrics[] = {
#ifdef RFTP_VERBS
	{"verbs", open_verbs, true, verbs_close_gone, false},
#endif
	{"soft", open_soft, false, NULL, true},
};

#define FABRICS (sizeof fabrics / sizeof *fabrics)

const char *select_name(unsigned i)
{
	return i < FABRICS ? fabrics[i].name : NULL;
}

static const struct fabric_choice *find(const char *name)
{
	for (unsigned i = 0; i < FABRICS; i++)
		if (!strcmp(fabrics[i].name, name))
			return &fabrics[i];
	return NULL;
}

int select_open(const char *name, const struct select_config *config, struct fabric **out)
{
	static const struct select_config defaults;
	const struct fabric_choice *f = find(name);

	return f ? f->open(config ? config : &defaults, out) : -ENOENT;
}

const char *select_open_text(int error)
{
	switch (error) {
	case -ENODEV:
		return "no RDMA device on this host";
	case -EACCES:
		return "there are RDMA devices, but /dev/infiniband/rdma_cm is not for this user";
	case -ENOENT:
		return "not in this build";
	default:
		return strerror(-error);
	}
}

int select_reaches(const char *name, const struct sockaddr *dst, char why[SELECT_WHY_MAX])
{
	const struct fabric_choice *f = find(name);

	/* the connection manager would take any device for a loopback address, and never arrive */
	if (!f || !f->devices || !addr_is_loopback(dst))
		return 0;
	snprintf(why, SELECT_WHY_MAX, "no RDMA device has a loopback address");
	return -ENODEV;
}

bool select_comes_last(const char *name, const struct sockaddr *dst, char why[SELECT_WHY_MAX])
{
	const struct fabric_choice *f = find(name);
	struct sockaddr_storage source;
	char netdev[IF_NAMESIZE], device[64];

	if (!f || !f->devices || addr_is_loopback(dst) || device_route(dst, &source, netdev) ||
		!device_in_software("", netdev, device))
		return false;
	snprintf(why, SELECT_WHY_MAX, "%s is RDMA in software, and soft is faster", device);
	return true;
}

void select_explain(const char *name, const struct sockaddr *dst, char why[SELECT_WHY_MAX])
{
	const struct fabric_choice *f = find(name);
	struct sockaddr_storage source;
	char netdev[IF_NAMESIZE];

	if (f && f->devices && !device_route(dst, &source, netdev))
		snprintf(why, SELECT_WHY_MAX, "no RDMA device leads there: the way is %s", netdev);
	else
		snprintf(why, SELECT_WHY_MAX, "no RDMA device leads there");
}

bool select_is_plugged(const char *name)
{
	const struct fabric_choice *f = find(name);

	return f && f->devices;
}

uint64_t select_stamp(const char *name)
{
	return select_is_plugged(name) ? device_stamp("") : 0;
}

void select_close_gone(const char *name)
{
	const struct fabric_choice *f = find(name);

	if (f && f->close_gone)
		f->close_gone();
}

bool select_port_is_shared(const char *name)
{
	const struct fabric_choice *f = find(name);

	return f && f->tcp && device_any_iwarp("");
}
