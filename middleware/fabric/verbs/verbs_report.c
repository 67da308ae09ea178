/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_report: what only the device itself can say of a port: the calls of
 * fabric/device that open it.  Each opens it, asks, and closes it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fabric/device.h"
#include "fabric/verbs/verbs_impl.h"

/* -ENOENT: no provider library claims the device. */
static int open_device(const char *name, struct ibv_context **out)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	int err = -ENOENT;

	if (!all)
		return -errno;
	for (struct ibv_device **d = all; *d && err == -ENOENT; d++) {
		if (strcmp(ibv_get_device_name(*d), name))
			continue;
		errno = 0;
		*out = ibv_open_device(*d);
		err = *out ? 0 : errno ? -errno : -EIO;
	}
	ibv_free_device_list(all);
	return err;
}

int device_probe(const struct device_port *p, struct device_probe *out)
{
	struct ibv_device_attr device = {0};
	struct ibv_port_attr port = {0};
	struct ibv_context *context;
	int err = open_device(p->device, &context);

	*out = (struct device_probe){0};
	if (err)
		return err;
	err = ibv_query_port(context, (uint8_t)p->port, &port);
	if (!err)
		err = ibv_query_device(context, &device);
	if (!err) {
		out->active_mtu = verbs_name_mtu(port.active_mtu);
		out->max_mtu = verbs_name_mtu(port.max_mtu);
		out->max_qp = (unsigned)device.max_qp;
		out->max_cqe = (unsigned)device.max_cqe;
		snprintf(out->firmware, sizeof out->firmware, "%.63s", device.fw_ver);
	}
	ibv_close_device(context);
	return err > 0 ? -err : err;
}

int device_register(const struct device_port *p, size_t bytes)
{
	struct ibv_context *context;
	struct ibv_mr *mr = NULL;
	struct ibv_pd *pd;
	void *memory;
	int err = open_device(p->device, &context);

	if (err)
		return err;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		err = -ENOMEM;
		goto out_close;
	}
	errno = 0;
	pd = ibv_alloc_pd(context);
	if (pd)
		mr = ibv_reg_mr(
			pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr) /* of the limit, drivers do not agree on the word */
		err = !errno || errno == EPERM || errno == EAGAIN ? -ENOMEM : -errno;
	else
		ibv_dereg_mr(mr);
	if (pd)
		ibv_dealloc_pd(pd);
	munmap(memory, bytes);
out_close:
	ibv_close_device(context);
	return err;
}
