/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer: the messages of a transfer, and the block header.
 *
 * They use the frames of proto/message.h with types 64..95 and the transfer's number as response,
 * and have rows in the same codec table.  In the order of a transfer, on the control channel unless
 * said (S: source, K: sink):
 *
 * - S OFFER, K ACCEPT (or ABORT): once; ACCEPT names the sink's memory.
 * - S EXPOSE: engine pull, where the sink fetches blocks: once, before the first FILE.
 * - K GRANT, S REQUEST: engine credit, at any time between ACCEPT and CLOSED.
 * - S FILE, K HAVE*, READY (or RESULT: refused): of each file, many at once.
 * - S HOLE: of a file that has some.
 * - S blocks, on the data channels: each a WRITE with its notice behind; engine status: with its
 *   status byte; engine window: K ACK, a notice's bytes, of each; engine pull: as status, or K
 *   READs of S's records and slots, and WRITEs that give them back.
 * - S FILE_END, K RESULT: of each file that was READY.
 * - S COMPLETE: once, behind the last FILE_END; K CLOSED: once, behind the last RESULT; memory is
 *   revoked before CLOSED.
 * - Either ABORT: ends the transfer, not the session; the other side answers ABORT unless it sent
 * one already.
 *
 * get/put functions as in proto/message.h.
 */
#ifndef PROTO_TRANSFER_H
#define PROTO_TRANSFER_H

#include "proto/attributes.h"
#include "proto/message.h"

enum transfer_type {
	TRANSFER_OFFER = 64,
	TRANSFER_ACCEPT = 65,
	TRANSFER_GRANT = 66,
	TRANSFER_REQUEST = 67,
	TRANSFER_HOLE = 68,
	TRANSFER_FILE = 69,
	TRANSFER_READY = 70,
	TRANSFER_FILE_END = 71,
	TRANSFER_RESULT = 72,
	TRANSFER_COMPLETE = 73,
	TRANSFER_CLOSED = 74,
	TRANSFER_ABORT = 75,
	TRANSFER_PAUSED = 76, /* data as of MESSAGE_QUEUED; from the daemon, in either direction */
	TRANSFER_HAVE = 77,
	TRANSFER_FILES = 78, /* proto/bundle.h */
	TRANSFER_RESULTS = 79,
	TRANSFER_EXPOSE = 80, /* proto/transfer_expose.h */
};

/* Whether a frame of this type is of a transfer that runs, whose number its header has. */
static inline bool transfer_is_frame(uint16_t type)
{
	return type >= TRANSFER_OFFER && type <= TRANSFER_EXPOSE;
}

#define TRANSFER_BLOCK_MIN 65536u
#define TRANSFER_BLOCK_MAX 16777216u
#define TRANSFER_DEPTH_MAX 65536u             /* blocks of a sink */
#define TRANSFER_GRANTS_MAX 4096u             /* indices in one GRANT */
#define TRANSFER_HAVE_MAX 4096u               /* leaves in one HAVE */
#define TRANSFER_NAME_MAX 16383u              /* bytes of a FILE's name */
#define TRANSFER_OPEN_MAX 256u                /* files between FILE and RESULT at once */
#define TRANSFER_SIZE_MAX 0x7fffffffffffffffu /* of a file, and of offset + length: fits off_t */
#define TRANSFER_BLOCKS_MAX 0x100000000u      /* of a file: sequence has 32 bits */
#define TRANSFER_SLOT_OFFSET (4096u - 32u)    /* in a slot, where the block header begins */

/* How the sink learns of a landed block. */
enum transfer_notice {
	TRANSFER_NOTICE_BEHIND =
		1, /* on the data channel, right behind the data: WRITE_IMM with the
		      block's index where both sides have it, else a SEND of it */
	TRANSFER_NOTICE_GATHERED = 2, /* on the data channel, one SEND behind the payloads of
					several blocks, with their headers: transfer_get_gathered */
};

/*
 * The secret that seals a transfer's blocks is 32 bytes of TLS's exporter (RFC 8446, 7.5), with
 * this label and OFFER's salt as the context.
 */
#define TRANSFER_SALT_BYTES 16u
#define TRANSFER_SECRET_LABEL "EXPERIMENTAL rftp blocks"

