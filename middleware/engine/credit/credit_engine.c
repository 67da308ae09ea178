/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/credit/credit_engine: see credit_engine.h.
 */
#include "engine/credit/credit_engine.h"

#include "proto/message.h"

const struct engine_ops engine_credit = {
	.name = "credit",
	.id = MESSAGE_ENGINE_CREDIT,
	.notices = true,
	.source = &credit_source_ops,
	.sink = &credit_sink_ops,
};
