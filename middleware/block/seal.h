/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/seal: blocks that nobody on the way can change, or read: AES-256-GCM (NIST SP 800-38D).
 *
 * A sealed block has SEAL_BYTES before its header:
 *
 *     | counter 64 | tag of the payload 128 | tag of the prefix 128 | header 24 | sum 8 | payload |
 *
 * The payload is authenticated (SEAL_SAFE) or encrypted (SEAL_PRIVATE) by whoever read it, in
 * place.  When its header is known, the prefix is sealed: header, counter and the payload's tag are
 * authenticated, and the sum, which tells something of the payload, is encrypted.
 *
 * The secret is one transfer's.  Each block takes the next number of a counter, so no nonce comes
 * twice; after SEAL_KEY_BLOCKS of them the key changes, to the next one that HKDF-Expand (RFC 5869)
 * makes of the secret and the key's number.  That a block comes twice is noticed by those who look
 * at its place in the file.
 */
#ifndef BLOCK_SEAL_H
#define BLOCK_SEAL_H

#include "block/block.h"

#define SEAL_SECRET_BYTES 32u
#define SEAL_COUNTER_BYTES 8u
#define SEAL_TAG_BYTES 16u
#define SEAL_BYTES (SEAL_COUNTER_BYTES + 2 * SEAL_TAG_BYTES)
#define SEAL_PREFIX_BYTES (SEAL_BYTES + BLOCK_PREFIX_BYTES)
#define SEAL_KEY_BLOCKS 4096u /* at most 64 GiB with one key: far below what GCM bears */

enum seal_level {
	SEAL_CLEAR = 0, /* no seal at all */
	SEAL_SAFE = 1,
	SEAL_PRIVATE = 2,
};

struct seal_key; /* a transfer's, for all its threads */
struct seal;     /* one thread's */

/* 0 or -ENOMEM.  `level` is not SEAL_CLEAR. */
int seal_key_new(
	enum seal_level level, const uint8_t secret[SEAL_SECRET_BYTES], struct seal_key **out);
void seal_key_free(struct seal_key *); /* after the seals that use it */
int seal_new(struct seal_key *, struct seal **out);
void seal_free(struct seal *);

/* ---- source: 0 or -EIO (the library failed) ---- */

/* Seals the payload in place; writes counter and tag before it. */
int seal_payload(struct seal *, struct block *);
/* Header and sum are written: seals them in place. */
int seal_prefix(struct seal *, struct block *);

/* ---- sink: 0 or -EILSEQ (it is not what the source sealed) ---- */

/* A copy of the SEAL_PREFIX_BYTES before a payload: opens the sum in it, and notes in the block
 * what its payload must be. */
int seal_open_prefix(struct seal *, uint8_t prefix[SEAL_PREFIX_BYTES], struct block *);
/* Opens the payload in place. */
int seal_open_payload(struct seal *, struct block *);

#endif
