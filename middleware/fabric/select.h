/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/select: the fabrics of this build by name, in the order in which "auto" prefers them.
 */
#ifndef FABRIC_SELECT_H
#define FABRIC_SELECT_H

#include "fabric/fabric.h"

#define SELECT_WHY_MAX 128

struct select_config {         /* zeros are the defaults */
	unsigned threads;      /* progress threads of soft */
	unsigned handshake_ms; /* deadline for a connecting peer's set-up */
	bool crc;              /* soft: ask for MPA's CRC32C */
	/* soft: TCP sockets that listen already, for the addresses that they are bound to.  They
	 * and the array outlive the fabric, which closes none of them. */
	const int *inherited;
	unsigned inherited_count;
};

/* The i-th name, best first; NULL past the last.  Does not say that a device is there. */
const char *select_name(unsigned i);
/* -ENOENT: no such fabric in this build; -ENODEV: it finds no device on this host. */
int select_open(const char *name, const struct select_config *, struct fabric **out);
/* What an error of select_open means: "no RDMA device on this host". */
const char *select_open_text(int error);

/*
 * Whether it makes sense to dial `dst` with this fabric, as far as that can be told without trying:
 * 0, or -ENODEV with the reason.  Sends nothing.
 */
int select_reaches(const char *name, const struct sockaddr *dst, char why[SELECT_WHY_MAX]);
/*
 * Whether the fabrics behind it should be tried before, as far as that can be told: the device that
 * leads to `dst` is one in software, which costs more than soft.  The reason is in `why`.
 */
bool select_comes_last(const char *name, const struct sockaddr *dst, char why[SELECT_WHY_MAX]);
/* After a dial gave -ENODEV: what leads there instead ("the way is eth0"). */
void select_explain(const char *name, const struct sockaddr *dst, char why[SELECT_WHY_MAX]);

/* Whether its devices may come and go while the program runs; and a number that is another one when
 * they did (0: there is none). */
bool select_is_plugged(const char *name);
uint64_t select_stamp(const char *name);
/* After they did: lets go of those that went, as far as nobody uses them. */
void select_close_gone(const char *name);
/* Whether a device of the host may own the TCP port that this fabric wants: another fabric's
 * listener there then serves this one's clients (iWARP). */
bool select_port_is_shared(const char *name);

#endif
