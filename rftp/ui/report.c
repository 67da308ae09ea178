/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/report.c: owns stdout and stderr while the program works.
 */
#include "rftp/ui/report.h"

#include "base/clock.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/units.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_PROGRESS_NS NS_PER_S

void report_init(struct report *r, const struct settings *settings)
{
	*r = (struct report){.settings = settings, .out = stdout};
}

void report_forget(struct report *r)
{
	r->code = EXIT_CODE_OK;
	r->errors = 0;
}

void report_join(struct report *r, const struct report *other)
{
	r->errors += other->errors;
	r->code = exit_code_join(r->code, other->code);
}

bool report_json(const struct report *r)
{
	return r->settings->json;
}

/* ---- JSON ---- */

void report_json_begin(struct text *t, const char *event)
{
	text_puts(t, "{\"event\":");
	escape_json(t, event, strlen(event));
}

static void report_json_name(struct text *t, const char *name)
{
	text_putc(t, ',');
	escape_json(t, name, strlen(name));
	text_putc(t, ':');
}

void report_json_string(struct text *t, const char *name, const char *value)
{
	report_json_name(t, name);
	if (value)
		escape_json(t, value, strlen(value));
	else
		text_puts(t, "null");
}

void report_json_bytes(struct text *t, const char *name, const void *value, size_t len)
{
	report_json_name(t, name);
	escape_json(t, value, len);
}

void report_json_number(struct text *t, const char *name, uint64_t value)
{
	report_json_name(t, name);
	text_printf(t, "%ju", (uintmax_t)value);
}

void report_json_bool(struct text *t, const char *name, bool value)
{
	report_json_name(t, name);
	text_puts(t, value ? "true" : "false");
}

/* What can be said when there is no memory to say more. */
static void report_no_memory(void)
{
	static const char message[] = "rftp: out of memory\n";

	fwrite(message, 1, sizeof message - 1, stderr);
}

void report_json_end(struct report *r, struct text *t)
{
	if (r->job)
		report_json_number(t, "job", r->job);
	text_puts(t, "}\n");
	if (t->failed) /* half an object would be none */
		report_no_memory();
	else
		report_write(r, text_str(t), t->len);
	text_fini(t);
}

/* ---- output ---- */

void report_write(struct report *r, const char *s, size_t n)
{
	progress_erase(&r->progress);
	fwrite(s, 1, n, r->out);
}

int report_flush(struct report *r)
{
	errno = 0;
	if (!fflush(r->out) && !ferror(r->out))
		return 0;
	if (r->out == stdout) {
		int err = errno ? errno : EIO;

		clearerr(stdout);
		/* a pipe that nobody reads any more is no lost connection */
		if (err == EPIPE)
			report_error(r, EXIT_CODE_IO, STATUS_IO, "standard output", strerror(err));
		else
			report_errorf(r, err, "standard output", "%s", strerror(err));
		return -err;
	}
	return 0; /* nobody could be told */
}

/* One write, so that lines of several programs do not mix. */
static void report_stderr(struct report *r, struct text *line)
{
	progress_erase(&r->progress);
	fflush(stdout);
	text_putc(line, '\n');
	if (line->failed)
		report_no_memory();
	else
		fwrite(text_str(line), 1, line->len, stderr);
	text_fini(line);
}

/* Made text is escaped as a whole: no part of it can forge a line or reach the terminal. */
static void report_line(struct report *r, const char *format, va_list ap)
{
	struct text line = {0};
	char *message = NULL;

	if (vasprintf(&message, format, ap) < 0) {
		report_no_memory();
		return;
	}
	text_puts(&line, "rftp: ");
	escape_display(&line, message, strlen(message));
	report_stderr(r, &line);
	free(message);
}

void report_verbose(struct report *r, const char *format, ...)
{
	va_list ap;

	if (r->settings->verbosity < 1)
		return;
	va_start(ap, format);
	report_line(r, format, ap);
	va_end(ap);
}

void report_note(struct report *r, const char *format, ...)
{
	va_list ap;

	if (r->settings->verbosity < 0)
		return;
	va_start(ap, format);
	report_line(r, format, ap);
	va_end(ap);
}

/* ---- errors ---- */

void report_error(struct report *r, enum exit_code code, uint16_t status, const char *object,
	const char *text)
{
	struct text line = {0}, json = {0};

	/* a server's text names the object as well */
	if (object && text && !strncmp(text, object, strlen(object)) &&
		!strncmp(text + strlen(object), ": ", 2))
		text += strlen(object) + 2;
	if (!text || !*text)
		text = status_text(status);
	if (!code)
		code = exit_code_from_status(status);
	r->code = exit_code_join(r->code, code);
	r->errors++;

	text_puts(&line, "rftp: ");
	if (object) {
		escape_display(&line, object, strlen(object));
		text_puts(&line, ": ");
	}
	escape_display(&line, text, strlen(text));
	report_stderr(r, &line);
	if (!report_json(r))
		return;
	report_json_begin(&json, "error");
	report_json_string(&json, "object", object);
	report_json_string(&json, "status", status_name(status));
	report_json_number(&json, "code", code);
	report_json_string(&json, "text", text);
	report_json_end(r, &json);
}

