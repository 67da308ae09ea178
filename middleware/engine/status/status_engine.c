/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/status/status_engine: see status_engine.h.
 */
#include "engine/status/status_engine.h"

#include "proto/message.h"

#include <sys/prctl.h>

#define SLACK_NS 1000ul

int status_sleeps_fine(void)
{
	int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
	return before;
}

void status_sleeps_coarse(int before)
{
	if (before > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)before, 0, 0, 0);
}

const struct engine_ops engine_status = {
	.name = "status",
	.id = MESSAGE_ENGINE_STATUS,
	.needs = ENGINE_NEEDS_READ | ENGINE_NEEDS_ORDER,
	.source = &status_source_ops,
	.sink = &status_sink_ops,
};
