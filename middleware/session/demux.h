/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/demux: the frames of one control channel, shared by the session's dialogue and its
 * transfers, each in a thread of its own.
 *
 * Each of them has a port.  Frames of a transfer (transfer_is_frame) go to the
 * port of its number while that is open; everything else goes to the dialogue's.  Whoever looks for
 * a frame takes in what has come, for all; there is no thread in between.  While no transfer has a
 * port frames are not even copied.
 *
 * A port that does not read holds the others up once DEMUX_PORT_BYTES lie in it: the bound is the
 * peer's loss, who could have waited.  Keep-alives are swallowed while a transfer has a port, and
 * seen by demux_heard_ns.
 *
 * demux_new, _free: nobody else uses it.  demux_open and _close are for whoever has the dialogue at
 * that time.  All other functions: any thread, one at a time for each port.
 */
#ifndef SESSION_DEMUX_H
#define SESSION_DEMUX_H

#include "session/control.h"

#define DEMUX_PORT_BYTES (1u << 20)

struct demux;
struct demux_port;

/* `control` must outlive it. */
int demux_new(struct control *, struct demux **out);
void demux_free(struct demux *);
struct demux_port *demux_dialogue(struct demux *);

/*
 * From now on frames of transfer `number` are this port's; one that is open already is given.
 * Frames are corked (control_cork) while a port is open.  0, -ENOMEM, -EMFILE ...
 */
int demux_open(struct demux *, unsigned number, struct demux_port **out);
/*
 * Before that, for whoever has the dialogue: a transfer of that number is about to begin, and its
 * frames may come already, also behind what asks for it.  They are kept for demux_open, up to
 * DEMUX_PORT_BYTES; or it is known that it will not begin, and they are dropped.  ABORT is the
 * dialogue's all the same.  Nothing else changes for the dialogue.  `unpark` ends both.  0 or
 * -ENOMEM.
 */
int demux_park(struct demux *, unsigned number);
int demux_drop(struct demux *, unsigned number);
void demux_unpark(struct demux *, unsigned number);
/* What it has not read goes to the dialogue, which is woken.  Takes NULL. */
void demux_close(struct demux_port *);
/* Whether a transfer has a port: then the dialogue waits for demux_port_fd, and for nothing else.
 */
bool demux_is_shared(struct demux *);

/* As control_put; a transfer's port says its number in `response`.  What the dialogue says leaves
 * at once, as far as there are credits. */
int demux_put(struct demux_port *, uint16_t type, uint16_t response, const void *data, size_t len);
/* As control_get: *data is valid until the port's next demux_get or demux_wait. */
int demux_get(struct demux_port *, struct message_header *, const uint8_t **data);
/* The frame that demux_get gave last is given again by the next one.  0 or -ENOMEM. */
int demux_unget(struct demux_port *);

/* Before sleeping on both descriptors (demux_port_fd is -1 while no transfer has a port): 1: a
 * frame or an error is there already; 0; -errno. */
int demux_arm(struct demux_port *);
/* Whether frames were left behind after many that were dropped, or were others': demux_get gave 0,
 * is to be called again, and no descriptor says so.  It is told once. */
bool demux_more(struct demux *);
int demux_control_fd(const struct demux *);
int demux_port_fd(const struct demux_port *);
/* As control_wait and control_flush. */
int demux_wait(struct demux_port *, int timeout_ms, int cancel_fd);
int demux_flush(struct demux_port *, int timeout_ms);

/* As control_pending_bytes, control_push, control_hear and control_probe. */
size_t demux_pending_bytes(struct demux *);
void demux_push(struct demux *);
void demux_hear(struct demux *);
void demux_probe(struct demux *);
/* When the last frame of any kind came (clock_now_ns); 0: none yet. */
uint64_t demux_heard_ns(const struct demux *);
/* As tls_export, of the control's TLS. */
int demux_export(struct demux *, const char *label, const void *context, size_t context_len,
	void *secret, size_t len);

#endif
