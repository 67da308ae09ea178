/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block/seal: see seal.h.
 */
#include "block/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONCE_BYTES 12u
#define KEY_BYTES 32u
#define KEY_INFO "rftp block key"
#define KEYS 2u /* that a thread keeps: at a sink blocks of two of them may be mixed */
#define SUM_AT (BLOCK_PREFIX_BYTES - BLOCK_SUM_BYTES)

/* The first word of a nonce: what it is for. */
enum use { USE_PAYLOAD = 1, USE_PREFIX = 2 };

struct seal_key {
	enum seal_level level;
	uint8_t secret[SEAL_SECRET_BYTES];
	_Atomic uint64_t counter; /* the next */
};

struct seal {
	struct seal_key *key;
	EVP_CIPHER *cipher;
	struct {
		EVP_CIPHER_CTX *ctx;
		uint64_t number; /* of the key; of those that share a place, the last used */
		bool set;
	} keys[KEYS];
};

int seal_key_new(
	enum seal_level level, const uint8_t secret[SEAL_SECRET_BYTES], struct seal_key **out)
{
	struct seal_key *k = calloc(1, sizeof *k);

	if (!k)
		return -ENOMEM;
	k->level = level;
	memcpy(k->secret, secret, sizeof k->secret);
	atomic_init(&k->counter, 0);
	*out = k;
	return 0;
}

void seal_key_free(struct seal_key *k)
{
	if (!k)
		return;
	OPENSSL_cleanse(k->secret, sizeof k->secret);
	free(k);
}

int seal_new(struct seal_key *key, struct seal **out)
{
	struct seal *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	s->key = key;
	s->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	for (unsigned i = 0; i < KEYS; i++)
		s->keys[i].ctx = EVP_CIPHER_CTX_new();
	if (!s->cipher || !s->keys[0].ctx || !s->keys[1].ctx) {
		seal_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void seal_free(struct seal *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < KEYS; i++)
		EVP_CIPHER_CTX_free(s->keys[i].ctx);
	EVP_CIPHER_free(s->cipher);
	free(s);
}

static void put_u64(uint8_t *to, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		to[i] = (uint8_t)(value >> (56 - 8 * i));
}

static uint64_t get_u64(const uint8_t *from)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value = value << 8 | from[i];
	return value;
}

/* HKDF-Expand of one block: HMAC(secret, info | number | 1). */
static bool make_key(const struct seal_key *k, uint64_t number, uint8_t key[KEY_BYTES])
{
	uint8_t info[sizeof KEY_INFO - 1 + 8 + 1];
	unsigned len = KEY_BYTES;

	memcpy(info, KEY_INFO, sizeof KEY_INFO - 1);
	put_u64(info + sizeof KEY_INFO - 1, number);
	info[sizeof info - 1] = 1;
	return HMAC(EVP_sha256(), k->secret, sizeof k->secret, info, sizeof info, key, &len);
}

/* The cipher with the counter's key and nonce, to encrypt or decrypt; NULL: the library failed. */
static EVP_CIPHER_CTX *begin(struct seal *s, uint64_t counter, enum use use, bool encrypt)
{
	uint64_t number = counter / SEAL_KEY_BLOCKS;
	unsigned at = (unsigned)(number % KEYS);
	EVP_CIPHER_CTX *ctx = s->keys[at].ctx;
	uint8_t nonce[NONCE_BYTES] = {0, 0, 0, (uint8_t)use}, key[KEY_BYTES];
	bool ok = true;

	put_u64(nonce + 4, counter);
	if (!s->keys[at].set || s->keys[at].number != number) {
		ok = make_key(s->key, number, key) &&
		     EVP_CipherInit_ex2(ctx, s->cipher, key, NULL, encrypt, NULL);
		OPENSSL_cleanse(key, sizeof key);
		s->keys[at].set = ok;
		s->keys[at].number = number;
	}
	if (!ok || !EVP_CipherInit_ex2(ctx, NULL, NULL, nonce, encrypt, NULL))
		return NULL;
	return ctx;
}

