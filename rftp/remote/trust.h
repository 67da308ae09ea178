/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/trust: whether a server is the one that the user means.
 *
 * In this order: the fingerprint that the user gave; a certificate of an authority that the user
 * named; the keys that were trusted before (known_hosts).  A key that is not known is asked about
 * on the terminal, taken (accept-new), or refused; one that has changed is always refused.  A
 * server on this host's loopback addresses is not asked about unless a policy was chosen: who could
 * stand in for it is on this host already.
 */
#ifndef RFTP_TRUST_H
#define RFTP_TRUST_H

#include "session/tls.h"

#include <stdint.h>
#include <sys/socket.h>

enum trust_policy {
	TRUST_AUTO,       /* ask; loopback: accept */
	TRUST_ASK,        /* ask on the terminal; without one refuse */
	TRUST_ACCEPT_NEW, /* remember what is not known */
	TRUST_STRICT,     /* refuse what is not known */
};

struct trust {
	const char *host; /* as the user named it */
	uint16_t port;
	enum trust_policy policy;
	const char *fingerprint; /* "SHA256:..."; "": none given */
	bool has_ca;             /* the context has authorities */
	const char *known_hosts; /* a file; "": the user's own */
	int cancel_fd;           /* ends a question */
	/* told, in a sentence, of what was done without asking; may be NULL */
	void (*note)(void *ctx, const char *text);
	void *note_ctx;
	bool asked; /* out: the user was asked, which takes its time */
};

#define TRUST_SYSTEM_FILE "/etc/rftp/known_hosts"

/*
 * 0: it is trusted.  -EKEYREJECTED: it is not, and `why` says why and what to do; -ECANCELED: the
 * user interrupted the question; -errno: a file cannot be read or written, which `why` names.
 */
int trust_check(
	struct trust *, const struct tls *, const struct sockaddr *address, char why[TLS_WHY_MAX]);

#endif
