/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/wire.c: the cursor that every codec is written with.
 *
 * Owns bounds and byte order.
 */
#include "proto/wire.h"

#include <errno.h>
#include <string.h>

void wire_init_put(struct wire *w, void *buf, size_t size)
{
	w->start = w->at = buf;
	w->end = size ? w->start + size : w->start;
	w->get = false;
	w->error = 0;
}

void wire_init_get(struct wire *w, const void *buf, size_t len)
{
	/* One struct serves both directions; no get function writes through the pointer. */
	wire_init_put(w, (void *)(uintptr_t)buf, len);
	w->get = true;
}

/* The next n bytes, or NULL with the error set.  n == 0 never comes here: NULL means failure. */
static uint8_t *wire_take(struct wire *w, size_t n)
{
	uint8_t *p = w->at;

	if (w->error)
		return NULL;
	if (wire_left(w) < n) {
		w->error = -EMSGSIZE;
		return NULL;
	}
	w->at += n;
	return p;
}

static void wire_put_uint(struct wire *w, uint64_t value, unsigned width)
{
	uint8_t *p = wire_take(w, width);

	if (!p)
		return;
	for (unsigned i = 0; i < width; i++)
		p[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
}

static uint64_t wire_get_uint(struct wire *w, unsigned width)
{
	const uint8_t *p = wire_take(w, width);
	uint64_t value = 0;

	if (!p)
		return 0;
	for (unsigned i = 0; i < width; i++)
		value = value << 8 | p[i];
	return value;
}

void wire_put_u8(struct wire *w, uint8_t value)
{
	wire_put_uint(w, value, 1);
}

void wire_put_u16(struct wire *w, uint16_t value)
{
	wire_put_uint(w, value, 2);
}

void wire_put_u32(struct wire *w, uint32_t value)
{
	wire_put_uint(w, value, 4);
}

void wire_put_u64(struct wire *w, uint64_t value)
{
	wire_put_uint(w, value, 8);
}

void wire_put_raw(struct wire *w, const void *data, size_t len)
{
	uint8_t *p;

	if (len == 0)
		return;
	p = wire_take(w, len);
	if (p)
		memcpy(p, data, len);
}

void wire_put_bytes(struct wire *w, struct wire_bytes bytes, size_t max)
{
	if (w->error)
		return;
	/* Both parts are checked first, so that a failure leaves no half field behind. */
	if (bytes.len > max || bytes.len > UINT16_MAX || wire_left(w) < 2 + bytes.len) {
		w->error = -EMSGSIZE;
		return;
	}
	wire_put_u16(w, (uint16_t)bytes.len);
	wire_put_raw(w, bytes.data, bytes.len);
}

uint8_t wire_get_u8(struct wire *w)
{
	return (uint8_t)wire_get_uint(w, 1);
}

uint16_t wire_get_u16(struct wire *w)
{
	return (uint16_t)wire_get_uint(w, 2);
}

uint32_t wire_get_u32(struct wire *w)
{
	return (uint32_t)wire_get_uint(w, 4);
}

uint64_t wire_get_u64(struct wire *w)
{
	return wire_get_uint(w, 8);
}

void wire_get_raw(struct wire *w, void *out, size_t len)
{
	const uint8_t *p;

	if (len == 0)
		return;
	p = wire_take(w, len);
	/* The caller's bytes are defined either way, like the 0 of the other gets. */
	if (p)
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

struct wire_bytes wire_get_bytes(struct wire *w, size_t max)
{
	struct wire_bytes bytes = {NULL, 0};
	size_t len = wire_get_u16(w);

	if (w->error)
		return bytes;
	if (len > max) {
		wire_refuse(w);
		return bytes;
	}
	if (wire_left(w) < len) {
		w->error = -EMSGSIZE;
		return bytes;
	}
	bytes.data = w->at;
	bytes.len = len;
	w->at += len;
	return bytes;
}

void wire_refuse(struct wire *w)
{
	if (!w->error)
		w->error = -EBADMSG;
}

void wire_require(struct wire *w, bool ok)
{
	if (!ok)
		wire_refuse(w);
}

size_t wire_put_length(const struct wire *w)
{
	return (size_t)(w->at - w->start);
}

size_t wire_left(const struct wire *w)
{
	return (size_t)(w->end - w->at);
}

int wire_finish(const struct wire *w)
{
	if (w->error)
		return w->error;
	return w->get && w->at != w->end ? -EBADMSG : 0;
}

ssize_t wire_put_end(const struct wire *w)
{
	return w->error ? w->error : (ssize_t)wire_put_length(w);
}
