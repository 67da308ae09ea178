/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft: iWARP in user space over TCP (RFC 5040 RDMAP, 5041 DDP, 5044 MPA, 6581 enhanced
 * connection set-up), for hosts without an RDMA device.  Talks to any iWARP peer.
 */
#ifndef FABRIC_SOFT_H
#define FABRIC_SOFT_H

#include "fabric/fabric.h"

struct soft_config {
	unsigned threads;      /* progress threads ("the NIC"); 0 = from the number of CPUs */
	unsigned handshake_ms; /* deadline for the MPA exchange of a peer that connects; 0 = 10,000
				*/
	unsigned max_handshakes; /* half-open peers at once; beyond it the oldest is dropped; 0 =
				    4,096 */
	bool crc;                /* ask for CRC32C on every FPDU (used when either side asks) */
	const int *inherited;    /* as in select.h */
	unsigned inherited_count;
	bool revision1; /* connect with MPA revision 1 (no READ); for tests and old peers */
};

/* `config` NULL = all defaults. */
int soft_open(const struct soft_config *config, struct fabric **out);

#endif