void report_errorf(struct report *r, int error, const char *object, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	report_error(r, EXIT_CODE_OK, status_from_errno(error), object, text);
	free(text);
}

void report_usage(struct report *r, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	report_error(r, EXIT_CODE_USAGE, STATUS_INVALID, NULL, text);
	free(text);
}

/* ---- transfers ---- */

void report_reason(struct text *out, uint16_t status, const char *text)
{
	const char *meaning = status_text(status);

	if (!text || strstr(meaning, text)) /* "" is in everything */
		text_puts(out, meaning);
	else if (strstr(text, meaning))
		text_puts(out, text);
	else
		text_printf(out, "%s (%s)", meaning, text);
}

void report_file(struct report *r, const struct report_file *f)
{
	struct text json = {0}, whole = {0};

	if (f->status)
		report_reason(&whole, f->status, f->text);
	else if (f->text)
		text_puts(&whole, f->text);
	if (report_json(r)) {
		report_json_begin(&json, f->directory    ? "directory"
					 : f->attributes ? "attributes"
							 : "file");
		report_json_string(&json, "path", f->path);
		report_json_string(&json, "remote", f->remote);
		if (!f->directory && !f->attributes)
			report_json_number(&json, "bytes", f->bytes);
		report_json_string(&json, "status", status_name(f->status));
		report_json_string(&json, "text", text_str(&whole));
		report_json_end(r, &json);
	}
	if (f->status && f->error)
		report_error(r, EXIT_CODE_OK, f->status, f->shown, text_str(&whole));
	else if (!f->status && whole.len)
		report_note(r, "%s: %s", f->shown, text_str(&whole));
	else if (!f->status && f->directory && r->settings->verbosity > 1)
		report_verbose(r, "%s", f->shown);
	else if (!f->status && f->attributes && r->settings->verbosity > 1)
		report_verbose(r, "%s: mode, time, and what it has beside its bytes", f->shown);
	else if (!f->status && r->settings->verbosity > 1)
		report_verbose(r, "%s: %ju bytes", f->shown, (uintmax_t)f->bytes);
	text_fini(&whole);
}

/* Whoever reads the lines is to see now what happens now. */
static void report_json_now(struct report *r, struct text *json)
{
	report_json_end(r, json);
	report_flush(r);
}

void report_start(
	struct report *r, const char *command, const char *server, const char *destination)
{
	struct text json = {0};

	if (!report_json(r))
		return;
	report_json_begin(&json, "start");
	report_json_number(&json, "version", REPORT_JSON_VERSION);
	report_json_string(&json, "command", command);
	report_json_string(&json, "server", server);
	if (destination)
		report_json_string(&json, "destination", destination);
	report_json_now(r, &json);
	r->progress_ns = clock_now_ns() + REPORT_PROGRESS_NS;
}

static void report_json_known(struct text *json, const char *name, uint64_t value)
{
	report_json_name(json, name);
	if (value == MESSAGE_UNKNOWN)
		text_puts(json, "null");
	else
		text_printf(json, "%ju", (uintmax_t)value);
}

void report_progress(struct report *r, const struct progress_state *s)
{
	uint64_t now = clock_now_ns();
	struct text json = {0};

	progress_draw(&r->progress, s);
	if (!report_json(r) || now < r->progress_ns)
		return;
	r->progress_ns = now + REPORT_PROGRESS_NS;
	report_json_begin(&json, "progress");
	report_json_number(&json, "bytes", s->bytes);
	report_json_known(&json, "total_bytes", s->total_bytes);
	report_json_number(&json, "files", s->files);
	report_json_known(&json, "total_files", s->total_files);
	report_json_number(&json, "errors", s->errors);
	report_json_string(&json, "current", s->name && *s->name ? s->name : NULL);
	report_json_now(r, &json);
}

void report_scan(struct report *r, uint64_t files, uint64_t bytes)
{
	struct text json = {0};
	uint64_t now;

	progress_scan(&r->progress, files, bytes);
	if (!report_json(r))
		return;
	now = clock_now_ns();
	if (now < r->progress_ns)
		return;
	r->progress_ns = now + REPORT_PROGRESS_NS;
	report_json_begin(&json, "scan");
	report_json_number(&json, "files", files);
	report_json_known(&json, "bytes", bytes);
	report_json_now(r, &json);
}

static void report_seconds(struct text *json, const char *name, uint64_t ns)
{
	if (ns == MESSAGE_UNKNOWN)
		text_printf(json, ",\"%s\":null", name);
	else
		text_printf(json, ",\"%s\":%.6f", name, (double)ns / 1e9);
}

/* One that waits for memory and the like is in no class. */
static void report_class(struct text *json, const struct message_queued *queued)
{
	if (queued->class.len)
		report_json_bytes(json, "class", queued->class.data, queued->class.len);
	else
		report_json_string(json, "class", NULL);
}

