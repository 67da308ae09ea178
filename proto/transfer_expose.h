/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer_expose: what a source of the engine `pull` shows its sink: EXPOSE, and the records
 * of its slots.
 *
 * get/put functions as in proto/message.h.
 */
#ifndef PROTO_TRANSFER_EXPOSE_H
#define PROTO_TRANSFER_EXPOSE_H

#include "proto/transfer.h"

/* Engine `pull` where the sink fetches blocks: the source's memory, as ACCEPT names a sink's, which
 * is 0 there but for its depth. */
struct transfer_expose {
	uint32_t blocks; /* slots: 1..depth of ACCEPT */
	uint32_t stride;
	uint64_t base; /* remote address of slot 0; header and payload lie in it as in a sink's */
	uint32_t key;
	uint64_t records_base; /* of the record of slot 0; the others follow, then zeros up to
				  transfer_records_bytes */
	uint32_t records_key;
	uint64_t given_base; /* of the byte of slot 0 that says how often the sink gave it back;
				the others follow */
	uint32_t given_key;
};

/* A slot's record, 8 bytes that are written as one: sequence 32, check 7, length 25 bits.  The
 * check is made of the sequence, so that one which was read while it changed is noticed (not all
 * adapters read 8 bytes as one).  The region is never so small that a READ of it would be short. */
#define TRANSFER_RECORD_BYTES 8u
uint32_t transfer_records_bytes(uint32_t blocks);
struct transfer_record {
	uint32_t sequence; /* counts what the source put into its slots, from 1; 0: nothing yet */
	uint32_t length;   /* payload bytes to be read; 0: none */
};
int transfer_get_expose(struct transfer_expose *, const void *, size_t);
ssize_t transfer_put_expose(const struct transfer_expose *, void *, size_t);
/* The 8 bytes, as a word in memory. */
uint64_t transfer_put_record(const struct transfer_record *);
/* 0 or -EBADMSG: the check is wrong. */
int transfer_get_record(struct transfer_record *, uint64_t word);

#endif
