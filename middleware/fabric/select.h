/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/select: the fabrics of this build by name, in the order in which "auto" prefers them.
 */
#ifndef FABRIC_SELECT_H
#define FABRIC_SELECT_H

#include "fabric/fabric.h"

struct select_config { /* zeros are the defaults */
	unsigned threads;      /* progress threads of soft */
	unsigned handshake_ms; /* deadline for a connecting peer's set-up */
	bool crc;              /* soft: ask for MPA's CRC32C */
};

/* The i-th name, best first; NULL past the last.  Does not say that a device is there. */
const char *select_name(unsigned i);
/* -ENOENT: no such fabric in this build; -ENODEV: it finds no device on this host. */
int select_open(const char *name, const struct select_config *, struct fabric **out);

#endif
