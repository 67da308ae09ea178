/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/statistics: see statistics.h.
 */
#include "rftpd/serve/statistics.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/json_string.h"
#include "rftpd/serve/daemon_session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void statistics_init(struct statistics *s)
{
	*s = (struct statistics){.started_ns = clock_now_ns()};
}

void statistics_fini(struct statistics *s)
{
	while (s->row_count)
		free(s->rows[--s->row_count].export);
}

static struct statistics_row *row_of(
	struct statistics *s, const char *export_path, const char *fabric)
{
	struct statistics_row *row;

	for (unsigned i = 0; i < s->row_count; i++)
		if (!strcmp(s->rows[i].export, export_path) && !strcmp(s->rows[i].fabric, fabric))
			return &s->rows[i];
	if (s->row_count == STATISTICS_ROWS_MAX)
		return &s->rows[s->row_count - 1];
	row = &s->rows[s->row_count];
	*row = (struct statistics_row){.export = strdup(export_path)};
	if (!row->export)
		return NULL;
	snprintf(row->fabric, sizeof row->fabric, "%s", fabric);
	s->row_count++;
	return row;
}

static void add(struct statistics_row *row, const struct transfer_job *job, bool is_over)
{
	uint64_t bytes = job->stats.bytes;

	*(transfer_job_sends(job) ? &row->sent_bytes : &row->received_bytes) += bytes;
	if (!is_over)
		return;
	*(transfer_job_sends(job)           ? &row->retrieved
		: job->type == MESSAGE_FEED ? &row->fed
					    : &row->stored) += 1;
	row->files += job->stats.files;
	row->file_errors += job->stats.errors;
	row->starved += job->stats.starved;
	row->requests +=
		job->stats.requests.writes + job->stats.requests.sends + job->stats.requests.reads;
	row->verify_errors += job->verify_errors;
}

void statistics_add_job(struct statistics *s, const struct transfer_job *job, bool failed)
{
	const struct daemon_session *session = job->session;
	struct statistics_row *row =
		row_of(s, job->entry->export->label, link_fabric_name(session->link));

	if (!row)
		return;
	add(row, job, true);
	row->failed += failed;
}

void statistics_add_session(struct statistics *s, const struct daemon_session *session)
{
	struct pipe_ring_counts counts;

	pipe_ring_count(control_pipe(link_control(session->link)), &counts);
	s->replies.pieces += counts.pieces;
	s->replies.asks += counts.asks;
	s->replies.sends += counts.sends;
}

/* ---- what there is now ---- */

static uint64_t uptime_s(const struct daemon *d)
{
	return (clock_now_ns() - d->statistics.started_ns) / NS_PER_S;
}

struct now {
	struct statistics counted; /* with the bytes of transfers that run */
	unsigned sessions, running, waiting;
};

/* Its rows are shared with what is counted, but for new ones. */
static void look(const struct daemon *d, struct now *now)
{
	const struct daemon_session *s;

	*now = (struct now){.counted = d->statistics, .sessions = d->session_count};
	TAILQ_FOREACH(s, &d->sessions, entry)
	{
		const char *fabric = link_fabric_name(s->link);
		struct statistics_row *row;

		statistics_add_session(&now->counted, s);
		now->waiting += s->state == SESSION_WAITING;
		now->running += s->transfers.running;
		if (!s->transfers.running)
			continue;
		for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
			const struct transfer_job *job = s->transfers.of[i].job;

			if (!session_transfers_busy(s, i))
				continue;
			row = row_of(&now->counted, job->entry->export->label, fabric);
			if (row)
				add(row, job, false);
		}
	}
}

static void look_away(const struct daemon *d, struct now *now)
{
	while (now->counted.row_count > d->statistics.row_count)
		free(now->counted.rows[--now->counted.row_count].export);
}

