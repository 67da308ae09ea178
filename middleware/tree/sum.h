/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/sum: the checksum of a file, computed where it lies, a while at a time.
 *
 * The sums are those of xxh128sum(1), sha256sum(1), md5sum(1) and, for those who need it, the
 * CRC-32 of zlib and gzip(1).  One thread at a time.
 */
#ifndef TREE_SUM_H
#define TREE_SUM_H

#include "proto/message.h"

#define SUM_BYTES_MAX 32u

const char *sum_name(uint8_t algorithm); /* "sha256"; NULL: there is none of that number */
uint8_t sum_by_name(const char *name);   /* enum message_sum_algorithm; 0: there is none */
unsigned sum_bytes(uint8_t algorithm);   /* how long a sum is */

struct sum;

/* Of an open file, which is taken over, also after an error.  0; -EISDIR, -ENXIO: it is no regular
 * file; -ENOMEM. */
int sum_new(int fd, uint8_t algorithm, struct sum **out);
/* Of whatever can be read, from where it stands to its end: a pipe, a terminal.  A step may wait
 * for it.  Taken over likewise; 0 or -ENOMEM. */
int sum_new_stream(int fd, uint8_t algorithm, struct sum **out);
void sum_free(struct sum *);
/* Goes on until `until_ns` (base/clock), and at least by one read.  1: there is more; 0: it is
 * done; -errno; -ESTALE: the file changed meanwhile. */
int sum_step(struct sum *, uint64_t until_ns);
uint64_t sum_done_bytes(const struct sum *); /* read so far */
/* Once it is done: sum_bytes() of them. */
const uint8_t *sum_result(const struct sum *);

#endif
