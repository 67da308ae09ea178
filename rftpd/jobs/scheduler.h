/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/scheduler: who may use how much of the daemon's memory, files and threads, and when.
 *
 * A transfer asks for a lease before it runs: at least this much, at most that much.  What is free
 * is given in the order of asking; who does not find its least waits in line, and nobody behind it
 * is served before, so that small ones do not starve a large one.  A lease gets half of what is
 * free, within what was asked for: the next one finds something, too.
 *
 * Who moves nothing for stall_ns while others wait is to give its lease back.  Patient leases, of
 * transfers that wait for a stream of the peer's and may be silent for hours, keep theirs; all of
 * them together have at most half of everything, and those that find the half taken let others
 * pass.
 *
 * Leases may draw on purses, too: amounts that those of one user, say, may have together.  A lease
 * for which there is enough but in its purse is in nobody's way but theirs who draw on the same
 * one.
 *
 * Where some are more urgent than others, these wait before them, and find a part of everything
 * that the others do not get.
 *
 * Pure: no thread, no lock, no I/O; the caller brings the clock, and all is called in its one
 * thread.  The callbacks come from scheduler_run only; they may call anything here but
 * scheduler_run.
 */
#ifndef RFTPD_SCHEDULER_H
#define RFTPD_SCHEDULER_H

#include "rftpd/jobs/budget.h"

#include <sys/queue.h>

#define SCHEDULER_TELL_NS UINT64_C(1000000000)  /* a new place in line is told so often at most */
#define SCHEDULER_AGAIN_NS UINT64_C(5000000000) /* the same one, and one far behind, so often */
#define SCHEDULER_NEAR 10u                      /* places that are not far behind */

#define SCHEDULER_URGENT_PART 4u
#define SCHEDULER_PURSES_MAX 24u

struct lease;

struct lease_ops {
	/* It has what `has` says. */
	void (*granted)(struct lease *);
	/* It waits; 1: it is the next.  Told when it begins to wait, when that changed, and now and
	 * then. */
	void (*queued)(struct lease *, unsigned position);
	/* When what it is for last moved (clock of the caller's). */
	uint64_t (*moved_ns)(const struct lease *);
	/* It has moved nothing for too long: to be given back soon, all or most of it at once
	 * (scheduler_reduce).  Once. */
	void (*lost)(struct lease *);
};

enum lease_state { LEASE_NONE, LEASE_WAITING, LEASE_HELD };

/* What some leases may have together, beside what there is: those of a user, say.  Who has to wait
 * for it is passed by the leases of others. */
struct purse {
	struct budget total, has; /* has: the scheduler's */
	bool is_waited_for;       /* as is this */
};

struct lease { /* zeroed: none */
	const struct lease_ops *ops;
	struct budget least, most; /* wanted */
	bool patient;
	unsigned rank; /* who is urgent waits before who is less so; 0 is first */
	bool yields;   /* leaves a part of everything to those that do not */
	/* set before it asks; they outlive it */
	struct purse *purses[SCHEDULER_PURSES_MAX];
	unsigned purse_count;
	/* the scheduler's; `has` may be read while it is held */
	enum lease_state state;
	struct budget has;
	bool is_lost;
	unsigned told; /* its place in line as last told; 0: not told */
	uint64_t told_ns, waits_since_ns;
	TAILQ_ENTRY(lease) entry;
};

struct scheduler {
	struct budget total, free, patient; /* patient: what patient leases have */
	uint32_t reserved_files;            /* of those that are free: not to be lent now */
	uint64_t stall_ns;                  /* 0: nobody loses a lease */
	TAILQ_HEAD(lease_list, lease) waiting, held;
	unsigned waiting_count, held_count;
};

void scheduler_init(struct scheduler *, const struct budget *total, uint64_t stall_ns);

/* Another total, or another one of purses.  What leases hold that is more than it comes back as
 * they end, to nobody. */
void scheduler_resize(struct scheduler *, const struct budget *total, uint64_t stall_ns);

/*
 * Asks.  true: held already, without a callback; false: it waits in line until `granted`, or until
 * it is released.  What is more than there is altogether is cut to that.
 */
bool scheduler_ask(struct scheduler *, struct lease *, uint64_t now_ns);
/* Gives it back, or leaves the line.  Any state. */
void scheduler_release(struct scheduler *, struct lease *);

/* So many files are not lent for now, as others need their descriptors; but one transfer always
 * runs. */
void scheduler_reserve(struct scheduler *, uint32_t files);

/* Gives all of a held one back but this. */
void scheduler_reduce(struct scheduler *, struct lease *, const struct budget *keep);

/* Grants what can be granted, tells places, takes leases from who stalls: after each round of the
 * loop. */
void scheduler_run(struct scheduler *, uint64_t now_ns);
/* When to call it if nothing else happens; UINT64_MAX: need not be. */
uint64_t scheduler_next_ns(const struct scheduler *, uint64_t now_ns);

#endif
