/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls: see tls.h.  What sessions share is in tls_context.c.
 *
 * Owns a session's OpenSSL objects.  The library reads and writes memory BIOs, between which and
 * the queues of the caller bytes are copied: the control channel carries little.
 */
#include "session/tls_impl.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES 16384u

struct tls {
	SSL *ssl;
	BIO *from_peer, *to_peer; /* the ssl's */
	bool server, complete;
};

/* The name goes to the server (RFC 6066) and must be in its certificate; an address only the
 * latter. */
static bool set_host(SSL *ssl, const char *host)
{
	uint8_t address[16];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

int tls_new(const struct tls_context *c, const char *host, struct tls **out)
{
	struct tls *t = calloc(1, sizeof *t);

	if (!t)
		return -ENOMEM;
	t->server = c->server;
	t->ssl = SSL_new(c->ssl);
	t->from_peer = BIO_new(BIO_s_mem());
	t->to_peer = BIO_new(BIO_s_mem());
	if (!t->ssl || !t->from_peer || !t->to_peer) {
		BIO_free(t->from_peer);
		BIO_free(t->to_peer);
		goto err_free;
	}
	BIO_set_mem_eof_return(t->from_peer, -1); /* empty: more will come, it is not the end */
	SSL_set_bio(t->ssl, t->from_peer, t->to_peer);
	if (c->server)
		SSL_set_accept_state(t->ssl);
	else
		SSL_set_connect_state(t->ssl);
	if (!c->server && host && !set_host(t->ssl, host))
		goto err_free;
	*out = t;
	return 0;

err_free:
	ERR_clear_error();
	tls_free(t);
	return -ENOMEM;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

bool tls_is_complete(const struct tls *t)
{
	return t->complete;
}

/* Moves what came to where the library reads it, and what it has written to the peer's queue. */
static int feed(struct tls *t, struct buffer *in)
{
	size_t len = buffer_bytes(in);

	if (!len)
		return 0;
	if (BIO_write(t->from_peer, buffer_front(in), (int)len) != (int)len)
		return -ENOMEM;
	buffer_consume(in, len);
	return 0;
}

static int drain(struct tls *t, struct buffer *out)
{
	size_t len = BIO_ctrl_pending(t->to_peer);
	uint8_t *to;

	if (!len)
		return 0;
	to = buffer_reserve(out, len);
	if (!to)
		return -ENOMEM;
	BIO_read(t->to_peer, to, (int)len);
	buffer_added(out, len);
	return 0;
}

static bool agreed_alpn(const struct tls *t)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(t->ssl, &name, &len);
	return len == sizeof tls_alpn - 1 && !memcmp(name, tls_alpn + 1, len);
}

int tls_handshake(struct tls *t, struct buffer *in, struct buffer *out)
{
	int err = feed(t, in), done;

	if (err)
		return err;
	ERR_clear_error();
	done = SSL_do_handshake(t->ssl);
	err = drain(t, out);
	if (err)
		return err;
	if (done != 1) {
		int error = SSL_get_error(t->ssl, done);

		if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
			return 0;
		log_info("control channel: the TLS handshake failed: %s", tls_error_text());
		return -EPROTO;
	}
	if (!agreed_alpn(t)) { /* the server's side has seen to it already */
		log_info("control channel: the peer speaks TLS, but not " TLS_ALPN);
		return -EPROTO;
	}
	t->complete = true;
	return 1;
}

int tls_write(struct tls *t, const void *data, size_t len, struct buffer *out)
{
	const uint8_t *at = data;

	while (len) {
		size_t piece = len < RECORD_BYTES ? len : RECORD_BYTES;
		int n;

		ERR_clear_error();
		n = SSL_write(t->ssl, at, (int)piece);
		if (n <= 0) {
			log_error("control channel: TLS cannot write: %s", tls_error_text());
			return -EPROTO;
		}
		at += n;
		len -= (size_t)n;
	}
	return drain(t, out);
}

int tls_read(
	struct tls *t, struct buffer *in, struct buffer *plain, size_t most, struct buffer *out)
{
	int err = feed(t, in), error;

	while (!err && buffer_bytes(plain) < most) {
		uint8_t record[RECORD_BYTES]; /* room for one in `plain` would stay there */
		int n;

		ERR_clear_error();
		n = SSL_read(t->ssl, record, (int)sizeof record);
		if (n > 0) {
			err = buffer_append(plain, record, (size_t)n);
			continue;
		}
		error = SSL_get_error(t->ssl, n);
		if (error == SSL_ERROR_WANT_READ)
			break;
		if (error == SSL_ERROR_ZERO_RETURN) {
			err = -ENOTCONN;
		} else {
			log_error("control channel: TLS refuses what came: %s", tls_error_text());
			err = -EBADMSG;
		}
	}
	error = drain(t, out);
	return err ? err : error;
}

void tls_describe(const struct tls *t, char *text, size_t size)
{
	snprintf(text, size, "%s %s", SSL_get_version(t->ssl), SSL_get_cipher_name(t->ssl));
}

int tls_peer_key(const struct tls *t, struct tls_key *key)
{
	X509 *cert = SSL_get0_peer_certificate(t->ssl);
	EVP_PKEY *pkey = cert ? X509_get0_pubkey(cert) : NULL;
	int err = pkey ? tls_key_from_pkey(key, pkey) : -EPROTO;

	ERR_clear_error();
	return err;
}

bool tls_peer_verified(const struct tls *t, char why[TLS_WHY_MAX])
{
	long result = SSL_get_verify_result(t->ssl);

	if (!SSL_get0_peer_certificate(t->ssl))
		result = X509_V_ERR_UNSPECIFIED;
	snprintf(why, TLS_WHY_MAX, "%s", X509_verify_cert_error_string(result));
	return result == X509_V_OK;
}

/* A line with this name, unless it has what ends lines or is not seen. */
static bool add_name(BIO *out, const char *prefix, const void *name, int len)
{
	const unsigned char *bytes = name;

	for (int i = 0; i < len; i++)
		if (bytes[i] < ' ' || bytes[i] == 0x7f)
			return true;
	return BIO_printf(out, "%s%.*s\n", prefix, len, (const char *)bytes) > 0;
}

static bool add_other_names(BIO *out, X509 *cert)
{
	GENERAL_NAMES *others = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool ok = true;

	for (int i = 0; ok && others && i < sk_GENERAL_NAME_num(others); i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(others, i);
		const char *prefix = one->type == GEN_EMAIL ? "email:"
				     : one->type == GEN_DNS ? "dns:"
				     : one->type == GEN_URI ? "uri:"
							    : NULL;

		if (prefix) /* all three are an IA5String */
			ok = add_name(out, prefix, ASN1_STRING_get0_data(one->d.ia5),
				ASN1_STRING_length(one->d.ia5));
	}
	GENERAL_NAMES_free(others);
	return ok;
}

static bool add_subject(BIO *out, X509 *cert)
{
	BIO *text = BIO_new(BIO_s_mem());
	char *name;
	bool ok = text &&
		  X509_NAME_print_ex(text, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) >= 0;
	long len = ok ? BIO_get_mem_data(text, &name) : 0;

	ok = ok && (!len || add_name(out, "", name, (int)len));
	BIO_free(text);
	return ok;
}

int tls_peer_names(const struct tls *t, char **names, char why[TLS_WHY_MAX])
{
	X509 *cert = SSL_get0_peer_certificate(t->ssl);
	BIO *out;
	char *text;
	long len;
	bool ok;

	*names = NULL;
	if (!cert) {
		snprintf(why, TLS_WHY_MAX, "no certificate was shown");
		return -ENOENT;
	}
	if (!tls_peer_verified(t, why))
		return -EACCES;
	out = BIO_new(BIO_s_mem());
	ok = out && add_subject(out, cert) && add_other_names(out, cert);
	len = ok ? BIO_get_mem_data(out, &text) : 0;
	if (ok)
		*names = strndup(len ? text : "", (size_t)len);
	BIO_free(out);
	ERR_clear_error();
	if (!*names)
		snprintf(why, TLS_WHY_MAX, "no memory for the certificate's names");
	return *names ? 0 : -ENOMEM;
}

/* As add_subject, without the end of the line: empty, where there is no memory. */
static void show_name(const X509_NAME *name, char *text, size_t size)
{
	BIO *out = BIO_new(BIO_s_mem());
	char *data;
	long len = 0;

	if (out && X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253) >= 0)
		len = BIO_get_mem_data(out, &data);
	snprintf(text, size, "%.*s", (int)len, len > 0 ? data : "");
	BIO_free(out);
}

bool tls_describe_own(const struct tls *t, char *text, size_t size)
{
	const X509 *cert = SSL_get_certificate(t->ssl);
	char subject[150], issuer[150];
	bool is_early, is_late;

	if (!cert)
		return false;
	show_name(X509_get_subject_name(cert), subject, sizeof subject);
	show_name(X509_get_issuer_name(cert), issuer, sizeof issuer);
	is_early = X509_cmp_current_time(X509_get0_notBefore(cert)) > 0;
	is_late = X509_cmp_current_time(X509_get0_notAfter(cert)) < 0;
	ERR_clear_error();
	snprintf(text, size, "%s, signed by %s%s", subject, issuer,
		is_late    ? ": it has expired"
		: is_early ? ": it is not valid yet"
			   : "");
	return true;
}

int tls_export(const struct tls *t, const char *label, const void *context, size_t context_len,
	void *secret, size_t len)
{
	if (!t->complete || SSL_export_keying_material(t->ssl, secret, len, label, strlen(label),
				    context, context_len, 1) != 1) {
		ERR_clear_error();
		return -EPROTO;
	}
	return 0;
}
