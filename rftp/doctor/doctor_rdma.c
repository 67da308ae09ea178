/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor_rdma.c: what RDMA needs of this host: modules, devices, rights, memory that
 * may be registered.
 */
#include "rftp/doctor/doctor_impl.h"

#include "fabric/select.h"
#include "rftp/ui/text.h"
#include "rftp/ui/units.h"
#include "transfer/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NIC_TRIAL_BYTES ((size_t)64 << 20)
#define NIC_LEAST_BYTES ((size_t)1 << 20) /* less is of no use: a few blocks */
#define NIC_MEND_BYTES 128

/* Of Linux's drivers/infiniband: the hardware's, then the software's. */
static const char *const nic_drivers[] = {
	"mlx5_ib",
	"mlx4_ib",
	"irdma",
	"bnxt_re",
	"iw_cxgb4",
	"qedr",
	"hns_roce_hw_v2",
	"hns_roce",
	"efa",
	"mana_ib",
	"erdma",
	"ocrdma",
	"vmw_pvrdma",
	"ib_mthca",
	"hfi1",
	"qib",
	"usnic_verbs",
	"i40iw",
	"rdma_rxe",
	"siw",
};
static const char *const nic_core[] = {"ib_uverbs", "rdma_cm", "rdma_ucm"};

/* A device in software, over an interface of this host: RoCE for hosts without an adapter. */
static const char *nic_software(const struct doctor *d, char out[NIC_MEND_BYTES])
{
	char netdev[IF_NAMESIZE] = "DEV", path[128], line[32];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof path, "%.64s/sys/class/net", d->root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof netdev)
			continue;
		snprintf(path, sizeof path, "/sys/class/net/%.16s/type", entry->d_name);
		if (!doctor_read(d, path, line, sizeof line) || strcmp(line, "1")) /* Ethernet */
			continue;
		snprintf(path, sizeof path, "/sys/class/net/%.16s/operstate", entry->d_name);
		if (doctor_read(d, path, line, sizeof line) && !strcmp(line, "up"))
			strcpy(netdev, entry->d_name);
	}
	if (dir)
		closedir(dir);
	snprintf(out, NIC_MEND_BYTES, "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev %s",
		netdev);
	return out;
}

static bool nic_in_build(void)
{
	for (unsigned i = 0; select_name(i); i++)
		if (!strcmp(select_name(i), "verbs"))
			return true;
	return false;
}

static void nic_list_modules(
	const struct doctor *d, const char *const *names, size_t count, struct text *out)
{
	char path[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/sys/module/%s", names[i]);
		if (doctor_exists(d, path))
			text_printf(out, "%s%s", out->len ? ", " : "", names[i]);
	}
}

void doctor_modules(struct doctor *d)
{
	struct text core = {0}, drivers = {0};
	char mend[NIC_MEND_BYTES];

	nic_list_modules(d, nic_core, sizeof nic_core / sizeof *nic_core, &core);
	nic_list_modules(d, nic_drivers, sizeof nic_drivers / sizeof *nic_drivers, &drivers);
	if (!nic_in_build())
		doctor_say(d, DOCTOR_INFO, "",
			"apt-get install libibverbs-dev librdmacm-dev && make VERBS=yes",
			"this rftp is built without verbs: fabric soft only");
	if (!d->port_count && !drivers.len)
		/* RDMA in software is for trying things out: soft is faster */
		doctor_say(d, doctor_wants_verbs(d) ? DOCTOR_FAIL : DOCTOR_INFO, "",
			doctor_wants_verbs(d) ? nic_software(d, mend) : NULL,
			"no driver of an RDMA device is loaded%s%s", core.len ? "; loaded: " : "",
			text_str(&core));
	else if (d->port_count && !doctor_exists(d, "/dev/infiniband/rdma_cm"))
		doctor_say(d, DOCTOR_FAIL, "", "modprobe rdma_ucm",
			"no /dev/infiniband/rdma_cm: connections cannot be managed (loaded: "
			"%s%s%s)",
			text_str(&core), core.len && drivers.len ? ", " : "", text_str(&drivers));
	else if (!d->port_count)
		doctor_say(d, doctor_wants_verbs(d) ? DOCTOR_FAIL : DOCTOR_INFO, "", NULL,
			"loaded, but no device has come of it: %s%s%s", text_str(&core),
			core.len ? ", " : "", text_str(&drivers));
	else
		doctor_say(d, DOCTOR_OK, "", NULL, "%s%s%s", text_str(&core),
			core.len && drivers.len ? ", " : "", text_str(&drivers));
	text_fini(&core);
	text_fini(&drivers);
}

/* Each device once, by its first port. */
static bool nic_is_first(const struct doctor *d, unsigned i)
{
	return !i || strcmp(d->ports[i].device, d->ports[i - 1].device);
}

