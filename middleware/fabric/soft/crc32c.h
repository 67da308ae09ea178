/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/crc32c: the CRC of MPA (Castagnoli polynomial, reflected), by instruction where there
 * is one.  Pure; thread-safe.
 */
#ifndef FABRIC_CRC32C_H
#define FABRIC_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Continues `crc` (0 to begin) over `bytes` at `data`; what it returns is both the finished value
 * so far and what the next call continues.  crc32c(0, "123456789", 9) is 0xe3069283.
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

/* The same from tables alone: for CPUs without the instruction, and to test against. */
uint32_t crc32c_table(uint32_t crc, const void *data, size_t bytes);

/* Whether crc32c uses the instruction. */
bool crc32c_is_fast(void);

#endif
