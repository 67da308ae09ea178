/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls_impl.h: what tls.c, tls_context.c and tls_key.c share, in terms of OpenSSL.
 */
#ifndef SESSION_TLS_IMPL_H
#define SESSION_TLS_IMPL_H

#include "session/tls.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdatomic.h>

struct tls_context {
	atomic_uint references;
	SSL_CTX *ssl;
	bool server;
	struct tls_key key; /* a server's */
};

/* The protocol's name as ALPN has it: its length, then the bytes. */
#define TLS_ALPN_BYTES 7u
extern const unsigned char tls_alpn[TLS_ALPN_BYTES];

/* The private key in a file that nobody else may read.  NULL: `why`, and errno. */
EVP_PKEY *tls_key_load(const char *path, char why[TLS_WHY_MAX]);
/* A certificate of the key by itself.  NULL: no memory. */
X509 *tls_key_certify(EVP_PKEY *);
/* 0 or -EPROTO. */
int tls_key_from_pkey(struct tls_key *, EVP_PKEY *);
/* What OpenSSL's error queue says, which is empty afterwards. */
const char *tls_error_text(void);

#endif