struct transfer_offer {
	uint8_t engine;        /* enum message_engine */
	uint8_t notice;        /* enum transfer_notice */
	uint16_t channels;     /* data channels 0..channels-1 are used; all are open already */
	uint32_t block;        /* payload bytes of a block: a multiple of 4096, 64 KiB..16 MiB */
	uint32_t depth;        /* blocks the source would like the sink to have */
	uint32_t flags;        /* bit 0: immediate data can be used */
	uint64_t files, bytes; /* of the whole transfer, or MESSAGE_UNKNOWN: hints */
	uint8_t protect;       /* enum message_protect: as HELLO agreed on */
	uint8_t salt[TRANSFER_SALT_BYTES]; /* random: of the secret that seals the blocks */
	uint64_t disk; /* of `bytes`: those that a disk has to have room for, or MESSAGE_UNKNOWN */
	/* the names beneath the destination that everything is in: message_add_path,
	 * message_next_path; empty: it may be anywhere in it */
	struct wire_bytes roots;
};
#define TRANSFER_OFFER_IMM 1u
#define TRANSFER_OFFER_NET 2u /* from `disk` is taken off what goes when files are replaced */
#define TRANSFER_OFFER_ROOTS_MAX 1024u
#define TRANSFER_OFFER_MAX (59u + TRANSFER_OFFER_ROOTS_MAX)

struct transfer_accept {
	uint32_t depth;  /* blocks that the sink has, 1..TRANSFER_DEPTH_MAX */
	uint32_t stride; /* bytes from one block's slot to the next */
	uint64_t base;   /* remote address of slot 0; data of slot i is written from
			    base + i * stride + 4096 - 32 on, with gathered notices from 4096 on */
	uint32_t key;
	uint32_t flags; /* bit 0: notices are WRITE_IMM; bit 1: small files may come as bundles */
	/* engine `status`, and `pull` where the source writes: remote address and key of the status
	 * byte of slot 0; the others follow, one byte a slot, then zeros up to
	 * transfer_status_bytes.  0 with other engines */
	uint64_t status_base;
	uint32_t status_key;
};
#define TRANSFER_ACCEPT_IMM 1u
#define TRANSFER_ACCEPT_BUNDLES 2u

/* Bytes of the region that the status bytes of `depth` slots are in, all read at once: at least
 * TRANSFER_STATUS_BYTES_MIN, for a driver may take another way with short READs (the kernel's siw,
 * one on which it may fail). */
#define TRANSFER_STATUS_BYTES_MIN 64u
uint32_t transfer_status_bytes(uint32_t depth);

/* A slot's status byte.  The source writes DATA, the sink all others. */
enum transfer_byte {
	TRANSFER_BYTE_FREE = 0,        /* the source may fill the slot */
	TRANSFER_BYTE_DATA = 1,        /* it holds a block; the sink has not emptied it */
	TRANSFER_BYTE_UNAVAILABLE = 2, /* the sink keeps what is in it for a while: it is skipped */
};

struct transfer_grant {
	uint16_t count;         /* 1..TRANSFER_GRANTS_MAX */
	const uint8_t *indices; /* big-endian 32 bits each, in the buffer: transfer_grant_index */
};
uint32_t transfer_grant_index(const struct transfer_grant *, unsigned i);

struct transfer_notice_msg {
	uint32_t index; /* of the sink's block; of a slot of the area TRANSFER_EARLY_FIRST more */
};
/* Early data: blocks that were sent before their file was READY, to slots of the area that CHANNELS
 * named: as many of the block's stride as there is room for.  Their notices are SENDs behind them,
 * one each, whatever OFFER says. */
#define TRANSFER_EARLY_FIRST TRANSFER_DEPTH_MAX
#define TRANSFER_EARLY_MAX 15u /* slots: MESSAGE_AREA_MAX in the smallest blocks */

/* A gathered notice: for each block 4 bytes of index and its TRANSFER_BLOCK_BYTES of header and
 * checksum, which are not written to its slot then. */
#define TRANSFER_GATHERED_MAX 8u
#define TRANSFER_GATHERED_BYTES (4u + 32u)
struct transfer_gathered {
	unsigned count;         /* 1..TRANSFER_GATHERED_MAX */
	const uint8_t *entries; /* in the buffer */
};

enum transfer_file_kind {
	TRANSFER_FILE_REGULAR = 1,
	TRANSFER_FILE_DIRECTORY = 2,     /* no blocks, no FILE_END: answered with RESULT */
	TRANSFER_FILE_STREAM = 3,        /* size unknown, blocks are delivered in order */
	TRANSFER_FILE_NULL = 4,          /* bench: discarded */
	TRANSFER_FILE_DIRECTORY_END = 5, /* all that is in the directory of this name was announced:
					    it gets its mode and time once that has arrived.
					    Answered with RESULT, as a directory is */
	TRANSFER_FILE_LINK = 6,    /* symbolic link: likewise no blocks, answered with RESULT */
	TRANSFER_FILE_SPECIAL = 7, /* a device, FIFO or socket, which is left out: its name is told,
				      and nothing is made.  Answered with RESULT */
	TRANSFER_FILE_HARD_LINK = 8,  /* another name of a file that was announced before: made once
					 all announced before it have ended.  Answered with RESULT */
	TRANSFER_FILE_ATTRIBUTES = 9, /* a regular file that the sink has: it gets its mode, its
					 time, and what else its FILE says.  No blocks, answered
					 with RESULT */
};
#define TRANSFER_FILE_HAS 0x80u /* in FILE's kind: `has` and its fields follow */

