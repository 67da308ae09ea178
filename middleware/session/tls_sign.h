/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls_sign: Ed25519 keys in the form that ssh has for them (RFC 8709), and what they sign.
 */
#ifndef SESSION_TLS_SIGN_H
#define SESSION_TLS_SIGN_H

#include "session/tls_key.h"

#include <sys/types.h>

#define TLS_SEED_BYTES 32u /* of a private key */
#define TLS_SIGNATURE_BYTES 64u

/* A key from its bytes: "ssh-ed25519" and 32 more, in strings.  -EINVAL: it is none. */
int tls_key_from_blob(struct tls_key *, const void *blob, size_t len);
/* The same from base64, as in an authorized_keys file. */
int tls_key_from_base64(struct tls_key *, const char *text, size_t len);
/* The public key of a private one.  0 or -ENOMEM. */
int tls_key_from_seed(struct tls_key *, const uint8_t seed[TLS_SEED_BYTES]);

/* Base64 with its padding, nothing else in it: the bytes in `out`, of `room`, and how many;
 * -EINVAL.
 */
ssize_t tls_base64_decode(const char *text, size_t len, void *out, size_t room);

int tls_sign(const uint8_t seed[TLS_SEED_BYTES], const void *message, size_t len,
	uint8_t signature[TLS_SIGNATURE_BYTES]);
/* Whether the signature is the key's, of this message. */
bool tls_verify(const struct tls_key *, const void *message, size_t len, const void *signature,
	size_t signature_len);

#define TLS_MAC_BYTES 32u
#define TLS_MAC_KEY_BYTES 32u

/* HMAC-SHA256 (RFC 2104).  0 or -ENOMEM. */
int tls_mac(const uint8_t key[TLS_MAC_KEY_BYTES], const void *message, size_t len,
	uint8_t mac[TLS_MAC_BYTES]);
/* Takes a time that does not depend on where they differ. */
bool tls_mac_equal(const uint8_t a[TLS_MAC_BYTES], const uint8_t b[TLS_MAC_BYTES]);
/* Bytes that nobody can guess.  0 or -EIO. */
int tls_random(void *out, size_t len);

#endif
