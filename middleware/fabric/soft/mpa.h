/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/mpa: the codec of MPA (RFC 5044) and of the enhanced connection set-up (RFC 6581).
 *
 * Request and reply frames, and the arithmetic of FPDUs: [length 2][ULPDU][pad 0..3][CRC 4].
 * Markers are not built: a peer that demands them is refused.  Pure bytes; no sockets, no state.
 */
#ifndef FABRIC_MPA_H
#define FABRIC_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_FRAME_FIXED_BYTES 20 /* key, flags, revision, private data length */
#define MPA_ENHANCED_BYTES 4     /* IRD and ORD, in front of the private data */
#define MPA_PRIVATE_MAX 512      /* by the RFC, enhanced header included */
#define MPA_FRAME_MAX (MPA_FRAME_FIXED_BYTES + MPA_PRIVATE_MAX)
#define MPA_DEPTH_MAX 0x3fff /* IRD, ORD: 14 bits */

enum mpa_kind {
	MPA_REQUEST,
	MPA_REPLY,
};

struct mpa_frame {
	enum mpa_kind kind;
	uint8_t revision;
	bool markers;  /* M: its sender wants to receive markers */
	bool crc;      /* C */
	bool reject;   /* R, replies only */
	bool enhanced; /* S: ird, ord and the flags below are there (revision 2) */
	uint16_t ird, ord;
	bool peer_to_peer;   /* A: the initiator will send a ready-to-receive message */
	bool rtr_fpdu;       /* B: ... a zero-length FPDU */
	bool rtr_write;      /* C: ... a zero-length RDMA Write */
	bool rtr_read;       /* D: ... a zero-length RDMA Read */
	const uint8_t *priv; /* private data without the enhanced header; not copied */
	size_t priv_len;
};

/* Bytes of the frame.  `out` has room for MPA_FRAME_MAX; priv_len is within the limit (assert). */
size_t mpa_frame_put(uint8_t *out, const struct mpa_frame *);

/*
 * Parses a frame of `kind` from the first `bytes` of a stream.  >0: its length in bytes, *frame is
 * filled and frame->priv points into `in`; -EAGAIN: more bytes are needed, *need says how many the
 * frame has at least; -EPROTO: not such a frame (wrong key, too long, or a short enhanced header).
 * An unknown revision is no error here: the answer to it is the caller's business.
 */
int mpa_frame_get(
	const uint8_t *in, size_t bytes, enum mpa_kind kind, struct mpa_frame *frame, size_t *need);

#define MPA_LENGTH_BYTES 2
#define MPA_CRC_BYTES 4
#define MPA_ULPDU_MAX 65535
#define MPA_TRAILER_MAX (3 + MPA_CRC_BYTES)

/* Pad bytes behind a ULPDU, so that length field, ULPDU and pad are a multiple of four. */
static inline size_t mpa_pad_bytes(size_t ulpdu_bytes)
{
	return (0u - (MPA_LENGTH_BYTES + ulpdu_bytes)) & 3;
}

/* Pad and CRC: what follows the ULPDU. */
static inline size_t mpa_trailer_bytes(size_t ulpdu_bytes)
{
	return mpa_pad_bytes(ulpdu_bytes) + MPA_CRC_BYTES;
}

/* The CRC goes least significant byte first, as in iSCSI. */
void mpa_crc_put(uint8_t *out, uint32_t crc);
uint32_t mpa_crc_get(const uint8_t *in);

#endif
