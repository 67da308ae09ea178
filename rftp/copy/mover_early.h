/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover_early: transfers that do not wait for the answer to their request: whether the
 * next one is such, and how it runs.
 */
#ifndef RFTP_MOVER_EARLY_H
#define RFTP_MOVER_EARLY_H

#include "rftp/copy/mover.h"

/* Before calls_store, if mover_send is next: whether that waits for the answer; flags of the
 * request. */
void mover_early_put(struct mover *, struct outgoing *, struct message_data_request *request);
/* The same before calls_retrieve and mover_receive, of what mover_request has filled in. */
void mover_early_get(
	struct mover *, bool several, bool stream, struct message_data_request *request);
/* transfer_send and transfer_receive of one that does not wait.  The caller has the client's lock,
 * which others get once the answer is here; mover.refused may be set. */
enum verdict_scope mover_early_send(struct mover *, struct transfer_params *,
	const struct transfer_source *, struct transfer_stats *);
enum verdict_scope mover_early_receive(struct mover *, struct transfer_params *,
	const struct transfer_sink *, struct transfer_stats *);

#endif
