/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tls: TLS 1.3 over two byte queues, for the control channel (RFC 8446).
 *
 * Bytes of the peer go in and bytes for the peer come out through struct buffer; no socket is
 * known here.  Both sides insist on the application protocol TLS_ALPN (RFC 7301).  The server shows
 * the certificate of its host key; the client completes the handshake with any certificate, and its
 * caller decides, before anything is sent, whether this is the right server (tls_peer_key,
 * tls_peer_verified).  No session tickets, no early data, no renegotiation.
 *
 * A context is not changed after it was made and may be shared by threads; who hands it to a thread
 * that may outlive him takes a reference for it.  A tls is its thread's.
 */
#ifndef SESSION_TLS_H
#define SESSION_TLS_H

#include "session/buffer.h"
#include "session/tls_key.h"

#include <stdbool.h>

#define TLS_ALPN "rftp/1"
#define TLS_WHY_MAX 512u

struct tls_context;
struct tls;

/* Files in PEM; NULL: none. */
struct tls_files {
	const char *key;         /* private: nobody but its owner may have access to it */
	const char *certificate; /* for the key: its own first, then those that signed it */
	const char *ca;          /* certificates that may vouch for the other side */
};
/*
 * For programs that may end while a thread of theirs still uses TLS, as one that connects to a host
 * which does not answer: what it uses stays until the process is gone.  Before all else of this
 * module.
 */
void tls_outlive_exit(void);

/*
 * The daemon's: with a certificate made from the key here where there is none.  With a `ca` clients
 * are asked for a certificate, which they need not have.  -errno: `why` says what is wrong, naming
 * the file.
 */
int tls_context_new_server(
	const struct tls_files *, struct tls_context **out, char why[TLS_WHY_MAX]);
/* A daemon's with a new Ed25519 key, which is in no file. */
int tls_context_new_once(struct tls_context **out, char why[TLS_WHY_MAX]);
/* A client's: with a key and a certificate, or neither. */
int tls_context_new_client(
	const struct tls_files *, struct tls_context **out, char why[TLS_WHY_MAX]);
struct tls_context *tls_context_ref(struct tls_context *);
void tls_context_free(struct tls_context *); /* gives one reference back */
/* The key that a server's context shows. */
int tls_context_key(const struct tls_context *, struct tls_key *);

/* A client gives the host's name or address as the user wrote it, which a certificate must name. */
int tls_new(const struct tls_context *, const char *host, struct tls **out);
void tls_free(struct tls *);

/*
 * Goes on with the handshake: takes bytes from `in`, appends to `out`.  1: it is complete; 0: more
 * must come first; -EPROTO: it failed, which was logged, and `out` may hold the alert that tells
 * the peer; -ENOMEM.
 */
int tls_handshake(struct tls *, struct buffer *in, struct buffer *out);
bool tls_is_complete(const struct tls *);

/* Once complete: encrypts `len` bytes into `out`.  0, -ENOMEM, -EPROTO. */
int tls_write(struct tls *, const void *data, size_t len, struct buffer *out);
/*
 * Once complete: takes records from `in` and appends what they carry to `plain`, at most about
 * `most` bytes.  What the protocol itself has to answer goes to `out`.  0; -EBADMSG: a record was
 * changed on its way or is none; -ENOTCONN: the peer has closed the stream; -ENOMEM.
 */
int tls_read(
	struct tls *, struct buffer *in, struct buffer *plain, size_t most, struct buffer *out);

/* For people: "TLSv1.3 TLS_AES_256_GCM_SHA384". */
void tls_describe(const struct tls *, char *text, size_t size);

/* The key that the server showed.  -EPROTO: none that is understood. */
int tls_peer_key(const struct tls *, struct tls_key *);
/* Whether a certificate authority of the client's context vouches for the server under the host's
 * name; if not, `why` says why not. */
bool tls_peer_verified(const struct tls *, char why[TLS_WHY_MAX]);

/* Of a client's certificate that an authority of the server's vouches for: its names, a line each:
 * the subject as RFC 2253 has it, and email:, dns: and uri: with its other names.  Names that have
 * control characters are left out.  0; -ENOENT: no certificate was shown; -EACCES: one that nobody
 * vouches for, and `why` says why not; -ENOMEM. */
int tls_peer_names(const struct tls *, char **names, char why[TLS_WHY_MAX]);
/* Of the certificate that this end has shown, or would show: whose, by whom, and whether its time
 * is over, or has not come.  false: it has none. */
#define TLS_OWN_MAX 340u
bool tls_describe_own(const struct tls *, char *text, size_t size);

/*
 * Once complete: `len` bytes that both sides know and nobody else (RFC 8446, 7.5), different for
 * each label and context.  0 or -EPROTO.
 */
int tls_export(const struct tls *, const char *label, const void *context, size_t context_len,
	void *secret, size_t len);

#endif
