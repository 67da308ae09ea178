/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/penalties: addresses that waste the daemon's time, and until when they get none of
 * it.
 *
 * Each failing adds to the time of its address; once that is long enough the address is refused
 * until the time is over.  Of an IPv6 address its first 64 bits count.  The table has one size: of
 * those that would have one place, the address that is soonest over with it is forgotten.
 *
 * Pure: no lock, no I/O; the caller brings the clock.
 */
#ifndef RFTPD_PENALTIES_H
#define RFTPD_PENALTIES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PENALTIES_SETS 512u /* a power of two */
#define PENALTIES_WAYS 8u
#define PENALTIES_LEAST_S 15u /* less than this is no reason to refuse anybody */
#define PENALTIES_MOST_S 600u

enum penalty {
	PENALTY_LEFT,     /* went before it had said who it is: 1 s */
	PENALTY_LOGIN,    /* a login that was not taken: 5 s */
	PENALTY_SILENT,   /* did not say it in time: 10 s */
	PENALTY_PROTOCOL, /* said what no client says: 10 s */
};

struct penalties {
	uint64_t seed; /* so that nobody chooses whose place it takes */
	struct penalty_source {
		uint8_t address[16];
		uint64_t until_ns; /* 0: none */
		bool refused;
	} sources[PENALTIES_SETS][PENALTIES_WAYS];
};

void penalties_init(struct penalties *, uint64_t seed);
/* How long the address is refused from now on, in seconds, if it was not before; 0: it is not, or
 * it was. */
unsigned penalties_add(struct penalties *, const struct sockaddr *, enum penalty, uint64_t now_ns);
bool penalties_refuses(struct penalties *, const struct sockaddr *, uint64_t now_ns);

#endif