static const struct {
	const char *name, *help, *words;
	size_t offset;
	bool bytes;
} columns[] = {
#define COLUMN(field) offsetof(struct statistics_row, field)
	{"transfers_stored", "STORE transfers that ended", "stored", COLUMN(stored), false},
	{"transfers_retrieved", "RETRIEVE transfers that ended", "retrieved", COLUMN(retrieved),
		false},
	{"transfers_fed", "FEED transfers that ended", "fed", COLUMN(fed), false},
	{"transfers_failed", "transfers that were cut short", "failed", COLUMN(failed), false},
	{"files", "files that arrived", "files", COLUMN(files), false},
	{"file_errors", "files that did not", "not arrived", COLUMN(file_errors), false},
	{"received_bytes", "bytes of files from clients", "bytes in", COLUMN(received_bytes), true},
	{"sent_bytes", "bytes of files to clients", "bytes out", COLUMN(sent_bytes), true},
	{"credits_starved", "times that a full block had no credit", "starved", COLUMN(starved),
		false},
	{"data_requests", "WRITEs, SENDs and READs that the daemon started on data channels",
		"requests", COLUMN(requests), false},
	{"verify_errors", "files whose checksums or digest were wrong", "not verified",
		COLUMN(verify_errors), false},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static uint64_t cell(const struct statistics_row *row, size_t column)
{
	return *(const uint64_t *)(const void *)((const char *)row + columns[column].offset);
}

static void print_json(const struct daemon *d, const struct now *now, FILE *out)
{
	fprintf(out,
		"{\"uptime_seconds\":%" PRIu64 ",\"sessions\":%u,\"sessions_total\":%" PRIu64
		",\"refused_total\":%" PRIu64 ",\"killed_total\":%" PRIu64
		",\"logins_failed_total\":%" PRIu64 ",\"replies_laid_out\":%" PRIu64
		",\"replies_asked_for\":%" PRIu64 ",\"replies_sent\":%" PRIu64
		",\"transfers_running\":%u,\"transfers_waiting\":%u,\"draining\":%s,\"by\":[",
		uptime_s(d), now->sessions, now->counted.sessions, now->counted.refused,
		now->counted.killed, now->counted.logins_failed, now->counted.replies.pieces,
		now->counted.replies.asks, now->counted.replies.sends, now->running, now->waiting,
		d->stopping ? "true" : "false");
	for (unsigned i = 0; i < now->counted.row_count; i++) {
		const struct statistics_row *row = &now->counted.rows[i];

		fprintf(out, "%s{\"export\":", i ? "," : "");
		json_string_put(row->export, out);
		fprintf(out, ",\"fabric\":\"%s\"", row->fabric);
		for (size_t c = 0; c < COLUMNS; c++)
			fprintf(out, ",\"%s\":%" PRIu64, columns[c].name, cell(row, c));
		fputc('}', out);
	}
	fputs("]}\n", out);
}

void statistics_print(const struct daemon *d, bool json, FILE *out)
{
	struct now now;

	look(d, &now);
	if (json) {
		print_json(d, &now, out);
		look_away(d, &now);
		return;
	}
	fprintf(out,
		"up %" PRIu64 " s%s; sessions: %u now, %" PRIu64 " in all, %" PRIu64
		" refused, %" PRIu64 " killed, %" PRIu64
		" logins failed; transfers: %u run, %u wait\n",
		uptime_s(d), d->stopping ? ", draining" : "", now.sessions, now.counted.sessions,
		now.counted.refused, now.counted.killed, now.counted.logins_failed, now.running,
		now.waiting);
	if (now.counted.replies.pieces)
		fprintf(out,
			"replies by READ: %" PRIu64 " laid out; %" PRIu64
			" times a client asked to be told, %" PRIu64 " SENDs\n",
			now.counted.replies.pieces, now.counted.replies.asks,
			now.counted.replies.sends);
	for (unsigned i = 0; i < now.counted.row_count; i++) {
		const struct statistics_row *row = &now.counted.rows[i];

		fprintf(out, "\n%s over %s:\n", row->export, row->fabric);
		for (size_t c = 0; c < COLUMNS; c++)
			fprintf(out, "  %-12s %" PRIu64 "\n", columns[c].words, cell(row, c));
	}
	look_away(d, &now);
}

/* ---- Prometheus ---- */

/* A label's value: backslash, quote and newline are escaped, and a byte that is no UTF-8, for which
 * Prometheus would take nothing of the page, is \xNN in it. */
static void print_label(const char *text, FILE *out)
{
	size_t bytes, n;
	uint32_t code;

	for (n = strlen(text); n; text += bytes, n -= bytes) {
		bytes = utf8_decode(text, n, &code);
		if (!bytes) {
			fprintf(out, "\\\\x%02x", (unsigned char)*text);
			bytes = 1;
		} else if (*text == '\n') {
			fputs("\\n", out);
		} else {
			if (*text == '"' || *text == '\\')
				fputc('\\', out);
			fwrite(text, 1, bytes, out);
		}
	}
}

static void print_one(FILE *out, const char *name, const char *type, const char *help, uint64_t n)
{
	fprintf(out, "# HELP rftpd_%s %s\n# TYPE rftpd_%s %s\nrftpd_%s %" PRIu64 "\n", name, help,
		name, type, name, n);
}

void statistics_expose(const struct daemon *d, FILE *out)
{
	struct now now;

	look(d, &now);
	print_one(out, "uptime_seconds", "gauge", "since the start", uptime_s(d));
	print_one(out, "sessions", "gauge", "sessions now", now.sessions);
	print_one(
		out, "sessions_total", "counter", "sessions since the start", now.counted.sessions);
	print_one(out, "refused_total", "counter", "connections that were refused",
		now.counted.refused);
	print_one(out, "killed_total", "counter", "sessions that an administrator ended",
		now.counted.killed);
	print_one(out, "logins_failed_total", "counter", "logins that were refused",
		now.counted.logins_failed);
	print_one(out, "replies_laid_out_total", "counter",
		"pieces of the dialogue that lay where clients read them by READ",
		now.counted.replies.pieces);
	print_one(out, "replies_asked_for_total", "counter",
		"times that such a client asked for a SEND", now.counted.replies.asks);
	print_one(out, "replies_sent_total", "counter", "SENDs to such clients",
		now.counted.replies.sends);
	print_one(out, "transfers_running", "gauge", "transfers that run", now.running);
	print_one(out, "transfers_waiting", "gauge", "transfers that wait in line", now.waiting);
	print_one(out, "memory_bytes", "gauge", "memory for blocks that transfers may have",
		d->scheduler.total.memory_bytes);
	print_one(out, "memory_free_bytes", "gauge", "of it, what no transfer has",
		d->scheduler.free.memory_bytes);
	for (size_t c = 0; c < COLUMNS; c++) {
		fprintf(out, "# HELP rftpd_%s_total %s\n# TYPE rftpd_%s_total counter\n",
			columns[c].name, columns[c].help, columns[c].name);
		for (unsigned i = 0; i < now.counted.row_count; i++) {
			fprintf(out, "rftpd_%s_total{export=\"", columns[c].name);
			print_label(now.counted.rows[i].export, out);
			fprintf(out, "\",fabric=\"%s\"} %" PRIu64 "\n", now.counted.rows[i].fabric,
				cell(&now.counted.rows[i], c));
		}
	}
	look_away(d, &now);
}
