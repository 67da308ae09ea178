/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/login: what is shown at a login, one thing after the other, as ssh does it: keys
 * first, then a password; anonymous when no user is named.  Before anything is asked for, all is
 * shown that needs no asking.
 *
 * It goes with one attempt to connect; a second one, after the user was asked, begins with what he
 * said.
 */
#ifndef RFTP_LOGIN_H
#define RFTP_LOGIN_H

#include "proto/message_login.h"
#include "rftp/remote/credentials.h"
#include "rftp/remote/login_keys.h"
#include "rftp/settings.h"
#include "rftp/ui/text.h"
#include "session/calls.h"

#define LOGIN_PROMPTS 3u /* passwords that are asked for */

struct login {
	/* the caller's */
	const struct settings *settings;
	const char *host, *user; /* user "": none is named in the URL */
	uint16_t port;
	int cancel_fd;
	const uint8_t *once_key; /* MESSAGE_LOGIN_ONCE_BYTES, and then nothing else; NULL: none */
	/* told what is tried, and what is not and why (rftp -vv) */
	void (*note)(void *ctx, const char *text);
	void *note_ctx;
	bool asked; /* out: the user typed something, which takes its time */

	/* its own */
	char name[MESSAGE_NAME_MAX + 1]; /* who logs in; "": anonymous */
	unsigned step;                   /* how far it is */
	unsigned prompts;
	uint8_t shown; /* method of what was shown last; 0: nothing */
	char password[PASSWORD_MAX];
	struct credentials kept; /* of the user's file */
	struct login_keys *keys; /* NULL: not looked for yet */
	bool methods_noted;      /* which the server knows */
	bool unlocked;           /* the user typed the passphrase of one of them */
	bool wrong_passphrase;   /* none of those that he typed was right */
	struct text tried;       /* for people: what was refused */
};

/* The caller's fields are set.  0, or -errno and the reason: a file that is there cannot be used.
 */
int login_init(struct login *, char why[TLS_WHY_MAX]);
void login_fini(struct login *); /* wipes it */
/* Once more, as from the start; what the user typed last comes first. */
void login_again(struct login *);

/* calls_params.login */
int login_next(void *login, const struct tls *, unsigned methods, struct message_login *out,
	char why[TLS_WHY_MAX]);
/* Why nothing was taken, as far as this side knows. */
void login_explain(const struct login *, struct text *out);

#endif
