/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/squeeze: payloads that cross compressed: by zlib, each for itself, as raw DEFLATE (RFC
 * 1951); what they are is for the block's checksum to say.
 *
 * One thread uses one.  Its memory is taken with the first block: about 300 KiB to pack, 40 to
 * unpack, and a block's.
 */
#ifndef BLOCK_SQUEEZE_H
#define BLOCK_SQUEEZE_H

#include "block/block.h"

#define SQUEEZE_LEVEL_MAX 9u
/* What does not become smaller by this part of it goes as it is. */
#define SQUEEZE_LEAST 16u

struct squeeze;

/* `level` to pack with: 1 (fast) to 9 (small).  0 or -ENOMEM. */
int squeeze_new(unsigned level, struct squeeze **out);
void squeeze_free(struct squeeze *);

/* Packs the payload in place, and sets block->stored; 0: it stays as it is, since it does not
 * shrink or there is no memory. */
void squeeze_pack(struct squeeze *, struct block *);
/* Unpacks block->stored bytes in place.  0; -EILSEQ: they do not make exactly block->length;
 * -ENOMEM. */
int squeeze_unpack(struct squeeze *, struct block *);

#endif
