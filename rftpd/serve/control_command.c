/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/control_command: see control_command.h.
 *
 * Owns the table of commands.  What they do is done elsewhere.
 */
#include "rftpd/serve/control_command.h"

#include "base/clock.h"
#include "base/number.h"
#include "proto/message.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/json_string.h"
#include "rftpd/serve/daemon_session.h"
#include "rftpd/serve/daemon_stop.h"
#include "rftpd/serve/reload.h"
#include "rftpd/serve/session_log.h"
#include "rftpd/serve/statistics.h"

#include <inttypes.h>
#include <string.h>

#define WORDS_MAX 64u

struct question {
	struct daemon *daemon;
	char *words[WORDS_MAX];
	unsigned count;
	bool json;
	FILE *out;
};

static void refuse(const struct question *q, const char *why)
{
	fprintf(q->out, "error: %s\n", why);
}

/* ---- who ---- */

static const char *state_name(const struct daemon_session *s)
{
	switch (s->state) {
	case SESSION_NEW:
		return "new";
	case SESSION_GREETED:
	case SESSION_CHECKING:
		return "login";
	case SESSION_WAITING:
		return "waiting";
	case SESSION_RUNNING:
		return "running";
	case SESSION_CLOSING:
		return "closing";
	case SESSION_TASK:
		return "busy";
	default:
		return "idle";
	}
}

/* No byte of a path reaches a terminal as a command. */
static void print_path(const char *path, FILE *out)
{
	for (const unsigned char *s = (const unsigned char *)path; *s; s++)
		if (*s > ' ' && *s < 0x7f && *s != '\\')
			fputc(*s, out);
		else
			fprintf(out, "\\x%02x", *s);
}

static void print_padded(const char *text, size_t width, FILE *out)
{
	print_path(text, out);
	for (size_t n = strlen(text); n < width; n++)
		fputc(' ', out);
}

static void print_session(const struct question *q, const struct daemon_session *s)
{
	uint64_t age_s = (clock_now_ns() - s->started_ns) / NS_PER_S, bytes = s->bytes;
	const struct transfer_job *job = NULL; /* the first of them */
	const char *transfer;

	for (unsigned i = MESSAGE_TRANSFERS_MAX; i-- > 0;) {
		if (s->transfers.of[i].job)
			job = s->transfers.of[i].job;
		if (session_transfers_busy(s, i))
			bytes += s->transfers.of[i].job->stats.bytes;
	}
	transfer = job ? message_name(job->type) : "";
	if (q->json) {
		fprintf(q->out,
			"{\"session\":%" PRIu32
			",\"peer\":\"%s\",\"fabric\":\"%s\",\"state\":\"%s\","
			"\"age_seconds\":%" PRIu64 ",\"files\":%" PRIu64 ",\"bytes\":%" PRIu64
			",\"transfer\":\"%s\",\"user\":",
			s->number, s->peer, link_fabric_name(s->link), state_name(s), age_s,
			s->files, bytes, transfer);
		json_string_put(daemon_session_user(s) ? daemon_session_user(s) : "", q->out);
		fputs(",\"path\":", q->out);
		json_string_put(job && job->path ? job->path : "", q->out);
		fputs("}\n", q->out);
		return;
	}
	fprintf(q->out, "%7" PRIu32 "  %-24s  %-6s  ", s->number, s->peer,
		link_fabric_name(s->link));
	print_padded(identity_name(&s->who), 12, q->out);
	fprintf(q->out, "  %-8s  %7" PRIu64 "  %7" PRIu64 "  %14" PRIu64 "  %s ", state_name(s),
		age_s, s->files, bytes, transfer);
	print_path(job && job->path ? job->path : "", q->out);
	fputc('\n', q->out);
}

static void run_who(struct question *q)
{
	const struct daemon_session *s;

	fputs("ok\n", q->out);
	if (!q->json)
		fprintf(q->out, "%7s  %-24s  %-6s  %-12s  %-8s  %7s  %7s  %14s  %s\n", "session",
			"peer", "fabric", "user", "state", "seconds", "files", "bytes", "transfer");
	TAILQ_FOREACH(s, &q->daemon->sessions, entry)
	print_session(q, s);
}

/* ---- kill ---- */

static struct daemon_session *session_named(const struct question *q, const char *word)
{
	uint64_t number;

	return number_parse(word, 1, UINT32_MAX, &number)
		       ? NULL
		       : daemon_session_find(q->daemon, (uint32_t)number);
}

static void run_kill(struct question *q)
{
	for (unsigned i = 1; i < q->count; i++)
		if (!session_named(q, q->words[i])) {
			fprintf(q->out, "error: there is no session %s; nothing was done\n",
				q->words[i]);
			return;
		}
	fputs("ok\n", q->out);
	for (unsigned i = 1; i < q->count; i++) {
		struct daemon_session *s = session_named(q, q->words[i]);

		if (!s || s->killed)
			continue; /* named twice */
		session_log(s, LOG_LEVEL_INFO, "is ended by an administrator");
		q->daemon->statistics.killed++;
		daemon_session_kill(s);
	}
}

