/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/demux_ports: whose a frame is: the ports of one control channel.
 *
 * Each transfer has one by its number, which is open while the transfer runs; the dialogue has one,
 * and gets all that is no open port's.  Before a transfer begins its port may keep what comes for
 * it, or drop that.
 *
 * No I/O, and no lock of its own: session/demux calls all of it under its lock, but for what a port
 * says is its own thread's.
 */
#ifndef SESSION_DEMUX_PORTS_H
#define SESSION_DEMUX_PORTS_H

#include "session/frame_queue.h"

struct demux;

struct demux_port {
	struct demux *demux;
	unsigned number; /* of the transfer */
	bool open;
	/* no transfer reads it: what comes is kept for the one that is about to begin, or dropped
	 */
	bool parked, dropping;
	bool wants_room; /* it waits until all that is queued has left */
	struct frame_queue frames;
	/* its own thread's: the frame that was given last, where it is the control's */
	bool direct;
	struct message_header header;
	const uint8_t *data;
};

struct demux_ports {
	struct demux_port dialogue;
	struct demux_port *each[MESSAGE_TRANSFERS_MAX]; /* NULL: it was never asked for */
	unsigned open, kept;                            /* of each; kept: or dropped */
};

void demux_ports_init(struct demux_ports *, struct demux *);
void demux_ports_fini(struct demux_ports *);

/* Whose the frame is. */
struct demux_port *demux_ports_of(struct demux_ports *, const struct message_header *);

/* As demux_park, _drop and _unpark: nothing where the port is open. */
int demux_ports_park(struct demux_ports *, unsigned number);
int demux_ports_drop(struct demux_ports *, unsigned number);
void demux_ports_unpark(struct demux_ports *, unsigned number);

/* Opens it, with what was kept; and the descriptors by which it and the dialogue are woken.  One
 * that is open is given.  0, or -errno and NULL. */
int demux_ports_open(struct demux_ports *, unsigned number, struct demux_port **out);
/* What it has not read is the dialogue's, which is woken.  0 or -ENOMEM. */
int demux_ports_close(struct demux_ports *, struct demux_port *);

/* Wakes all that are open; or those that wait for room, which they have then. */
void demux_ports_wake(struct demux_ports *);
void demux_ports_wake_waiting(struct demux_ports *);

#endif
