/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls_context: what of TLS all sessions of a program share: its key and certificate, and
 * whom it believes.  See tls.h.
 */
#include "session/tls_impl.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

const unsigned char tls_alpn[TLS_ALPN_BYTES] = {6, 'r', 'f', 't', 'p', '/', '1'};

void tls_outlive_exit(void)
{
	/* fails for want of memory alone, and then so does what comes next */
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_len, tls_alpn, sizeof tls_alpn, in,
		    in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* The caller decides after the handshake: tls_peer_verified. */
static int accept_any(int verified, X509_STORE_CTX *store)
{
	(void)verified;
	(void)store;
	return 1;
}

static struct tls_context *context_new(const SSL_METHOD *method, bool server)
{
	struct tls_context *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	atomic_init(&c->references, 1);
	c->server = server;
	c->ssl = SSL_CTX_new(method);
	if (!c->ssl || SSL_CTX_set_min_proto_version(c->ssl, TLS1_3_VERSION) != 1 ||
		SSL_CTX_set_num_tickets(c->ssl, 0) != 1) {
		tls_context_free(c);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(c->ssl, SSL_OP_NO_TICKET);
	SSL_CTX_set_mode(c->ssl, SSL_MODE_RELEASE_BUFFERS);
	return c;
}

struct tls_context *tls_context_ref(struct tls_context *c)
{
	atomic_fetch_add(&c->references, 1);
	return c;
}

void tls_context_free(struct tls_context *c)
{
	if (!c || atomic_fetch_sub(&c->references, 1) > 1)
		return;
	SSL_CTX_free(c->ssl);
	free(c);
}

static int out_of_memory(char why[TLS_WHY_MAX])
{
	ERR_clear_error();
	snprintf(why, TLS_WHY_MAX, "no memory for TLS");
	return -ENOMEM;
}

/* The certificate that the context shows: the chain in the file, or one made here. */
static int use_certificate(
	struct tls_context *c, EVP_PKEY *pkey, const char *path, char why[TLS_WHY_MAX])
{
	X509 *cert;
	int ok;

	if (path) {
		if (SSL_CTX_use_certificate_chain_file(c->ssl, path) == 1)
			return 0;
		snprintf(why, TLS_WHY_MAX, "%s: no certificate in PEM can be read from it: %s",
			path, tls_error_text());
		return -EINVAL;
	}
	cert = tls_key_certify(pkey);
	ok = cert && SSL_CTX_use_certificate(c->ssl, cert) == 1;
	X509_free(cert);
	return ok ? 0 : out_of_memory(why);
}

/* Key and certificate, for either side. */
static int use_key(struct tls_context *c, const struct tls_files *files, char why[TLS_WHY_MAX])
{
	EVP_PKEY *pkey = files->key ? tls_key_load(files->key, why)
				    : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	int err;

	if (!pkey)
		return files->key ? -errno : out_of_memory(why);
	err = use_certificate(c, pkey, files->certificate, why);
	if (!err && SSL_CTX_use_PrivateKey(c->ssl, pkey) != 1) {
		snprintf(why, TLS_WHY_MAX, "%s: not the private key of the certificate in %s: %s",
			files->key, files->certificate ? files->certificate : "itself",
			tls_error_text());
		err = -EINVAL;
	}
	if (!err && tls_key_from_pkey(&c->key, pkey)) {
		snprintf(why, TLS_WHY_MAX, "%s: a kind of key that cannot be used", files->key);
		err = -EINVAL;
	}
	EVP_PKEY_free(pkey);
	return err;
}

static int use_authorities(struct tls_context *c, const char *path, char why[TLS_WHY_MAX])
{
	if (SSL_CTX_load_verify_file(c->ssl, path) == 1)
		return 0;
	snprintf(why, TLS_WHY_MAX, "%s: no certificate in PEM can be read from it: %s", path,
		tls_error_text());
	return -EINVAL;
}

/* Asks clients for a certificate, and says of which authorities. */
static int ask_clients(struct tls_context *c, const char *path, char why[TLS_WHY_MAX])
{
	STACK_OF(X509_NAME) * names;
	int err = use_authorities(c, path, why);

	if (err)
		return err;
	names = SSL_load_client_CA_file(path);
	if (!names)
		return out_of_memory(why);
	SSL_CTX_set_client_CA_list(c->ssl, names);
	SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, accept_any);
	return 0;
}

int tls_context_new_server(
	const struct tls_files *files, struct tls_context **out, char why[TLS_WHY_MAX])
{
	struct tls_context *c = context_new(TLS_server_method(), true);
	int err;

	if (!c)
		return out_of_memory(why);
	err = use_key(c, files, why);
	if (!err && files->ca)
		err = ask_clients(c, files->ca, why);
	if (err) {
		tls_context_free(c);
		return err;
	}
	SSL_CTX_set_alpn_select_cb(c->ssl, choose_alpn, NULL);
	*out = c;
	return 0;
}

int tls_context_new_once(struct tls_context **out, char why[TLS_WHY_MAX])
{
	return tls_context_new_server(&(struct tls_files){.key = NULL}, out, why);
}

int tls_context_new_client(
	const struct tls_files *files, struct tls_context **out, char why[TLS_WHY_MAX])
{
	struct tls_context *c = context_new(TLS_client_method(), false);
	int err = 0;

	if (!c || SSL_CTX_set_alpn_protos(c->ssl, tls_alpn, sizeof tls_alpn)) {
		tls_context_free(c);
		return out_of_memory(why);
	}
	SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, accept_any);
	if (files->ca)
		err = use_authorities(c, files->ca, why);
	if (!err && files->key)
		err = use_key(c, files, why);
	if (err) {
		tls_context_free(c);
		return err;
	}
	*out = c;
	return 0;
}

int tls_context_key(const struct tls_context *c, struct tls_key *key)
{
	if (!c->server)
		return -EINVAL;
	*key = c->key;
	return 0;
}
