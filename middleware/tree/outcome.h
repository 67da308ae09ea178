/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outcome: what became of one name of a transfer, as the trees at either end tell it.
 */
#ifndef TREE_OUTCOME_H
#define TREE_OUTCOME_H

#include "transfer/transfer.h"

struct outcome {
	const char *path;       /* on this side; "-": a stream; "": memory */
	const char *place;      /* that it is beneath, as outgoing_add_from was told; NULL: none */
	struct wire_bytes name; /* as it crossed: beneath the destination, or empty */
	bool directory;
	bool attributes; /* of a file that is there, and stays: no file came */
	bool special;    /* a device, FIFO or socket, which is left out: no failure */
	uint64_t bytes;  /* that arrived; 0 when it failed, and of a directory */
	bool at_sink;    /* of a source: it failed at the other side */
	uint16_t status;
	const char *text; /* of status 0: a note of what could not be kept.  May be "" */
};

#endif