/* ---- limit ---- */

static void print_limit(const struct question *q, unsigned i)
{
	char value[64];

	if (!daemon_settings_show_limit(q->daemon->settings, i, value, sizeof value))
		return;
	if (q->json)
		fprintf(q->out, "{\"name\":\"%s\",\"value\":\"%s\"}\n", daemon_settings_name(i),
			value);
	else
		fprintf(q->out, "%-20s %-8s  %s\n", daemon_settings_name(i), value,
			daemon_settings_help(i));
}

static void print_line(const char *text, FILE *out)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
}

static void print_rules(const struct question *q)
{
	const struct daemon_settings *settings = q->daemon->settings;

	for (unsigned i = 0; i < settings->limit_count; i++) {
		fputs(q->json ? "{\"name\":\"limit\",\"value\":" : "limit                ", q->out);
		if (q->json)
			json_string_put(settings->limits[i].text, q->out);
		else
			print_line(settings->limits[i].text, q->out);
		fputs(q->json ? "}\n" : "\n", q->out);
	}
}

static void run_limit(struct question *q)
{
	char why[CONF_WHY_MAX];

	if (q->count == 2) {
		fputs("usage: limit NAME VALUE: a limit is changed with its name and a value\n",
			q->out);
		return;
	}
	if (q->count == 3) {
		if (!strcmp(q->words[1], "limit")) {
			refuse(q, "lines `limit = ...` are changed in the configuration, which is "
				  "then "
				  "read again");
			return;
		}
		if (reload_limit(q->daemon, q->words[1], q->words[2], why)) {
			refuse(q, why);
			return;
		}
		log_info("%s is %s now, until the configuration is read again", q->words[1],
			q->words[2]);
	}
	fputs("ok\n", q->out);
	for (unsigned i = 0; daemon_settings_name(i); i++)
		if (q->count < 3 || !strcmp(daemon_settings_name(i), q->words[1]))
			print_limit(q, i);
	if (q->count < 3)
		print_rules(q);
}

/* ---- the others ---- */

static void run_stats(struct question *q)
{
	fputs("ok\n", q->out);
	statistics_print(q->daemon, q->json, q->out);
}

static void run_metrics(struct question *q)
{
	fputs("ok\n", q->out);
	statistics_expose(q->daemon, q->out);
}

static void run_quota(struct question *q)
{
	fputs("ok\n", q->out);
	quotas_print(q->daemon, q->json, q->out);
}

static void run_reload(struct question *q)
{
	char why[CONF_WHY_MAX];

	if (q->daemon->stopping)
		refuse(q, "the daemon ends");
	else if (reload(q->daemon, why))
		refuse(q, why);
	else if (*why && q->json)
		fprintf(q->out, "ok\n{\"needs_start\":\"%s\"}\n", why);
	else if (*why)
		fprintf(q->out, "ok\nnot in use before a new start: %s\n", why);
	else
		fputs("ok\n", q->out);
}

static void run_drain(struct question *q)
{
	fprintf(q->out, "ok\n");
	log_info("an administrator ends %u sessions", q->daemon->session_count);
	daemon_stop_drain(q->daemon);
	if (!q->json)
		fprintf(q->out, "ending; %u sessions are left\n", q->daemon->session_count);
}

static const struct command {
	const char *name, *usage; /* what follows the name */
	unsigned min, max;        /* words behind it */
	void (*run)(struct question *);
} commands[] = {
	{"who", "", 0, 0, run_who},
	{"kill", " SESSION...", 1, WORDS_MAX, run_kill},
	{"limit", " [NAME VALUE]", 0, 2, run_limit},
	{"drain", "", 0, 0, run_drain},
	{"quota", "", 0, 0, run_quota},
	{"stats", "", 0, 0, run_stats},
	{"metrics", "", 0, 0, run_metrics},
	{"reload", "", 0, 0, run_reload},
};

void control_command_run(struct daemon *d, char *line, FILE *out)
{
	struct question q = {.daemon = d, .out = out};
	char *at = line;

	line[strcspn(line, "\r\n")] = '\0';
	for (char *word; (word = strsep(&at, " \t")) && q.count < WORDS_MAX;)
		if (*word && (q.count || strcmp(word, "json") != 0))
			q.words[q.count++] = word;
		else if (*word)
			q.json = true;
	for (size_t i = 0; q.count && i < sizeof commands / sizeof *commands; i++) {
		const struct command *c = &commands[i];

		if (strcmp(c->name, q.words[0]))
			continue;
		if (q.count - 1 < c->min || q.count - 1 > c->max)
			fprintf(out, "usage: %s%s\n", c->name, c->usage);
		else
			c->run(&q);
		return;
	}
	fputs("usage: no such command\n", out);
}
