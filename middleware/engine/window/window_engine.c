/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/window/window_engine: see window_engine.h.
 */
#include "engine/window/window_engine.h"

#include "proto/message.h"

int window_post_receives(const struct engine_env *env, uint32_t slots)
{
	int err = 0;

	for (unsigned i = 0; i < env->channel_count && !err; i++)
		err = channel_post_notices(env->channels[i], slots);
	return err;
}

const struct engine_ops engine_window = {
	.name = "window",
	.id = MESSAGE_ENGINE_WINDOW,
	.notices = true,
	.source = &window_source_ops,
	.sink = &window_sink_ops,
};
