/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/rail: what of a session belongs to one device: its protection domain, the memory that is
 * registered there, the data channels, and their completion queue.
 *
 * A session has one rail for each transfer that it runs at once, all on the device of its control
 * channel, whose protection domain they share.  Channels, memory and its registration outlive a
 * transfer: the next one of that number finds them.
 *
 * Nothing here locks: the link does, where the daemon's event loop looks channels up while a
 * transfer's thread may close them.
 */
#ifndef SESSION_RAIL_H
#define SESSION_RAIL_H

#include "engine/channel.h"
#include "proto/message.h"
#include "session/area.h"
#include "session/memory.h"

#define RAIL_DEPTH                                                                                 \
	1024u /* blocks a transfer may have outstanding: receives and sends are sized by it */

struct rail {
	const struct fabric_caps *caps; /* of a channel on the device */
	struct fabric_pd *pd;           /* not the rail's */
	struct fabric_cq *cq;           /* of all data channels; NULL: there are none */
	struct memory memory;           /* where blocks are, and its key */
	/* by number; NULL until dialled or accepted */
	struct channel *channels[MESSAGE_CHANNELS_MAX];
	unsigned channel_count; /* numbers 0..channel_count-1 are wanted or open */
	/* where the client may write early blocks, as long as there are these channels */
	struct area area; /* daemon */
	struct rail_area {
		uint64_t base;
		uint32_t bytes, key; /* 0 bytes: there is none */
	} remote_area;               /* client: the daemon's */
};

void rail_init(struct rail *, struct fabric_pd *, const struct fabric_caps *);
/* Its channels are closed. */
void rail_fini(struct rail *);

/* Blocks that transfers may use: RAIL_DEPTH, less where the fabric's depth is smaller. */
uint32_t rail_max_depth(const struct fabric_caps *);
/* Makes the completion queue for `count` channels, which are to be added. */
int rail_expect(struct rail *, unsigned count);
/* Sets up a channel (from a dial or a REQUEST), which is the rail's then, also on error. */
int rail_add(struct rail *, struct fabric_chan *, unsigned number, struct channel **out);
/* The data channel of this queue pair; NULL: it is none of the rail's. */
struct channel *rail_find(const struct rail *, const struct fabric_chan *);
/* Data channels that work, from the first on: open, or accepted and about to be. */
unsigned rail_channels(const struct rail *);
/* Whether this channel was there, and has broken or was closed by the peer. */
bool rail_broke(const struct rail *, unsigned number);

/*
 * Takes the channels out of the rail, to be given to rail_close: how many there are in `channels`,
 * some perhaps NULL.  To close them takes its time, which nobody should wait for with a lock.
 */
unsigned rail_take(struct rail *, struct channel *channels[MESSAGE_CHANNELS_MAX]);
void rail_close(struct rail *, struct channel *const *channels, unsigned count);
/* Early blocks that may come at once on each channel. */
unsigned rail_early(const struct rail *);

/*
 * Accepting side: waits until the connecting side has sent first on each of the first `count`
 * channels; on the connecting side there is nothing to wait for.  0, -ETIMEDOUT, -ECANCELED,
 * -ECONNRESET.
 */
int rail_wait_greeted(struct rail *, unsigned count, int timeout_ms, int cancel_fd);

#endif
