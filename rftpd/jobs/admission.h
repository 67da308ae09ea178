/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/admission: who sends, when, and how fast, where a bottleneck has only so much
 * bandwidth.
 *
 * A transfer has a claim.  It waits in line until its share of the bandwidth is free; then it is
 * granted a turn: so many bytes, at the rate of its share, which nobody cuts short.  When they are
 * used up it queues again, behind the others of its class.  The line is in the order of rank (0
 * first), then the earliest deadline, then the time of asking, and nobody passes another because it
 * wants less: what is granted together never exceeds the bandwidth.
 *
 * Who waits counts one rank higher for each `age_ns` that it has waited.  Of a turn that moves less
 * than its share, the rest is lent to others while they wait, and comes back with the next turn;
 * one that moves nothing at all loses its grant and has to ask again.
 *
 * A claim that lacks something else than bandwidth (`ready`) is passed by those that have it, and
 * only by them.
 *
 * Pure: no thread, no lock, no I/O; the caller brings the clock, and all is called in one thread.
 * The callbacks come from admission_run only; they may call anything here but admission_run.
 */
#ifndef RFTPD_ADMISSION_H
#define RFTPD_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define ADMISSION_RANKS 16u
#define ADMISSION_NAME_MAX 31u                   /* bytes of a class's name */
#define ADMISSION_ENDLESS UINT64_MAX             /* a turn: as much as the transfer has */
#define ADMISSION_NEVER UINT64_MAX               /* a deadline: none; a wait: not known */
#define ADMISSION_LOOK_NS UINT64_C(100000000)    /* what turns really move is looked at so often */
#define ADMISSION_SILENT_NS UINT64_C(1000000000) /* a turn that moves nothing ends after this */
#define ADMISSION_TELL_NS UINT64_C(1000000000)   /* a new place in line is told so often at most */
#define ADMISSION_AGAIN_NS UINT64_C(5000000000)  /* the same one, and one far behind, so often */
#define ADMISSION_NEAR 10u                       /* places that are not far behind */
#define ADMISSION_LENT_MOST 16u                  /* a turn keeps at least this part of its share */

struct claim;

struct claim_ops {
	/* Whether it has all else that it needs to begin; asks for what it lacks.  Called while it
	 * is the next in line and there is bandwidth for it; false: admission_ready says so later.
	 * NULL: it has. */
	bool (*ready)(struct claim *);
	/* It has a turn: claim->turn_bytes at claim->rate. */
	void (*granted)(struct claim *);
	/* Its rate is another one now; 0: its turn is over.  It calls nothing here, nor does moved.
	 */
	void (*changed)(struct claim *);
	/* It waits: its place among those of its class, from 1, and for about how long
	 * (ADMISSION_NEVER: not known).  Told when it begins to wait, between turns when it has
	 * waited for a while, when that changed, and now and then. */
	void (*queued)(struct claim *, unsigned position, uint64_t wait_ns);
	/* It waits beyond claim->expires_ns.  Once. */
	void (*expired)(struct claim *);
	/* Bytes that it has moved in all its turns. */
	uint64_t (*moved)(const struct claim *);
};

enum claim_state { CLAIM_NONE, CLAIM_WAITING, CLAIM_RUNNING };

struct claim { /* zeroed: none */
	const struct claim_ops *ops;
	char name[ADMISSION_NAME_MAX + 1]; /* of its class */
	unsigned rank;                     /* of its class, below ADMISSION_RANKS */
	uint64_t share;                    /* bytes a second that it asks for; 0: half of all */
	uint64_t deadline_ns;              /* by the caller's clock; ADMISSION_NEVER: none */
	uint64_t bytes;                    /* that it will move; ADMISSION_NEVER: not known */
	uint64_t expires_ns; /* it is of no use to begin later; ADMISSION_NEVER: it always is */
	/* admission's; these four may be read */
	enum claim_state state;
	uint64_t rate, turn_bytes; /* of its turn */
	uint64_t since_ns;         /* it waits, or has its turn */
	bool is_ready;
	unsigned counts_as; /* its rank, as it has waited */
	uint64_t order, age_ns;
	uint64_t start_moved, seen_moved, seen_ns, moved_ns;
	unsigned told; /* its place as last told; 0: not told */
	uint64_t told_ns, quiet_ns;
	TAILQ_ENTRY(claim) entry, age_entry;
};

struct admission_limits {
	uint64_t bandwidth;  /* bytes a second, all transfers together; 0: nobody asks */
	uint64_t turn_bytes; /* ADMISSION_ENDLESS: a transfer's turn ends with it */
	uint64_t age_ns;     /* 0: ranks are strict */
	unsigned queue_max;  /* claims that wait */
};

struct admission {
	struct admission_limits limits;
	uint64_t granted;                                          /* the rates of those that run */
	TAILQ_HEAD(claim_list, claim) waiting[2][ADMISSION_RANKS]; /* [1]: those that are ready */
	struct claim_list running, ages; /* ages: those that wait, the first to age first */
	unsigned waiting_count, running_count;
	uint64_t expires_ns;     /* no claim in line expires before */
	uint64_t order, changes; /* claims that joined the line; those and what else changed it */
};

void admission_init(struct admission *, const struct admission_limits *);
/* Other limits; turns that run go on as they are. */
void admission_change(struct admission *, const struct admission_limits *, uint64_t now_ns);

/* Gets in line; `granted` comes from admission_run.  0; -ENOSPC: too many wait already. */
int admission_add(struct admission *, struct claim *, uint64_t now_ns);
/* It has used up its turn, or lost it, and wants another one: behind the others of its class. */
void admission_again(struct admission *, struct claim *, uint64_t now_ns);
/* It could begin now. */
void admission_ready(struct admission *, struct claim *);
/* Gives back what it has, or leaves the line.  Any state. */
void admission_release(struct admission *, struct claim *);

/* Grants, ages, lends, tells: after whatever happened. */
void admission_run(struct admission *, uint64_t now_ns);
/* When to call it if nothing else happens; UINT64_MAX: need not be. */
uint64_t admission_next_ns(const struct admission *, uint64_t now_ns);

/* What a claim would be granted. */
uint64_t admission_share(const struct admission *, const struct claim *);

#endif
