/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/ddp: the codec of DDP (RFC 5041) and RDMAP (RFC 5040) headers.
 *
 * A ULPDU is a DDP segment: tagged [control 2][STag 4][TO 8] or untagged [control 2][reserved 4]
 * [queue 4][MSN 4][MO 4], then payload.  A Read Request and a Terminate have a header of their own
 * as payload.  Pure bytes: knows neither sockets nor memory regions.
 */
#ifndef FABRIC_DDP_H
#define FABRIC_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDP_TAGGED_BYTES 14
#define DDP_UNTAGGED_BYTES 18
#define DDP_READ_BYTES 28    /* what a Read Request carries */
#define DDP_TERMINATE_MAX 52 /* what a Terminate carries at most: 4 + 2 + 18 + 28 */

enum ddp_opcode {
	DDP_WRITE = 0,
	DDP_READ_REQUEST = 1,
	DDP_READ_RESPONSE = 2,
	DDP_SEND = 3,
	DDP_SEND_INVALIDATE = 4,
	DDP_SEND_EVENT = 5,
	DDP_SEND_EVENT_INVALIDATE = 6,
	DDP_TERMINATE = 7,
};

enum ddp_queue {
	DDP_QUEUE_SEND = 0,
	DDP_QUEUE_READ = 1,
	DDP_QUEUE_TERMINATE = 2,
};

struct ddp_header {
	bool tagged;
	bool last;
	uint8_t opcode;  /* enum ddp_opcode */
	uint32_t stag;   /* tagged; of the invalidating sends: what to invalidate */
	uint64_t offset; /* tagged */
	uint32_t queue;  /* untagged: enum ddp_queue */
	uint32_t msn;
	uint32_t mo;
};

/* An error as a Terminate message reports it: RFC 5040 4.8, RFC 5041 8, RFC 5044 8, RFC 6581 8. */
struct ddp_error {
	uint8_t layer;
	uint8_t type;
	uint8_t code;
};

#define DDP_ERROR(layer_, type_, code_)                                                            \
	((struct ddp_error){.layer = (layer_), .type = (type_), .code = (code_)})

enum {
	DDP_LAYER_RDMAP = 0,
	DDP_LAYER_DDP = 1,
	DDP_LAYER_LLP = 2, /* MPA */
};
/* of the RDMAP layer */
#define RDMAP_LOCAL_CATASTROPHIC DDP_ERROR(DDP_LAYER_RDMAP, 0, 0)
#define RDMAP_INVALID_STAG DDP_ERROR(DDP_LAYER_RDMAP, 1, 0x00)
#define RDMAP_BASE_BOUNDS DDP_ERROR(DDP_LAYER_RDMAP, 1, 0x01)
#define RDMAP_ACCESS_RIGHTS DDP_ERROR(DDP_LAYER_RDMAP, 1, 0x02)
#define RDMAP_TO_WRAP DDP_ERROR(DDP_LAYER_RDMAP, 1, 0x04)
#define RDMAP_CANNOT_INVALIDATE DDP_ERROR(DDP_LAYER_RDMAP, 1, 0x09)
#define RDMAP_VERSION DDP_ERROR(DDP_LAYER_RDMAP, 2, 0x05)
#define RDMAP_OPCODE DDP_ERROR(DDP_LAYER_RDMAP, 2, 0x06)
#define RDMAP_CATASTROPHIC_STREAM DDP_ERROR(DDP_LAYER_RDMAP, 2, 0x07)
/* of the DDP layer: tagged buffers, untagged buffers */
#define DDP_LOCAL_CATASTROPHIC DDP_ERROR(DDP_LAYER_DDP, 0, 0)
#define DDP_INVALID_STAG DDP_ERROR(DDP_LAYER_DDP, 1, 0x00)
#define DDP_BASE_BOUNDS DDP_ERROR(DDP_LAYER_DDP, 1, 0x01)
#define DDP_TO_WRAP DDP_ERROR(DDP_LAYER_DDP, 1, 0x03)
#define DDP_TAGGED_VERSION DDP_ERROR(DDP_LAYER_DDP, 1, 0x04)
#define DDP_INVALID_QUEUE DDP_ERROR(DDP_LAYER_DDP, 2, 0x01)
#define DDP_NO_BUFFER DDP_ERROR(DDP_LAYER_DDP, 2, 0x02)
#define DDP_MSN_RANGE DDP_ERROR(DDP_LAYER_DDP, 2, 0x03)
#define DDP_INVALID_MO DDP_ERROR(DDP_LAYER_DDP, 2, 0x04)
#define DDP_TOO_LONG DDP_ERROR(DDP_LAYER_DDP, 2, 0x05)
#define DDP_UNTAGGED_VERSION DDP_ERROR(DDP_LAYER_DDP, 2, 0x06)
/* of MPA */
#define MPA_ERROR_CRC DDP_ERROR(DDP_LAYER_LLP, 0, 0x02)
#define MPA_ERROR_FRAME DDP_ERROR(DDP_LAYER_LLP, 0, 0x04)
#define MPA_ERROR_CATASTROPHIC DDP_ERROR(DDP_LAYER_LLP, 0, 0x05)
#define MPA_ERROR_IRD DDP_ERROR(DDP_LAYER_LLP, 0, 0x06)

static inline bool ddp_error_is(struct ddp_error a, struct ddp_error b)
{
	return a.layer == b.layer && a.type == b.type && a.code == b.code;
}

/* Writes the header: DDP_TAGGED_BYTES or DDP_UNTAGGED_BYTES, which it returns. */
size_t ddp_header_put(uint8_t *out, const struct ddp_header *);

/*
 * Parses the header of a segment from its first `bytes`.  >0: bytes of the header, *header is
 * filled; 0: more bytes are needed; -EPROTO: version, opcode or queue number is wrong, *error says
 * what to terminate with.  MSN, MO, STag and TO are for the caller to judge.
 */
int ddp_header_get(
	const uint8_t *in, size_t bytes, struct ddp_header *header, struct ddp_error *error);

/* What a Read Request carries: DDP_READ_BYTES. */
struct ddp_read {
	uint32_t sink_stag;
	uint64_t sink_offset;
	uint32_t bytes;
	uint32_t source_stag;
	uint64_t source_offset;
};
void ddp_read_put(uint8_t *out, const struct ddp_read *);
void ddp_read_get(const uint8_t *in, struct ddp_read *);

/* What a Terminate carries: the error, and the headers of the segment that caused it if known. */
struct ddp_terminate {
	struct ddp_error error;
	bool has_segment;       /* the three below */
	uint16_t segment_bytes; /* of the whole DDP segment at fault */
	struct ddp_header header;
	bool has_read; /* it was a Read Request: */
	struct ddp_read read;
};
/* At most DDP_TERMINATE_MAX bytes, how many it returns. */
size_t ddp_terminate_put(uint8_t *out, const struct ddp_terminate *);
/* 0; -EPROTO when shorter than it says it is.  Headers in it that do not parse are left out. */
int ddp_terminate_get(const uint8_t *in, size_t bytes, struct ddp_terminate *);

/* "invalid STag", ...: for logs. */
const char *ddp_error_text(struct ddp_error);

#endif
