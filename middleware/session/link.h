/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link: the channels of one session: a control channel, and for each of the transfers that
 * it runs at once data channels, on a rail of their own.
 *
 * Client: link_connect, then link_begin_channels with what a CHANNELS reply said.
 * Daemon: it owns one event queue for all its sessions.  A REQUEST whose private data is a control
 * greeting becomes a link (link_accept); one with a data greeting joins the link whose session it
 * names, if it shows the right token (link_accept_channel; the daemon finds the link, this module
 * checks the token).
 *
 * The side that connects sends first on every channel (MPA's rule): the control channel's first
 * bytes are TLS's; a data channel's is one SEND of 4 zero bytes.  After a transfer was aborted its
 * data channels are closed by both sides (link_close_channels): nothing in flight can then land
 * later.
 */
#ifndef SESSION_LINK_H
#define SESSION_LINK_H

#include "proto/message_greeting.h"
#include "session/demux.h"
#include "session/rail.h"

#include <sys/socket.h>

struct link;

/* ---- both ---- */
struct control *link_control(const struct link *);
/* Who shares the control channel. */
struct demux *link_demux(const struct link *);
/* Data channels of a transfer: open, or accepted and about to be. */
unsigned link_channel_count(const struct link *, unsigned transfer);
/* Whether there is anything to close, were it broken, or expected only. */
bool link_has_channels(const struct link *, unsigned transfer);
void link_close_channels(struct link *, unsigned transfer);
/* Breaks what is connected and frees all. */
void link_free(struct link *);
/* Whether that may take its time: a device has a part in it, or there is much memory. */
bool link_takes_time(const struct link *);
/* The data channels of a transfer, and the memory of its blocks.  NULL: it never had any. */
struct rail *link_rail(const struct link *, unsigned transfer);
/* rail_max_depth of any rail. */
uint32_t link_max_depth(const struct link *);
/* Data channels worth opening, from CPUs, fabric and the measured round trip (0: not known). */
unsigned link_suggest_channels(const struct link *, uint64_t rtt_ns);
const char *link_fabric_name(const struct link *);

/* ---- client ---- */

struct link_target {
	const struct sockaddr *dst;
	const struct sockaddr *src;    /* NULL: any */
	const struct tls_context *tls; /* a client's; must outlive the link */
	const char *host;              /* as the user named it, for its certificate */
};

/*
 * Connects the control channel and completes its TLS handshake; blocks for at most timeout_ms.
 * Whether this is the right server is then the caller's to decide, before it sends anything
 * (control_tls).  On refusal *status is the daemon's status (else 0).  -ECONNREFUSED, -ETIMEDOUT,
 * -EHOSTUNREACH, -ENODEV, -EPROTO (answered, but is no rftpd), -EACCES (refused: *status),
 * -ECONNABORTED (lost during the handshake).
 */
int link_connect(struct fabric *, const struct link_target *, int timeout_ms, struct link **out,
	uint16_t *status);
/* What the handshake of TLS took: one round trip, and some work at each end. */
uint64_t link_secured_in_ns(const struct link *);
/* Dials data channels that the next link_begin_channels will use: what the network takes for that
 * passes while the daemon works on CHANNELS.  Some may be missing afterwards. */
void link_dial_ahead(struct link *, unsigned count, int timeout_ms);
/* Those that were dialled and not used go. */
void link_hang_up(struct link *);
/* Dials the channels of a transfer, and shows on each what it must show.  Those that were open are
 * closed first.  Errors as above; none is open then. */
int link_begin_channels(struct link *, unsigned transfer, uint32_t session,
	const struct message_channels_reply *, int timeout_ms);
/* Whether this side was connected to: the daemon's end of a link. */
bool link_was_called(const struct link *);
/* Waits until those that were begun are all connected; at once where there are none such.  Errors
 * as above; none is open then. */
int link_finish_channels(struct link *, unsigned transfer, int timeout_ms);
/* Connection events of the client's channels: the fd (-1: not a client's link), and what they mean:
 * 0, or -errno when the session's control channel has gone, from then on.  For a shell that sits at
 * its prompt, and for transfers.  Any thread; while link_finish_channels waits, it takes them in
 * for all. */
int link_event_fd(const struct link *);
int link_check_events(struct link *);

/* ---- daemon ---- */

/* Takes over `chan`; accepts it.  The link works when CONNECTED has come.  `tls` is the daemon's
 * and must outlive the link. */
int link_accept(struct fabric_chan *chan, const struct message_greeting *,
	const struct tls_context *tls, struct link **out);
/* Where areas for early data come from (session/area), which must outlive the link. */
void link_set_areas(struct link *, struct area_budget *);
/* Makes a nonce and says that `count` new channels of a transfer may now show the tokens made with
 * it.  Those that were open are closed: the client asks when it has none, or wants another number
 * of them. */
int link_expect_channels(struct link *, unsigned transfer, uint32_t session, unsigned count,
	struct message_channels_reply *);
/* Of a data channel's greeting: whose it wants to be.  May be none that there is. */
unsigned link_transfer_of(const struct message_greeting *);
/*
 * A data channel's REQUEST.  Takes over `chan`, also on error (it is then rejected with a status).
 * -EACCES: wrong token, index not expected or used already (each index once).
 */
int link_accept_channel(struct link *, struct fabric_chan *chan, const struct message_greeting *);
/* A connection event: whether it was one of the link's data channels (it is then taken note of),
 * and of which transfer.  From any thread: the event loop calls it while transfers run. */
bool link_channel_event(struct link *, const struct fabric_event *, unsigned *transfer);

#endif