static void nic_device(struct doctor *d, const struct device_port *p)
{
	struct device_probe probe;
	int err = d->no_rights ? -EACCES : d->probe(p, &probe);

	switch (err) {
	case 0:
		doctor_say(d, DOCTOR_OK, p->device, NULL,
			"%s%s%s, its provider library opens it%s%s%s",
			p->iwarp                             ? "iWARP"
			: !strcmp(p->link_layer, "Ethernet") ? "RoCE"
							     : "InfiniBand",
			p->driver[0] ? ", driver " : ", in software", p->driver,
			probe.firmware[0] ? ", firmware " : "", probe.firmware,
			p->driver[0] ? "" : "; soft is faster, so --fabric=auto passes it over");
		break;
	case -ENOSYS:
		doctor_say(
			d, DOCTOR_SKIP, p->device, NULL, "this build has no verbs to open it with");
		break;
	case -ENOENT:
		doctor_say(d, DOCTOR_FAIL, p->device, "apt-get install ibverbs-providers",
			"no provider library of libibverbs knows it");
		break;
	case -EACCES:
	case -EPERM:
		doctor_say(d, d->no_rights ? DOCTOR_SKIP : DOCTOR_FAIL, p->device,
			d->no_rights ? NULL : "ls -l /dev/infiniband", "it is not for this user");
		break;
	default:
		doctor_say(d, DOCTOR_FAIL, p->device, "dmesg | tail", "cannot be opened: %s",
			strerror(-err));
	}
}

void doctor_devices(struct doctor *d)
{
	if (!d->port_count)
		doctor_say(d, doctor_wants_verbs(d) ? DOCTOR_FAIL : DOCTOR_INFO, "", NULL,
			"no RDMA device on this host%s",
			doctor_wants_verbs(d) ? "" : "; fabric soft needs none");
	for (unsigned i = 0; i < d->port_count; i++)
		if (nic_is_first(d, i))
			nic_device(d, &d->ports[i]);
}

/* ---- rights ---- */

static bool nic_right(struct doctor *d, const char *path)
{
	char whole[512], mend[600];

	snprintf(whole, sizeof whole, "%s%s", d->root, path);
	if (!access(whole, R_OK | W_OK))
		return true;
	if (errno == ENOENT)
		doctor_say(d, DOCTOR_FAIL, path, "modprobe -a ib_uverbs rdma_ucm", "is not there");
	else {
		snprintf(mend, sizeof mend, "chmod 666 %s  (lasting: a udev rule, MODE=\"0666\")",
			path);
		doctor_say(d, DOCTOR_FAIL, path, mend, "%s", strerror(errno));
	}
	return false;
}

void doctor_rights(struct doctor *d)
{
	char path[128], verbs[64];
	bool all = true;

	if (!d->port_count) {
		doctor_say(d, DOCTOR_SKIP, "", NULL, "no RDMA device");
		return;
	}
	all &= nic_right(d, "/dev/infiniband/rdma_cm");
	/* uverbs0, uverbs1, ...: /sys says whose each is, but what matters is that all may be
	 * opened */
	for (unsigned i = 0; i < DEVICE_PORTS_MAX; i++) {
		snprintf(path, sizeof path, "/sys/class/infiniband_verbs/uverbs%u/ibdev", i);
		if (!doctor_read(d, path, verbs, sizeof verbs))
			continue;
		snprintf(path, sizeof path, "/dev/infiniband/uverbs%u", i);
		all &= nic_right(d, path);
	}
	d->no_rights = !all;
	if (all)
		doctor_say(d, DOCTOR_OK, "", NULL, "/dev/infiniband may be read and written");
}

/* ---- registered memory ---- */

static void nic_trial(struct doctor *d, const struct device_port *p, const char *limit, bool binds)
{
	static const char mend[] =
		"ulimit -l unlimited  (lasting: memlock in /etc/security/limits.conf, "
		"LimitMEMLOCK=infinity in a unit)";
	int err = d->no_rights ? -EACCES : d->try_register(p, NIC_TRIAL_BYTES), less = err;

	if (d->no_rights) {
		doctor_say(d, DOCTOR_SKIP, p->device, NULL,
			"limit %s; the device is not for this user", limit);
		return;
	}
	if (err == -ENOSYS) {
		doctor_say(d, DOCTOR_SKIP, p->device, NULL,
			"limit %s; this build has no verbs to try it", limit);
		return;
	}
	if (err == -ENOMEM)
		less = d->try_register(p, NIC_LEAST_BYTES);
	if (!err)
		doctor_say(d, binds ? DOCTOR_WARN : DOCTOR_OK, p->device, binds ? mend : NULL,
			"64 MiB were registered; limit %s%s", limit,
			binds ? ": a transfer's window may have to be smaller than the 512 MiB "
				"that it "
				"may grow to"
			      : "");
	else if (!less)
		doctor_say(d, DOCTOR_WARN, p->device, mend,
			"64 MiB cannot be registered, 1 MiB can: the window shrinks to fit; limit "
			"%s",
			limit);
	else
		doctor_say(d, DOCTOR_FAIL, p->device, less == -ENOMEM ? mend : "dmesg | tail",
			"no memory can be registered: %s; limit %s", strerror(-less), limit);
}

void doctor_memlock(struct doctor *d)
{
	char text[UNITS_TEXT_MAX] = "unlimited";
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY)
		units_format_size(limit.rlim_cur, text);
	if (!d->port_count)
		doctor_say(d, DOCTOR_OK, "", NULL, "limit %s; without RDMA devices none is locked",
			text);
	for (unsigned i = 0; i < d->port_count; i++)
		if (nic_is_first(d, i))
			nic_trial(d, &d->ports[i], text,
				limit.rlim_cur >= NIC_TRIAL_BYTES &&
					limit.rlim_cur < TRANSFER_WINDOW_MAX);
}
