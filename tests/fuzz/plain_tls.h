/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/plain_tls.h: TLS that encrypts nothing, in the place of session/tls (--wrap), so that
 * a session costs no public keys.  What it is like from the outside stays: who connects says
 * something first, the other one answers, and both sides export the same secrets.
 */
#ifndef TESTS_FUZZ_PLAIN_TLS_H
#define TESTS_FUZZ_PLAIN_TLS_H

#include "session/tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct plain_tls {
	bool client, said, complete;
};

static struct plain_tls *plain_of(const struct tls *t)
{
	return (struct plain_tls *)(uintptr_t)t;
}

int __wrap_tls_new(const struct tls_context *, const char *host, struct tls **);
int __wrap_tls_new(const struct tls_context *context, const char *host, struct tls **out)
{
	struct plain_tls *t = calloc(1, sizeof *t);

	(void)context;
	if (!t)
		return -ENOMEM;
	t->client = host;
	*out = (struct tls *)t;
	return 0;
}

void __wrap_tls_free(struct tls *);
void __wrap_tls_free(struct tls *t)
{
	free(t);
}

int __wrap_tls_handshake(struct tls *, struct buffer *in, struct buffer *out);
int __wrap_tls_handshake(struct tls *base, struct buffer *in, struct buffer *out)
{
	struct plain_tls *t = plain_of(base);

	if (buffer_bytes(in)) {
		if (*buffer_front(in) != '!')
			return -EPROTO;
		buffer_consume(in, 1);
		t->complete = true;
	}
	if (t->said || (!t->client && !t->complete))
		return t->complete;
	t->said = true;
	return buffer_append(out, "!", 1) ? -ENOMEM : t->complete;
}

bool __wrap_tls_is_complete(const struct tls *);
bool __wrap_tls_is_complete(const struct tls *t)
{
	return plain_of(t)->complete;
}

int __wrap_tls_write(struct tls *, const void *data, size_t len, struct buffer *out);
int __wrap_tls_write(struct tls *t, const void *data, size_t len, struct buffer *out)
{
	(void)t;
	return buffer_append(out, data, len);
}

int __wrap_tls_read(
	struct tls *, struct buffer *in, struct buffer *plain, size_t most, struct buffer *out);
int __wrap_tls_read(
	struct tls *t, struct buffer *in, struct buffer *plain, size_t most, struct buffer *out)
{
	size_t len = buffer_bytes(in) < most ? buffer_bytes(in) : most;

	(void)t;
	(void)out;
	if (len && buffer_append(plain, buffer_front(in), len))
		return -ENOMEM;
	if (len)
		buffer_consume(in, len);
	return 0;
}

void __wrap_tls_describe(const struct tls *, char *text, size_t size);
void __wrap_tls_describe(const struct tls *t, char *text, size_t size)
{
	(void)t;
	snprintf(text, size, "none");
}

int __wrap_tls_peer_key(const struct tls *, struct tls_key *);
int __wrap_tls_peer_key(const struct tls *t, struct tls_key *key)
{
	(void)t;
	memset(key, 0, sizeof *key);
	return 0;
}

int __wrap_tls_peer_names(const struct tls *, char **names, char why[TLS_WHY_MAX]);
int __wrap_tls_peer_names(const struct tls *t, char **names, char why[TLS_WHY_MAX])
{
	(void)t;
	(void)names;
	(void)why;
	return -ENOENT;
}

int __wrap_tls_export(const struct tls *, const char *label, const void *context,
	size_t context_len, void *secret, size_t len);
int __wrap_tls_export(const struct tls *t, const char *label, const void *context,
	size_t context_len, void *secret, size_t len)
{
	uint64_t state = UINT64_C(0xcbf29ce484222325);
	uint8_t *out = secret;

	(void)t;
	for (; *label; label++)
		state = (state ^ (uint8_t)*label) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < context_len; i++)
		state = (state ^ ((const uint8_t *)context)[i]) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < len; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		out[i] = (uint8_t)(state >> 56);
	}
	return 0;
}

#endif
