/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/identity: who a session is of, and how that was shown.
 */
#ifndef RFTPD_IDENTITY_H
#define RFTPD_IDENTITY_H

#include "proto/message.h"

struct identity {
	uint8_t method;                  /* enum message_login_method; 0: nobody has logged in */
	char user[MESSAGE_NAME_MAX + 1]; /* "": anonymous */
};

/* NULL: anonymous, or nobody yet. */
static inline const char *identity_user(const struct identity *i)
{
	return *i->user ? i->user : NULL;
}

/* For people and logs. */
static inline const char *identity_name(const struct identity *i)
{
	return *i->user ? i->user : i->method ? "anonymous" : "-";
}

#endif
