/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls_sign: see tls_sign.h.
 */
#include "session/tls_sign.h"

#include "session/tls_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#define TYPE "ssh-ed25519"
#define PUBLIC_BYTES 32u
#define BLOB_BYTES (4u + sizeof TYPE - 1 + 4u + PUBLIC_BYTES)

/* What stands before the public key. */
static const uint8_t head[] = {
	0, 0, 0, 11, 's', 's', 'h', '-', 'e', 'd', '2', '5', '5', '1', '9', 0, 0, 0, PUBLIC_BYTES};
_Static_assert(sizeof head + PUBLIC_BYTES == BLOB_BYTES, "a key's bytes");

int tls_key_from_blob(struct tls_key *key, const void *blob, size_t len)
{
	if (len != BLOB_BYTES || memcmp(blob, head, sizeof head) != 0)
		return -EINVAL;
	*key = (struct tls_key){.type = TYPE, .len = len};
	memcpy(key->blob, blob, len);
	return 0;
}

int tls_key_from_base64(struct tls_key *key, const char *text, size_t len)
{
	uint8_t blob[BLOB_BYTES + 3];
	ssize_t n = tls_base64_decode(text, len, blob, sizeof blob);

	return n < 0 ? (int)n : tls_key_from_blob(key, blob, (size_t)n);
}

int tls_key_from_seed(struct tls_key *key, const uint8_t seed[TLS_SEED_BYTES])
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, TLS_SEED_BYTES);
	int err = pkey ? tls_key_from_pkey(key, pkey) : -ENOMEM;

	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return err;
}

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

ssize_t tls_base64_decode(const char *text, size_t len, void *out, size_t room)
{
	uint8_t *to = out;
	size_t n = 0, pad = 0;
	uint32_t bits = 0;

	if (len % 4)
		return -EINVAL;
	while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < len; i++) {
		int d = i < len - pad ? digit(text[i]) : 0;

		if (d < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)d;
		if (i % 4 != 3)
			continue;
		for (int k = 2; k >= 0; k--) {
			if (i == len - 1 && (size_t)k < pad) { /* what is padding holds nothing */
				if (bits >> (8 * k) & 0xff)
					return -EINVAL;
				continue;
			}
			if (n == room)
				return -EINVAL;
			to[n++] = (uint8_t)(bits >> (8 * k));
		}
		bits = 0;
	}
	return (ssize_t)n;
}

int tls_sign(const uint8_t seed[TLS_SEED_BYTES], const void *message, size_t len,
	uint8_t signature[TLS_SIGNATURE_BYTES])
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, TLS_SEED_BYTES);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t signature_len = TLS_SIGNATURE_BYTES;
	bool ok = pkey && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
		  EVP_DigestSign(ctx, signature, &signature_len, message, len) == 1;

	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return ok ? 0 : -ENOMEM;
}

bool tls_verify(const struct tls_key *key, const void *message, size_t len, const void *signature,
	size_t signature_len)
{
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx;
	bool ok;

	if (key->len != BLOB_BYTES || signature_len != TLS_SIGNATURE_BYTES)
		return false;
	pkey = EVP_PKEY_new_raw_public_key(
		EVP_PKEY_ED25519, NULL, key->blob + sizeof head, PUBLIC_BYTES);
	ctx = EVP_MD_CTX_new();
	ok = pkey && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
	     EVP_DigestVerify(ctx, signature, signature_len, message, len) == 1;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return ok;
}

int tls_mac(const uint8_t key[TLS_MAC_KEY_BYTES], const void *message, size_t len,
	uint8_t mac[TLS_MAC_BYTES])
{
	unsigned n = TLS_MAC_BYTES;
	const void *made = HMAC(EVP_sha256(), key, TLS_MAC_KEY_BYTES, message, len, mac, &n);

	ERR_clear_error();
	return made ? 0 : -ENOMEM;
}

bool tls_mac_equal(const uint8_t a[TLS_MAC_BYTES], const uint8_t b[TLS_MAC_BYTES])
{
	return !CRYPTO_memcmp(a, b, TLS_MAC_BYTES);
}

int tls_random(void *out, size_t len)
{
	int err = RAND_bytes(out, (int)len);

	ERR_clear_error();
	return err == 1 ? 0 : -EIO;
}
