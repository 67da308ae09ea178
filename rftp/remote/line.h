/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/line: transfers that wait in line at the server: how urgent they are, where they
 * stand, how long they have waited.
 */
#ifndef RFTP_LINE_H
#define RFTP_LINE_H

#include "proto/message.h"

#include <stdbool.h>

struct client;

struct line {               /* of one command's transfers */
	uint64_t asked_ns;  /* the first of them was asked for; 0: none was */
	uint64_t since_ns;  /* one waits; 0: none does */
	uint64_t waited_ns; /* those that do not any more */
	bool noted;         /* it was said that the class is not the one that was asked for */
};

/* A command begins. */
void line_start(struct client *);
/* Before STORE, RETRIEVE or FEED: tells the server what the settings say.  -errno: reported. */
int line_ask(struct client *);
/* What the server says of a transfer's place. */
void line_queued(struct client *, const struct message_queued *);
/* How long they have waited, up to now. */
uint64_t line_waited_ns(const struct client *);
/* Whether the command's transfers, which have ended now, met their deadline: -1: there is none. */
int line_deadline_met(const struct client *);

#endif
