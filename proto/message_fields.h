/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_fields: parts that several messages have, for the files of proto/ alone.
 *
 * They go on at a wire's cursor, and leave their error in it.
 */
#ifndef PROTO_MESSAGE_FIELDS_H
#define PROTO_MESSAGE_FIELDS_H

#include "proto/message.h"

void message_put_attr_fields(struct wire *, const struct message_attr *);
void message_get_attr_fields(struct wire *, struct message_attr *);

void message_put_seen_fields(struct wire *, const struct message_seen *);
void message_get_seen_fields(struct wire *, struct message_seen *);

/* A count and so many rules: they stay where they are; whether they may cross is asked next. */
void message_get_rules(struct wire *, struct wire_bytes *rules, uint16_t *count);
bool message_rules_ok(struct wire_bytes rules, uint16_t count);

#endif
