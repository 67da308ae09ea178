/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer/whole: a small file all at once, without a transfer (proto/message_inline): read from a
 * source, and landed by a sink, whose callbacks are those of transfers.
 *
 * All of it blocks, in the caller's thread.
 */
#ifndef TRANSFER_WHOLE_H
#define TRANSFER_WHOLE_H

#include "proto/message_inline.h"
#include "transfer/transfer.h"

/* ---- source ---- */

struct whole_room {
	uint8_t data[MESSAGE_INLINE_MAX];
	uint8_t file_data[TRANSFER_FILE_MAX];
};

/*
 * An item of `next` as it crosses: *out points into `room`.  `most`: bytes it may have.  0, and the
 * item has its attributes; -errno: it could not be read, as of `read`.  -EFBIG: it is not for this
 * way, and as `next` has given it, or opened: a transfer can have it.  `done` is the caller's.
 * *reading is zeros at first; whole_read_end at last.
 */
int whole_read(const struct transfer_source *, struct transfer_reading *reading, uint32_t most,
	struct transfer_item *, struct whole_room *room, struct message_whole *out);
void whole_read_end(const struct transfer_source *, struct transfer_reading *reading);

/* ---- sink ---- */

struct whole_arrival {
	struct message_whole whole; /* as it came */
	const char *name;           /* in place of FILE's, which is empty; NULL: as FILE has it */
	/* the outcome */
	uint16_t status;
	uint64_t digest; /* of what is there; 0 with a status */
	char *text;      /* malloc'd: why not, or what could not be kept; NULL: nothing to say */
	/* whole.c's */
	struct transfer_arrival arrival;
	uint8_t *memory;
};

/* Checks digests, makes them real, several with one flush where the sink has that, and tells `done`
 * of each.  Directories are made before what is in them, and end after that.  The sink has `whole`.
 * It holds at most `open_max` descriptors, or four. */
void whole_land(
	const struct transfer_sink *, struct whole_arrival *, unsigned count, unsigned open_max);
/* What the outcome holds. */
void whole_arrival_fini(struct whole_arrival *);

#endif
