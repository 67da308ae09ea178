/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/bytes: big-endian integers in byte arrays, for the codecs of this directory.
 *
 * No bounds: the callers have counted.  (proto/wire has them, but the fabric room knows no proto.)
 */
#ifndef FABRIC_BYTES_H
#define FABRIC_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void bytes_put16(uint8_t *out, uint16_t value)
{
	value = htobe16(value);
	memcpy(out, &value, sizeof(value));
}

static inline void bytes_put32(uint8_t *out, uint32_t value)
{
	value = htobe32(value);
	memcpy(out, &value, sizeof(value));
}

static inline void bytes_put64(uint8_t *out, uint64_t value)
{
	value = htobe64(value);
	memcpy(out, &value, sizeof(value));
}

static inline uint16_t bytes_get16(const uint8_t *in)
{
	uint16_t value;

	memcpy(&value, in, sizeof(value));
	return be16toh(value);
}

static inline uint32_t bytes_get32(const uint8_t *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof(value));
	return be32toh(value);
}

static inline uint64_t bytes_get64(const uint8_t *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof(value));
	return be64toh(value);
}

#endif
