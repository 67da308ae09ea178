/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status_engine: see status_engine.h.
 */
#include "engine/status_engine.h"

#include "proto/message.h"

const char *status_lacks(const struct fabric_caps *caps)
{
	if (!caps->has_read)
		return "RDMA READ";
	if (!caps->write_ordered)
		return "WRITEs that become visible in order";
	return NULL;
}

const struct engine_ops engine_status = {
	.name = "status",
	.id = MESSAGE_ENGINE_STATUS,
	.lacks = status_lacks,
	.source_open = status_source_open,
	.sink_open = status_sink_open,
};
