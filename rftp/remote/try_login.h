/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/try_login: `rftp login URL`: logs in, says what that gave, and ends the session.
 */
#ifndef RFTP_TRY_LOGIN_H
#define RFTP_TRY_LOGIN_H

#include "rftp/remote/client.h"

/* 0 or -errno; errors are reported. */
int try_login(struct client *, const char *url);

#endif