/* What a FILE says beyond mode and time: bits of `has`. */
enum transfer_has {
	TRANSFER_HAS_OWNER = 1,      /* uid and user */
	TRANSFER_HAS_GROUP = 2,      /* gid and group */
	TRANSFER_HAS_XATTRS = 4,     /* all extended attributes: what else is there goes */
	TRANSFER_HAS_ACLS = 8,       /* acl and default_acl; empty: there is none */
	TRANSFER_HAS_LOST = 16,      /* the source had more than it could send of the last two */
	TRANSFER_HAS_NAMES = 32,     /* a hard link to it may follow */
	TRANSFER_HAS_HOLES = 64,     /* HOLE may come in the place of blocks */
	TRANSFER_HAS_IDENTITY = 128, /* identity */
};
#define TRANSFER_HAS_ALL 255u
#define TRANSFER_ACCOUNT_MAX 255u  /* bytes of a user's or group's name */
#define TRANSFER_XATTRS_MAX 32768u /* of all extended attributes: proto/attributes.h */
#define TRANSFER_ACL_MAX 4096u
struct transfer_file {
	uint32_t file; /* number in the transfer, from 1, ascending; the block header's session */
	uint8_t kind;
	uint32_t mode;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t size;          /* or MESSAGE_UNKNOWN (streams only) */
	struct wire_bytes name; /* beneath the destination; '/'-separated, never absolute, no "..";
				   empty: the destination itself */
	struct wire_bytes target; /* what a link says, any bytes but NUL; of a hard link the name of
				     the file that it is one to; else empty */
	uint32_t first;           /* the number of that file; else 0 */
	/* ATTRIBUTES: what the sink's file is to be still; without `seen` only its size is known,
	 * which is the source's.  The rest is 0 then. */
	bool seen;
	struct message_seen there;
	uint16_t has; /* enum transfer_has; what it does not name is empty or 0 */
	uint32_t uid, gid;
	struct wire_bytes user, group; /* names; empty: only the number counts */
	struct wire_bytes xattrs;
	struct wire_bytes acl, default_acl; /* acl(5), short text form with commas */
	uint64_t identity; /* another number when the file may be another one, whatever size and
			      time say */
};
#define TRANSFER_TARGET_MAX 4095u
/* The longest FILE: a regular one with all that it may have. */
#define TRANSFER_FILE_MAX                                                                          \
	(29u + 2 + TRANSFER_NAME_MAX + 2 + 2 * (4 + 2 + TRANSFER_ACCOUNT_MAX) + 2 +                \
		TRANSFER_XATTRS_MAX + 2 * (2 + TRANSFER_ACL_MAX))
/* Blocks of the file that the sink has already, from a transfer that was cut short: they are not
 * sent.  Before READY, in ascending order. */
struct transfer_have {
	uint32_t file;
	uint64_t first;        /* its offset divided by the size of a block */
	uint16_t count;        /* 1..TRANSFER_HAVE_MAX */
	const uint8_t *leaves; /* of each, 64 bits big-endian: transfer_have_leaf */
};
uint64_t transfer_have_leaf(const struct transfer_have *, unsigned i);
struct transfer_ready {
	uint32_t file;
	uint64_t bytes; /* of the blocks in its HAVEs */
};
/* Zeros in the place of blocks, of a file with TRANSFER_HAS_HOLES: whole blocks, or to its end. */
struct transfer_hole {
	uint32_t file;
	uint64_t offset, length; /* length is not 0 */
};
struct transfer_file_end {
	uint32_t file;
	uint16_t status; /* not 0: the source could not read it; the sink discards */
	uint64_t size, blocks;
	uint64_t digest; /* root of the tree of blocks (block/digest.h) */
};
struct transfer_result {
	uint32_t file;
	uint16_t status; /* 0: it is under its real name, on stable storage, with this digest */
	uint64_t size, digest;
	struct wire_bytes text; /* why not, or what of it could not be kept; 0..512 bytes */
};
struct transfer_complete { /* COMPLETE and CLOSED */
	uint64_t files, bytes, errors;
	uint32_t open; /* COMPLETE: ended, and without a RESULT yet; then there were no errors */
};
struct transfer_abort {
	uint16_t status; /* why; never 0 */
	struct wire_bytes text;
};