void report_queued(struct report *r, const struct message_queued *queued)
{
	struct text json = {0}, place = {0};

	if (report_json(r)) {
		report_json_begin(&json, "queued");
		report_class(&json, queued);
		report_json_number(&json, "position", queued->position);
		report_seconds(&json, "wait_s", queued->wait_ns);
		report_json_end(r, &json);
		report_flush(r); /* it is of use now, or not at all */
		return;
	}
	progress_place(&place, queued);
	if (r->progress.on)
		progress_wait(&r->progress, text_str(&place));
	else
		report_verbose(r, "waiting: %s", text_str(&place));
	text_fini(&place);
}

void report_admitted(struct report *r, const struct message_queued *queued, uint64_t waited_ns)
{
	char share[UNITS_TEXT_MAX];
	struct text json = {0};

	if (report_json(r)) {
		report_json_begin(&json, "admitted");
		report_class(&json, queued);
		report_json_number(&json, "share", queued->share);
		report_seconds(&json, "waited_s", waited_ns);
		report_json_end(r, &json);
		report_flush(r);
		return;
	}
	units_format_rate((double)queued->share, share);
	report_verbose(r, "admitted in %.*s after %.3f s: %s", (int)queued->class.len,
		(const char *)queued->class.data, (double)waited_ns / 1e9, share);
}

static void report_requests(struct text *t, const struct transfer_requests *n)
{
	text_printf(t,
		",\"requests\":{\"writes\":%ju,\"sends\":%ju,\"reads\":%ju,\"signalled\":%ju,"
		"\"receives\":%ju,"
		"\"frames\":%ju,\"send_queue\":%u,\"receive_queue\":%u}",
		(uintmax_t)n->writes, (uintmax_t)n->sends, (uintmax_t)n->reads,
		(uintmax_t)n->signalled, (uintmax_t)n->receives, (uintmax_t)n->frames,
		n->send_queue, n->receive_queue);
}

static void report_replies(struct text *t, const struct report_done *d)
{
	if (!d->replies_are_read) {
		report_json_string(t, "replies", NULL);
		return;
	}
	text_printf(t, ",\"replies\":{\"pieces\":%ju,\"reads\":%ju,\"asked_for\":%ju,\"sent\":%ju}",
		(uintmax_t)d->replies.pieces, (uintmax_t)d->replies.reads,
		(uintmax_t)d->replies.asks, (uintmax_t)d->replies.sends);
}

static void report_done_json(struct report *r, const struct report_done *d, double rate)
{
	struct text json = {0};

	report_json_begin(&json, "done");
	report_json_number(&json, "bytes", d->bytes);
	report_json_number(&json, "sent_bytes", d->sent);
	report_json_number(&json, "hole_bytes", d->holes);
	report_json_number(&json, "crossed_bytes", d->crossed);
	text_printf(&json, ",\"compression\":%.3f",
		d->crossed && d->sent ? (double)d->sent / (double)d->crossed : 1.0);
	text_printf(&json, ",\"seconds\":%.6f,\"bytes_per_second\":%.0f", d->seconds, rate);
	report_json_string(&json, "fabric", d->fabric);
	report_json_string(&json, "engine", d->engine);
	report_json_string(&json, "protect", d->protect);
	report_json_number(&json, "channels", d->channels);
	report_json_number(&json, "block", d->block);
	report_json_bool(&json, "direct", d->direct);
	report_json_number(&json, "early_bytes", d->early_bytes);
	report_json_string(&json, "early_why", d->early_why);
	report_json_number(&json, "files", d->files);
	report_json_number(&json, "directories", d->directories);
	report_json_number(&json, "skipped", d->skipped);
	report_json_number(&json, "removed", d->removed);
	report_json_number(&json, "special", d->special);
	report_json_number(&json, "errors", d->errors);
	text_printf(&json, ",\"waited_s\":%.6f,\"deadline_met\":%s", d->waited_seconds,
		d->deadline_met < 0 ? "null"
		: d->deadline_met   ? "true"
				    : "false");
	report_requests(&json, &d->requests);
	report_replies(&json, d);
	report_json_end(r, &json);
}

void report_done(struct report *r, const struct report_done *d, bool summary)
{
	/* holes take no time: what the rate is of has crossed */
	uint64_t crossed = d->bytes > d->holes ? d->bytes - d->holes : 0;
	double rate = d->seconds > 0 ? (double)crossed / d->seconds : 0;
	char bytes[UNITS_TEXT_MAX], speed[UNITS_TEXT_MAX];
	struct text rest = {0};

	progress_erase(&r->progress);
	if (report_json(r)) {
		report_done_json(r, d, rate);
		return;
	}
	if (!summary)
		return;
	units_format_amount(d->bytes, bytes);
	units_format_rate(rate, speed);
	if (d->skipped)
		text_printf(&rest, "; %ju were there", (uintmax_t)d->skipped);
	if (d->removed)
		text_printf(&rest, "; %ju removed", (uintmax_t)d->removed);
	if (d->errors)
		text_printf(&rest, "; %ju failed", (uintmax_t)d->errors);
	report_note(r, "%ju file%s, %s in %.2f s, %s%s", (uintmax_t)d->files,
		d->files == 1 ? "" : "s", bytes, d->seconds, speed, text_str(&rest));
	text_fini(&rest);
}
