/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_engine: see status_engine.h.
 */
#include "engine/status/status_engine.h"

#include "proto/message.h"

#include <sys/prctl.h>

#define SLACK_NS 1000ul

const char *status_lacks(const struct fabric_caps *caps)
{
	if (!caps->has_read)
		return "RDMA READ";
	if (!caps->write_ordered)
		return "WRITEs that become visible in order";
	return NULL;
}

int status_naps_fine(void)
{
	int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
	return before;
}

void status_naps_coarse(int before)
{
	if (before > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)before, 0, 0, 0);
}

const struct engine_ops engine_status = {
	.name = "status",
	.id = MESSAGE_ENGINE_STATUS,
	.lacks = status_lacks,
	.source_open = status_source_open,
	.sink_open = status_sink_open,
};
