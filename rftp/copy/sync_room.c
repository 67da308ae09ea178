/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_room: see sync_room.h.
 */
#include "rftp/copy/sync_room.h"

#include "tree/incoming.h"

#include <fcntl.h>

/* The server is asked for names, and does not know how much that will be; a listing does not say
 * how large holes are: files that have some count as nothing. */
int sync_room(struct client *c, const struct sync_params *p, const struct compare_plan *plan)
{
	const struct incoming_params params = {.kind = INCOMING_INTO,
		.top = AT_FDCWD,
		.path = p->local,
		.fd = -1,
		.replace = true};
	const struct transfer_room room = {
		.bytes = compare_plan_room(plan), .files = MESSAGE_UNKNOWN, .net = true};
	struct incoming *incoming;
	char text[512] = "";
	int err;

	if (incoming_new(&params, &incoming))
		return 0; /* what is wrong with it is told soon */
	err = incoming_sink(incoming)->room(incoming, &room, text);
	incoming_free(incoming);
	if (err)
		report_errorf(&c->report, err, p->local, "%s (%s)",
			status_text(status_from_errno(err)), text);
	return err;
}
