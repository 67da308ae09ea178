/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/deadline: time-outs of one length each, so that a list in order of starting is in
 * order of expiring: every operation takes constant time.  Pure: the caller brings the time.
 */
#ifndef RFTPD_DEADLINE_H
#define RFTPD_DEADLINE_H

#include <stdint.h>
#include <sys/queue.h>

struct deadline {
	TAILQ_ENTRY(deadline) entry;
	struct deadline_list *list; /* NULL: not running */
	uint64_t expires_ns;
	void *owner;
};

struct deadline_list {
	TAILQ_HEAD(deadline_running, deadline) running;
	uint64_t length_ns; /* 0: deadlines of this list never run */
};

void deadline_list_init(struct deadline_list *, uint64_t length_ns);
/* Another length, also for those that run; 0 stops them. */
void deadline_list_change(struct deadline_list *, uint64_t length_ns);
/* Starts it, or starts it again from `now_ns`; one that runs in another list leaves that.  A time
 * before that of others takes a step for each of them. */
void deadline_start(struct deadline_list *, struct deadline *, uint64_t now_ns);
void deadline_stop(struct deadline *);
/* When the first one expires; UINT64_MAX: none runs. */
uint64_t deadline_first_ns(const struct deadline_list *);
/* Stops and gives one that has expired; NULL: none. */
struct deadline *deadline_expired(struct deadline_list *, uint64_t now_ns);

#endif
