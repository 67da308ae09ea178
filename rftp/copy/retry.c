/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/retry.c: owns nothing.
 */
#include "rftp/copy/retry.h"

#include "base/clock.h"
#include "rftp/shell/interrupt.h"

#include <poll.h>
#include <stdlib.h>

#define RETRY_FIRST_MS 1000u
#define RETRY_MOST_MS 60000u

/* Twice as long each time, and a quarter more or less, so that many clients of a server that comes
 * back do not all come at once. */
static unsigned retry_pause_ms(unsigned done)
{
	unsigned ms = RETRY_FIRST_MS, seed = (unsigned)clock_now_ns();

	while (done-- && ms < RETRY_MOST_MS)
		ms *= 2;
	ms = ms < RETRY_MOST_MS ? ms : RETRY_MOST_MS;
	return ms - ms / 4 + (unsigned)rand_r(&seed) % (ms / 2);
}

/* What another attempt may mend: a server that is not there, or a connection that is gone. */
static bool retry_may_help(const struct client *c, int error)
{
	enum exit_code code = c->report.code;

	return error && !c->session && !interrupt_signal() &&
	       (code == EXIT_CODE_CONNECT || code == EXIT_CODE_LOST || code == EXIT_CODE_OTHER);
}

bool retry_again(struct client *c, int error, unsigned done, uint64_t began_ns)
{
	struct pollfd cancel = {interrupt_fd(), POLLIN, 0};
	struct text json = {0};
	unsigned ms;

	if (done >= c->settings.retries || !retry_may_help(c, error))
		return false;
	ms = retry_pause_ms(done);
	if (c->settings.retry_time_ms && clock_now_ns() - began_ns + ms * NS_PER_MS >
						 c->settings.retry_time_ms * NS_PER_MS) {
		report_note(&c->report, "not tried again: the time for that is over");
		return false;
	}
	if (report_json(&c->report)) {
		report_json_begin(&json, "retry");
		report_json_number(&json, "attempt", done + 1);
		report_json_number(&json, "attempts", c->settings.retries);
		text_printf(&json, ",\"seconds\":%.3f", ms / 1e3);
		report_json_end(&c->report, &json);
		report_flush(&c->report);
	}
	report_note(&c->report, "trying again in %.1f s (%u of %u)", ms / 1e3, done + 1,
		c->settings.retries);
	if (poll(&cancel, 1, (int)ms) != 0 && interrupt_signal())
		return false;
	report_forget(&c->report);
	return true;
}
