/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/wishes: what the settings say of a transfer, as the protocol's requests and
 * tree/incoming say it.  It
 * knows no session.
 */
#ifndef RFTP_WISHES_H
#define RFTP_WISHES_H

#include "proto/message.h"
#include "rftp/settings.h"
#include "tree/incoming.h"

#include <stdbool.h>
#include <stdint.h>

/* What is kept beyond modes and times: enum transfer_has. */
uint16_t wishes_keeps(const struct settings *);
/* Whether existing files may be replaced. */
bool wishes_replaces(const struct settings *);
/* Whether the source reads files again. */
bool wishes_rereads(const struct settings *);
/* When files that arrive here are flushed. */
enum incoming_fsync wishes_incoming_fsync(const struct settings *);
/* Of any request that sends files: what becomes of files that are there, and when they are flushed.
 */
uint32_t wishes_store_flags(const struct settings *);
/* Of any request for files: whether owner and group come with them, and how these are named. */
uint32_t wishes_owner_flags(const struct settings *);
/* Fill in what the settings say of a STORE or RETRIEVE; flags that are there stay. */
void wishes_store(const struct settings *, struct message_data_request *);
void wishes_retrieve(const struct settings *, struct message_data_request *);

#endif
