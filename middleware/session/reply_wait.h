/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/reply_wait: when who reads replies from a ring reads next, and when it has read in vain
 * for long enough.  Pure.
 *
 * P, the time until the first READ, is half of what answers take as a rule; after each READ that
 * found nothing it waits longer.  T, after which it asks to be told, is what 99 of 100 answers took
 * at most, and a bounded time beyond what READs take, whatever answers took: who never answers is
 * not read for ever.
 */
#ifndef SESSION_REPLY_WAIT_H
#define SESSION_REPLY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define REPLY_WAIT_BUCKETS 64u
#define REPLY_WAIT_LEAST_NS 200000u /* of T */
#define REPLY_WAIT_MOST_NS 20000000u

struct reply_wait {
	uint32_t count[REPLY_WAIT_BUCKETS], counted; /* answers by the time that they took */
	uint64_t begun_ns;                           /* something was asked for, or came */
	bool asked;                                  /* the former */
	uint64_t due_ns, step_ns;       /* the next READ, and the time to the one after */
	uint64_t until_ns;              /* it is read in vain */
	uint64_t patience_ns, first_ns; /* T and P */
	uint64_t read_ns;               /* that the shortest READ took */
};

void reply_wait_init(struct reply_wait *, uint64_t now_ns);
/* Something was asked for. */
void reply_wait_begin(struct reply_wait *, uint64_t now_ns);
/* A READ took so long. */
void reply_wait_measured(struct reply_wait *, uint64_t took_ns);
/* It found nothing, or the answer. */
void reply_wait_missed(struct reply_wait *, uint64_t now_ns);
void reply_wait_came(struct reply_wait *, uint64_t now_ns);
/* What is there, the next READ brings: it is due. */
void reply_wait_hurry(struct reply_wait *, uint64_t now_ns);
/* Whether T has passed. */
bool reply_wait_is_over(const struct reply_wait *, uint64_t now_ns);

#endif
