/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_log: see session_log.h.
 */
#include "rftpd/serve/session_log.h"

#include "rftpd/serve/daemon_session.h"

#include <inttypes.h>
#include <stdio.h>

void session_log(const struct daemon_session *s, enum log_level level, const char *format, ...)
{
	char fields[64 + ADDR_TEXT_MAX], whole[256];
	va_list ap;

	if (level > log_level_get())
		return;
	snprintf(fields, sizeof fields, "RFTP_SESSION=%" PRIu32 "\nRFTP_PEER=%s\n", s->number,
		s->peer);
	/* neither has a % in it: the peer is an address */
	snprintf(whole, sizeof whole, "session %" PRIu32 " %s %s", s->number, s->peer, format);
	va_start(ap, format);
	log_write_about(level, fields, whole, ap);
	va_end(ap);
}
