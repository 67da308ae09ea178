/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/changes: modes, times and owners of many names at the server, many in one request.
 */
#ifndef RFTP_CHANGES_H
#define RFTP_CHANGES_H

#include "proto/message_change.h"
#include "rftp/remote/client.h"

struct changes;

/* NULL: no memory, reported. */
struct changes *changes_new(struct client *);
/* What was not sent goes. */
void changes_free(struct changes *);
/* Those with MESSAGE_CHANGE_SEEN that are not what was seen any more are told of here, by the
 * number of their changes_add, from 0, and are no errors. */
void changes_tell_changed(struct changes *, void (*)(void *ctx, size_t number), void *ctx);
/* One more; sends what is collected when that is enough.  0 or -errno: the session is lost or
 * there is no memory, reported. */
int changes_add(struct changes *, const char *path, struct message_change);
/* Sends the rest.  0; -errno likewise; or the error of a name that could not be changed: each is
 * reported, and keeps none of the others back. */
int changes_end(struct changes *);

#endif
