/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs_name: what rdma-core's numbers are called here.
 */
#include <errno.h>

#include "fabric/verbs/verbs_impl.h"

/* What a send means, and what it means on a receive: devices complete receives with the errors of
 * the peer's request that used, or would have used them. */
static const struct {
	enum ibv_wc_status from;
	enum fabric_status send, receive;
	int error;
} statuses[] = {
	{IBV_WC_SUCCESS, FABRIC_OK, FABRIC_OK, 0},
	{IBV_WC_LOC_LEN_ERR, FABRIC_LOCAL_LENGTH, FABRIC_LOCAL_LENGTH, -EMSGSIZE},
	/* rxe says this of a receive too short for its SEND */
	{IBV_WC_LOC_QP_OP_ERR, FABRIC_FATAL, FABRIC_LOCAL_LENGTH, -EMSGSIZE},
	{IBV_WC_LOC_PROT_ERR, FABRIC_LOCAL_PROTECTION, FABRIC_LOCAL_PROTECTION, -EFAULT},
	{IBV_WC_LOC_ACCESS_ERR, FABRIC_LOCAL_PROTECTION, FABRIC_FLUSHED, -EACCES},
	{IBV_WC_WR_FLUSH_ERR, FABRIC_FLUSHED, FABRIC_FLUSHED, -ECONNRESET},
	{IBV_WC_REM_INV_REQ_ERR, FABRIC_REMOTE_OPERATION, FABRIC_LOCAL_LENGTH, -EMSGSIZE},
	{IBV_WC_REM_ACCESS_ERR, FABRIC_REMOTE_ACCESS, FABRIC_FLUSHED, -EACCES},
	{IBV_WC_REM_OP_ERR, FABRIC_REMOTE_OPERATION, FABRIC_FLUSHED, -EREMOTEIO},
	{IBV_WC_REM_ABORT_ERR, FABRIC_REMOTE_OPERATION, FABRIC_FLUSHED, -EREMOTEIO},
	{IBV_WC_RETRY_EXC_ERR, FABRIC_RETRY_EXCEEDED, FABRIC_FLUSHED, -ETIMEDOUT},
	{IBV_WC_RESP_TIMEOUT_ERR, FABRIC_RETRY_EXCEEDED, FABRIC_FLUSHED, -ETIMEDOUT},
	{IBV_WC_RNR_RETRY_EXC_ERR, FABRIC_RNR_EXCEEDED, FABRIC_FLUSHED, -ENOBUFS},
};

#define STATUSES (sizeof statuses / sizeof *statuses)

enum fabric_status verbs_name_status(enum ibv_wc_status status, bool receive)
{
	for (unsigned i = 0; i < STATUSES; i++)
		if (statuses[i].from == status)
			return receive ? statuses[i].receive : statuses[i].send;
	return FABRIC_FATAL;
}

int verbs_name_error(enum ibv_wc_status status)
{
	for (unsigned i = 0; i < STATUSES; i++)
		if (statuses[i].from == status)
			return statuses[i].error;
	return -EIO;
}

const char *verbs_name_transport(
	const struct ibv_context *context, const struct ibv_port_attr *port)
{
	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		return "iWARP";
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

unsigned verbs_name_mtu(enum ibv_mtu mtu)
{
	return 128u << mtu;
}
