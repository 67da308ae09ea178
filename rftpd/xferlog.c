/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/xferlog: see xferlog.h.
 */
#include "rftpd/xferlog.h"

#include "base/addr.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "proto/status.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *event;
	char direction; /* i: it came; o: it went; d: it was removed */
} known[] = {{"put", 'i'}, {"feed", 'i'}, {"get", 'o'}, {"rm", 'd'}};

static char direction_of(const struct audit_event *e)
{
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(e->event, known[i].event))
			return known[i].direction;
	return '\0';
}

bool xferlog_has(const struct audit_event *e)
{
	return e->path && direction_of(e);
}

/* One word, which no terminal takes for a command: of a byte that is no UTF-8 the upper control
 * characters of ISO 8859 are such. */
static void put_word(FILE *out, const char *text)
{
	size_t n = strlen(text), bytes;
	uint32_t code;

	for (; n; text += bytes, n -= bytes) {
		bytes = utf8_decode(text, n, &code);
		if (!bytes) {
			bytes = 1;
			code = (unsigned char)*text;
		}
		if (code == ' ' || utf8_is_control(code))
			fputc('_', out);
		else
			fwrite(text, 1, bytes, out);
	}
}

void xferlog_put(FILE *out, const struct audit_event *e, uint64_t now_ns, time_t when)
{
	uint64_t seconds = e->moved ? (now_ns - e->since_ns + NS_PER_S / 2) / NS_PER_S : 0;
	bool is_named = e->user && strcmp(e->user, "anonymous") != 0;
	char stamp[32] = "", host[ADDR_TEXT_MAX] = "";
	uint16_t port;
	struct tm tm;

	if (localtime_r(&when, &tm))
		strftime(stamp, sizeof stamp, "%a %b %e %H:%M:%S %Y", &tm);
	if (e->peer)
		(void)addr_split(e->peer, host, sizeof host, 0, &port);
	fprintf(out, "%s %" PRIu64 " ", stamp, seconds);
	put_word(out, host);
	fprintf(out, " %" PRIu64 " ", e->bytes);
	if (e->export_name && *e->export_name) { /* as clients write it */
		fputc('/', out);
		put_word(out, e->export_name);
		if (*e->path != '/')
			fputc('/', out);
	}
	put_word(out, e->path);
	fprintf(out, " b _ %c %c ", direction_of(e), is_named ? 'r' : 'a');
	put_word(out, is_named ? e->user : "anonymous");
	fprintf(out, " rftp 0 * %c\n", e->status == STATUS_OK ? 'c' : 'i');
}
