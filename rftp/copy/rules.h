/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/rules: the setting `filter` as rules for a tree here, and as a list for a server.
 */
#ifndef RFTP_RULES_H
#define RFTP_RULES_H

#include "proto/message.h"
#include "rftp/copy/again.h"
#include "rftp/remote/client.h"
#include "tree/filter.h"

/* The rules; files that they name are read now.  `out` is zeroed before.  With retry-from, also by
 * which names are copied again; 0 or -errno (reported). */
int rules_read(struct client *, struct filter *out);
/* The same where there are several sources: what of retry-from are sources is in `again`, which is
 * zeroed before, and `whole` has the rules for these. */
int rules_read_again(
	struct client *, struct filter *out, struct filter *whole, struct again *again);

/* Adds them to a RETRIEVE; *list is what it points to then, for the caller to free.  0 or -errno
 * (reported): there are more than a request has room for. */
int rules_request(
	struct client *, const struct filter *, struct message_data_request *, uint8_t **list);

#endif