/* Block header, RFTP's Fig. 7(b): 24 bytes; then the 8 bytes of checksum. */
struct transfer_block {
	uint32_t session, sequence;
	uint64_t offset;
	uint32_t length; /* of the payload, never 0 */
	uint8_t flags;   /* of the paper's reserved word the low bits */
	uint32_t stored; /* with TRANSFER_BLOCK_STORED: bytes that cross, fewer than length; the
			    word's upper 24 bits */
	uint64_t sum;    /* follows the header; XXH3-64 of payload xor XXH3-64 of the 24 bytes */
};
#define TRANSFER_BLOCK_BYTES 32u
#define TRANSFER_BLOCK_LAST 1u   /* of a stream; a hint */
#define TRANSFER_BLOCK_STORED 2u /* the payload crosses as raw DEFLATE */
#define TRANSFER_BLOCK_STORED_SHIFT 8

int transfer_get_offer(struct transfer_offer *, const void *, size_t);
ssize_t transfer_put_offer(const struct transfer_offer *, void *, size_t);
int transfer_get_accept(struct transfer_accept *, const void *, size_t);
ssize_t transfer_put_accept(const struct transfer_accept *, void *, size_t);
int transfer_get_grant(struct transfer_grant *, const void *, size_t);
ssize_t transfer_put_grant(const uint32_t *indices, unsigned count, void *, size_t);
int transfer_get_notice(struct transfer_notice_msg *, const void *, size_t);
ssize_t transfer_put_notice(const struct transfer_notice_msg *, void *, size_t);
int transfer_get_gathered(struct transfer_gathered *, const void *, size_t);
/* Of block i: the sink's index, below TRANSFER_DEPTH_MAX, and header and checksum as they came. */
uint32_t transfer_gathered_index(const struct transfer_gathered *, unsigned i);
const uint8_t *transfer_gathered_header(const struct transfer_gathered *, unsigned i);
/* Writes one block's TRANSFER_GATHERED_BYTES. */
void transfer_put_gathered(uint32_t index, const uint8_t *header, uint8_t *entry);
int transfer_get_file(struct transfer_file *, const void *, size_t);
/* Ends its strings with NUL, in the bytes that it was got from: once these have all been read, the
 * byte behind each string is one that was, and needs to be there and writable. */
void transfer_file_terminate(struct transfer_file *);
ssize_t transfer_put_file(const struct transfer_file *, void *, size_t);
int transfer_get_have(struct transfer_have *, const void *, size_t);
/* `leaves` instead of those in the struct. */
ssize_t transfer_put_have(const struct transfer_have *, const uint64_t *leaves, void *, size_t);
int transfer_get_ready(struct transfer_ready *, const void *, size_t);
ssize_t transfer_put_ready(const struct transfer_ready *, void *, size_t);
int transfer_get_hole(struct transfer_hole *, const void *, size_t);
ssize_t transfer_put_hole(const struct transfer_hole *, void *, size_t);
int transfer_get_file_end(struct transfer_file_end *, const void *, size_t);
ssize_t transfer_put_file_end(const struct transfer_file_end *, void *, size_t);
int transfer_get_result(struct transfer_result *, const void *, size_t);
ssize_t transfer_put_result(const struct transfer_result *, void *, size_t);
int transfer_get_complete(struct transfer_complete *, const void *, size_t);
ssize_t transfer_put_complete(const struct transfer_complete *, void *, size_t);
int transfer_get_abort(struct transfer_abort *, const void *, size_t);
ssize_t transfer_put_abort(const struct transfer_abort *, void *, size_t);

/* The 32 bytes before a block's payload.  `block_bytes` bounds length (capacity of a block). */
int transfer_get_block(
	struct transfer_block *, const uint8_t bytes[TRANSFER_BLOCK_BYTES], uint32_t block_bytes);
void transfer_put_block(const struct transfer_block *, uint8_t bytes[TRANSFER_BLOCK_BYTES]);

/* Whether bytes are a file's name that may cross: relative, no empty, "." or ".." component, no
 * NUL, at most TRANSFER_NAME_MAX bytes, components at most 255; empty is allowed. */
bool transfer_name_ok(struct wire_bytes);
/* Whether a file is all in its FILE: no blocks, no FILE_END. */
bool transfer_is_bare(const struct transfer_file *);
/* Whether it is one of the files that COMPLETE and CLOSED count. */
bool transfer_counts(const struct transfer_file *);

#endif
