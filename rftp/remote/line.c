/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/line.c: owns the times of waiting.
 */
#include "rftp/remote/line.h"

#include "base/clock.h"
#include "rftp/remote/client.h"

#include <string.h>

void line_start(struct client *c)
{
	c->line = (struct line){0};
}

int line_ask(struct client *c)
{
	const struct settings *s = &c->settings;
	int err = calls_admit(c->session, s->priority,
		s->has_deadline ? s->deadline_ns : MESSAGE_UNKNOWN, s->deadline_fails);

	if (!c->line.asked_ns)
		c->line.asked_ns = clock_now_ns();
	return err ? client_report(c, NULL, err) : 0;
}

static bool is_class(const struct message_queued *queued, const char *name)
{
	return queued->class.len == strlen(name) &&
	       !memcmp(queued->class.data, name, queued->class.len);
}

/* It goes on, or begins: the server knows best how long it was asked for before that. */
static void line_admitted(struct client *c, const struct message_queued *queued)
{
	const char *asked = c->settings.priority;
	uint64_t waited_ns = queued->wait_ns;

	if (!waited_ns && c->line.since_ns)
		waited_ns = clock_now_ns() - c->line.since_ns;
	c->line.waited_ns += waited_ns;
	c->line.since_ns = 0;
	report_admitted(&c->report, queued, waited_ns);
	if (*asked && queued->class.len && !is_class(queued, asked) && !c->line.noted) {
		c->line.noted = true;
		report_note(&c->report, "priority %s is not given: the class is %.*s", asked,
			(int)queued->class.len, (const char *)queued->class.data);
	}
}

void line_queued(struct client *c, const struct message_queued *queued)
{
	if (!queued->position) {
		line_admitted(c, queued);
		return;
	}
	if (!c->line.since_ns)
		c->line.since_ns = clock_now_ns();
	report_queued(&c->report, queued);
}

uint64_t line_waited_ns(const struct client *c)
{
	uint64_t waits_ns = c->line.since_ns ? clock_now_ns() - c->line.since_ns : 0;

	return c->line.waited_ns + waits_ns;
}

int line_deadline_met(const struct client *c)
{
	if (!c->settings.has_deadline || !c->line.asked_ns)
		return -1;
	return clock_now_ns() - c->line.asked_ns <= c->settings.deadline_ns;
}
