/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/pull/pull_engine: see pull_engine.h.
 */
#include "engine/pull/pull_engine.h"

#include "engine/status/status_engine.h"
#include "proto/message.h"

const struct engine_ops engine_pull = {
	.name = "pull",
	.id = MESSAGE_ENGINE_PULL,
	.needs = ENGINE_NEEDS_READ | ENGINE_NEEDS_ORDER,
	.source = &status_source_ops,
	.sink = &pull_sink_ops,
	.called_source = &pull_source_ops,
	.called_sink = &status_sink_ops,
};
