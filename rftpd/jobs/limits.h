/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/limits: what the transfers of a user, of a network, of an export may have together, by
 * the rules of the setting `limit` (rftpd/limit_rule): memory and open files as a purse of the
 * scheduler's, and a rate.
 *
 * There is one for those who have transfers that wait or run.  Belongs to the thread of the loop,
 * but for the meters.
 */
#ifndef RFTPD_LIMITS_H
#define RFTPD_LIMITS_H

#include "rftpd/jobs/scheduler.h"
#include "rftpd/limit_rule.h"
#include "transfer/bucket.h"

#include <sys/queue.h>

#define LIMITS_SHARED_MAX 24u /* limits of three kinds, under each combination of conditions */
_Static_assert(LIMITS_SHARED_MAX <= SCHEDULER_PURSES_MAX, "a purse for each");
_Static_assert(LIMITS_SHARED_MAX <= BUCKET_METERS_MAX, "a meter for each");

struct shared_limit {
	TAILQ_ENTRY(shared_limit) entry;
	unsigned references;
	char key[LIMIT_KEY_MAX];
	/* whose it is, so that other rules can be asked for it */
	struct limit_facts facts;
	unsigned conditions;
	struct sockaddr_storage address;
	char *user, *export_name;
	struct purse purse;
	struct meter meter;
	uint64_t rate; /* METER_ENDLESS: none */
};

struct limits {
	TAILQ_HEAD(, shared_limit) all;
};

/* What one transfer is under. */
struct limits_of {
	struct shared_limit *shared[LIMITS_SHARED_MAX];
	unsigned count;
	uint64_t rate; /* the least of them; METER_ENDLESS: none */
};

void limits_init(struct limits *);
/* Those that hold for a transfer, in *out, until limits_give.  0 or -ENOMEM. */
int limits_take(struct limits *, const struct limit_rule *rules, unsigned count,
	const struct limit_facts *, struct limits_of *out);
void limits_give(struct limits *, struct limits_of *);
/* Other rules: for those that there are, too.  The scheduler is to be told (scheduler_resize). */
void limits_change(struct limits *, const struct limit_rule *rules, unsigned count);

#endif
