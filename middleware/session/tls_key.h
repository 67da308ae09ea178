/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls_key: a host's public key as people and files see it, and the private key's file.
 *
 * An Ed25519 key has the form that ssh gives it (RFC 8709: type "ssh-ed25519"), so that its line in
 * a known_hosts file and its fingerprint are what ssh-keygen(1) shows.  Any other key, which only a
 * certificate of an authority brings, has the type "x509-spki": the SubjectPublicKeyInfo in DER.
 */
#ifndef SESSION_TLS_KEY_H
#define SESSION_TLS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_KEY_MAX 2048u
#define TLS_KEY_TYPE_MAX 24u
#define TLS_FINGERPRINT_MAX 64u

struct tls_key {
	char type[TLS_KEY_TYPE_MAX];
	uint8_t blob[TLS_KEY_MAX];
	size_t len;
};

bool tls_key_equal(const struct tls_key *, const struct tls_key *);
/* "SHA256:" and the hash of the blob in base64 without padding, as ssh writes it. */
void tls_key_fingerprint(const struct tls_key *, char text[TLS_FINGERPRINT_MAX]);

/*
 * Makes an Ed25519 private key in a new file (PEM, mode 0600, flushed to disk).  The file appears
 * whole or not at all.  -EEXIST: there is one already.
 */
int tls_key_create(const char *path);

#endif