static bool authenticate(EVP_CIPHER_CTX *ctx, const uint8_t *bytes, uint32_t len)
{
	int n;

	return EVP_CipherUpdate(ctx, NULL, &n, bytes, (int)len);
}

static bool pass(EVP_CIPHER_CTX *ctx, uint8_t *bytes, uint32_t len)
{
	int n;

	return EVP_CipherUpdate(ctx, bytes, &n, bytes, (int)len);
}

static bool end_with_tag(EVP_CIPHER_CTX *ctx, uint8_t tag[SEAL_TAG_BYTES])
{
	uint8_t none[1];
	int n;

	return EVP_CipherFinal_ex(ctx, none, &n) &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_BYTES, tag);
}

static bool has_tag(EVP_CIPHER_CTX *ctx, const uint8_t tag[SEAL_TAG_BYTES])
{
	uint8_t none[1], copy[SEAL_TAG_BYTES];
	int n;

	memcpy(copy, tag, sizeof copy);
	return EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_BYTES, copy) &&
	       EVP_CipherFinal_ex(ctx, none, &n);
}

/* The payload as the level has it. */
static bool cross(const struct seal *s, EVP_CIPHER_CTX *ctx, struct block *b)
{
	return s->key->level == SEAL_PRIVATE ? pass(ctx, b->payload, block_crossing(b))
					     : authenticate(ctx, b->payload, block_crossing(b));
}

int seal_payload(struct seal *s, struct block *b)
{
	uint8_t *at = b->payload - SEAL_PREFIX_BYTES;
	uint64_t counter = atomic_fetch_add_explicit(&s->key->counter, 1, memory_order_relaxed);
	EVP_CIPHER_CTX *ctx = begin(s, counter, USE_PAYLOAD, true);

	put_u64(at, counter);
	if (!ctx || !cross(s, ctx, b) || !end_with_tag(ctx, at + SEAL_COUNTER_BYTES))
		return -EIO;
	return 0;
}

/* Both sides: what is authenticated, and the sum. */
static bool cross_prefix(EVP_CIPHER_CTX *ctx, uint8_t prefix[SEAL_PREFIX_BYTES])
{
	uint8_t *header = prefix + SEAL_BYTES;

	return authenticate(ctx, prefix, SEAL_COUNTER_BYTES + SEAL_TAG_BYTES) &&
	       authenticate(ctx, header, BLOCK_HEADER_BYTES) &&
	       pass(ctx, header + SUM_AT, BLOCK_SUM_BYTES);
}

int seal_prefix(struct seal *s, struct block *b)
{
	uint8_t *prefix = b->payload - SEAL_PREFIX_BYTES;
	EVP_CIPHER_CTX *ctx = begin(s, get_u64(prefix), USE_PREFIX, true);

	if (!ctx || !cross_prefix(ctx, prefix) ||
		!end_with_tag(ctx, prefix + SEAL_COUNTER_BYTES + SEAL_TAG_BYTES))
		return -EIO;
	return 0;
}

int seal_open_prefix(struct seal *s, uint8_t prefix[SEAL_PREFIX_BYTES], struct block *b)
{
	EVP_CIPHER_CTX *ctx;

	b->seal_counter = get_u64(prefix);
	memcpy(b->seal_tag, prefix + SEAL_COUNTER_BYTES, sizeof b->seal_tag);
	ctx = begin(s, b->seal_counter, USE_PREFIX, false);
	if (!ctx || !cross_prefix(ctx, prefix) ||
		!has_tag(ctx, prefix + SEAL_COUNTER_BYTES + SEAL_TAG_BYTES))
		return -EILSEQ;
	return 0;
}

int seal_open_payload(struct seal *s, struct block *b)
{
	EVP_CIPHER_CTX *ctx = begin(s, b->seal_counter, USE_PAYLOAD, false);

	if (!ctx || !cross(s, ctx, b) || !has_tag(ctx, b->seal_tag))
		return -EILSEQ;
	return 0;
}
