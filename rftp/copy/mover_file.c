/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/mover_file: see mover_file.h.
 */
#include "rftp/copy/mover_file.h"

#include <stdlib.h>
#include <string.h>

/* What is there already stays, as it was asked for. */
static bool is_skipped(const struct mover *m, uint16_t status)
{
	const struct settings *s = &m->client->settings;

	return status == STATUS_THERE ||
	       (status == STATUS_EXISTS && (s->update || s->ignore_existing));
}

bool mover_file_ends_all(uint16_t status)
{
	return status == STATUS_CANCELLED || status == STATUS_DISCONNECTED ||
	       status == STATUS_TIMEOUT || status == STATUS_SHUTDOWN;
}

static void note_failure(
	struct mover *m, const struct outcome *o, const char *source, const char *shown)
{
	struct text why = {0};

	report_reason(&why, o->status, o->text);
	failures_add(&m->failed,
		&(struct failure){
			.name = o->name, .source = source, .shown = shown, .why = text_str(&why)});
	text_fini(&why);
}

/* What the user called what has no name beneath the destination. */
static const char *whole_source(const struct mover *m, const struct outcome *o)
{
	const struct asked_name *asked = m->asked ? asked_find(m->asked, o->name) : NULL;

	return asked ? asked->path : o->path;
}

void mover_file_absent(struct mover *m, const char *name, const char *shown, uint16_t status)
{
	const struct outcome o = {
		.name = {(const uint8_t *)name, strlen(name)}, .status = status, .text = ""};

	if (!mover_file_ends_all(status))
		note_failure(m, &o, shown, shown);
}

bool mover_file_count(struct mover *m, const char *shown, const struct outcome *o)
{
	m->outcomes++;
	if (o->special && !o->status) {
		m->done.special++;
		if (!m->special)
			m->special = strdup(shown);
		return false;
	}
	if (o->attributes && !o->status)
		return false;
	if (is_skipped(m, o->status)) {
		m->done.skipped++;
		m->skipped++;
		return false;
	}
	if (o->status)
		m->failures++;
	else if (o->directory)
		m->done.directories++;
	else
		m->done.files++;
	m->done.bytes += o->status ? 0 : o->bytes;
	if (o->status && !mover_file_ends_all(o->status)) {
		note_failure(m, o, whole_source(m, o), shown);
		mover_stop(m);
	}
	if (!mover_file_ends_all(o->status))
		return o->status;
	if (!m->held_status) {
		m->held_status = o->status;
		m->held_path = strdup(shown);
		m->held_text = strdup(o->text);
	}
	return false;
}

/* What a name that crossed is at the server. */
static char *remote_path(const struct mover *m, const struct outcome *o)
{
	struct asked_name *asked = m->asked ? asked_find(m->asked, o->name) : NULL;
	const char *before = asked ? asked->path : m->remote;
	struct wire_bytes name = o->name;
	struct text path = {0};

	if (!before)
		return NULL;
	text_puts(&path, before);
	if (asked) { /* its path ends with the name itself */
		size_t len = strlen(asked->name);

		name = (struct wire_bytes){name.data + len, name.len - len};
	}
	if (name.len && path.len && text_str(&path)[path.len - 1] != '/' && *name.data != '/')
		text_putc(&path, '/');
	text_add(&path, (const char *)name.data, name.len);
	return text_take(&path);
}

void mover_file_scanned(void *ctx, uint64_t files, uint64_t bytes)
{
	report_scan(&((struct mover *)ctx)->client->report, files, bytes);
}

static void tell(struct mover *m, const struct outcome *o)
{
	const char *shown = strcmp(o->path, "-") != 0 ? o->path
			    : m->stdout_stream        ? "standard output"
						      : "standard input";
	char *remote = remote_path(m, o);
	bool theirs = remote && o->status && !strcmp(o->text, TRANSFER_AT_SOURCE);
	const char *text =
		theirs && m->asked && !m->stdout_stream && o->status == STATUS_IS_DIRECTORY
			? MOVER_WITHOUT_R
			: o->text;
	const struct report_file file = {
		.path = *o->path ? o->path : NULL,
		.remote = remote,
		.shown = theirs   ? remote
			 : *shown ? shown
				  : "memory",
		.directory = o->directory,
		.attributes = o->attributes,
		.bytes = o->bytes,
		.status = o->status,
		.text = text,
		.error = mover_file_count(m, theirs ? remote : shown, o),
	};

	if (!o->special || o->status)
		report_file(&m->client->report, &file);
	free(remote);
}

void mover_file_done(void *ctx, const struct outcome *o)
{
	struct mover *m = ctx;

	/* what was refused was never asked for */
	if (!m->refused && !m->leaving)
		tell(m, o);
}

void mover_file_release(struct mover *m, bool alone)
{
	struct text reason = {0};

	/* a pipe that nobody reads any more is no lost connection */
	if (alone && m->held_status && m->stdout_stream) {
		report_error(
			&m->client->report, EXIT_CODE_IO, STATUS_IO, m->held_path, m->held_text);
	} else if (alone && m->held_status) {
		report_reason(&reason, m->held_status, m->held_text);
		report_error(&m->client->report, EXIT_CODE_OK, m->held_status, m->held_path,
			text_str(&reason));
	}
	text_fini(&reason);
	free(m->held_path);
	free(m->held_text);
	m->held_path = m->held_text = NULL;
	m->held_status = 0;
}
