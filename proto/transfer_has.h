/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer_has: what a FILE says beyond mode and time, behind its name and target.  For
 * proto/transfer.c alone.
 */
#ifndef PROTO_TRANSFER_HAS_H
#define PROTO_TRANSFER_HAS_H

#include "proto/transfer.h"

/* Whether a file of its kind may have what it has. */
bool transfer_has_ok(const struct transfer_file *);
void transfer_has_get(struct transfer_file *, struct wire *);
void transfer_has_put(const struct transfer_file *, struct wire *);

#endif
