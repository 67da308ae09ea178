/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_log: messages about a session: they begin with its number and its peer, which
 * are fields of their own in the journal (RFTP_SESSION, RFTP_PEER).
 */
#ifndef RFTPD_SESSION_LOG_H
#define RFTPD_SESSION_LOG_H

#include "base/log.h"

struct daemon_session;

/* From any thread that uses the session. */
void session_log(const struct daemon_session *, enum log_level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
