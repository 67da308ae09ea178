/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_cm_impl.h: what the two sides of the set-up of a connection share.  Included by
 * soft_cm*.c only; all on the progress thread of the channel.
 */
#ifndef FABRIC_SOFT_CM_IMPL_H
#define FABRIC_SOFT_CM_IMPL_H

#include "fabric/soft/soft_impl.h"

/* ---- both sides (soft_cm.c) ---- */

/* When a set-up that begins now has taken too long. */
uint64_t soft_cm_deadline(const struct soft *);
/* Watches the channel's socket.  0 or -errno. */
int soft_cm_watch(struct soft_chan *);
/* Reads the peer's frame and not a byte more.  1: *frame is there; 0: not yet; else -errno
 * (-ECONNRESET: the peer closed). */
int soft_cm_read_frame(struct soft_chan *, enum mpa_kind, struct mpa_frame *);
/* A frame fits any socket that has sent nothing yet; if it does not, there is no connection. */
int soft_cm_send_frame(struct soft_chan *, const struct mpa_frame *);
/* Takes note of our own address, and of the private data that came. */
void soft_cm_note_local(struct soft_chan *);
void soft_cm_note_private(struct soft_chan *, const struct mpa_frame *);
/* How many reads each may ask is known: so the channel's caps say. */
void soft_cm_agree_on_reads(struct soft_chan *);
/* The exchange is done: from here on FPDUs. */
void soft_cm_begin(struct soft_chan *, bool initiator);

/* Of the numbers of reads at once that two sides allow. */
static inline uint16_t soft_cm_depth(unsigned a, unsigned b)
{
	return (uint16_t)(a < b ? a : b);
}

/* ---- the connecting side (soft_cm_connect.c) ---- */

void soft_cm_connect(struct soft_chan *);
/* The socket may be connected by now. */
void soft_cm_send_request(struct soft_chan *);
void soft_cm_take_reply(struct soft_chan *);

/* ---- the accepting side (soft_cm_accept.c) ---- */

/* A socket that was accepted, and has not said anything yet. */
void soft_cm_adopt(struct soft_chan *);
void soft_cm_take_request(struct soft_chan *);
void soft_cm_accept(struct soft_chan *);
void soft_cm_drop(struct soft_chan *, const char *why);

#endif
