/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor.c: owns the table of checks, and how rows are shown.  What is looked at is the
 * other files'.
 */
#include "rftp/doctor/doctor.h"

#include "rftp/doctor/doctor_impl.h"
#include "rftp/remote/client_connect.h"
#include "rftp/remote/url.h"
#include "rftp/shell/interrupt.h"
#include "rftp/ui/escape.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCTOR_CHECK_COLUMNS 16
#define DOCTOR_PATH_BYTES 512

static const struct {
	const char *name;
	void (*run)(struct doctor *);
} doctor_table[] = {
	{"kernel", doctor_openat2},
	{"open files", doctor_files},
	{"rdma modules", doctor_modules},
	{"rdma rights", doctor_rights},
	{"rdma device", doctor_devices},
	{"port", doctor_state},
	{"mtu", doctor_mtu},
	{"gid", doctor_gid},
	{"numa", doctor_numa},
	{"locked memory", doctor_memlock},
	{"huge pages", doctor_huge_pages},
	{"libaio", doctor_aio},
	{"O_DIRECT", doctor_direct},
	{"tcp buffers", doctor_tcp_buffers},
	{"tcp congestion", doctor_congestion},
	{"server", doctor_peer},
};

static const char *const doctor_names[DOCTOR_RESULTS] = {"ok", "info", "warn", "fail", "skip"};

/* ---- for the checks ---- */

void doctor_init(struct doctor *d)
{
	*d = (struct doctor){
		.root = "",
		.directory = ".",
		.fabric = "",
		.probe = device_probe,
		.try_register = device_register,
	};
}

void doctor_checks(struct doctor *d)
{
	d->port_count = device_ports(d->root, d->ports);
	d->no_rights = false;
	for (size_t i = 0; i < sizeof doctor_table / sizeof *doctor_table && !interrupt_signal();
		i++) {
		d->check = doctor_table[i].name;
		doctor_table[i].run(d);
	}
}

void doctor_say(struct doctor *d, enum doctor_result result, const char *object, const char *mend,
	const char *format, ...)
{
	struct doctor_row row = {d->check, object, result, "", mend};
	char *cause = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&cause, format, ap) < 0)
		cause = NULL;
	va_end(ap);
	if (cause)
		row.cause = cause;
	d->counts[result]++;
	d->row(d->ctx, &row);
	free(cause);
}

bool doctor_read(const struct doctor *d, const char *path, char *out, size_t size)
{
	char whole[DOCTOR_PATH_BYTES];
	FILE *file;
	size_t n;

	out[0] = '\0';
	snprintf(whole, sizeof whole, "%s%s", d->root, path);
	file = fopen(whole, "re");
	if (!file)
		return false;
	n = fread(out, 1, size - 1, file);
	fclose(file);
	out[n] = '\0';
	if (n && out[n - 1] == '\n')
		out[n - 1] = '\0';
	return out[0] != '\0';
}

bool doctor_exists(const struct doctor *d, const char *path)
{
	char whole[DOCTOR_PATH_BYTES];

	snprintf(whole, sizeof whole, "%s%s", d->root, path);
	return !access(whole, F_OK);
}

bool doctor_wants_verbs(const struct doctor *d)
{
	return !strcmp(d->fabric, "verbs");
}

/* ---- rows for people, and as JSON ---- */

static void doctor_row_text(struct text *out, const struct doctor_row *row)
{
	text_printf(out, "%-*s %-5s ", DOCTOR_CHECK_COLUMNS, row->check, doctor_names[row->result]);
	if (row->object[0]) {
		escape_display(out, row->object, strlen(row->object));
		text_puts(out, ": ");
	}
	escape_display(out, row->cause, strlen(row->cause));
	if (row->mend) {
		text_printf(out, "\n%*s> ", DOCTOR_CHECK_COLUMNS + 7, "");
		escape_display(out, row->mend, strlen(row->mend));
	}
	text_putc(out, '\n');
}

static void doctor_show(void *ctx, const struct doctor_row *row)
{
	struct client *c = ctx;
	struct text out = {0};

	if (report_json(&c->report)) {
		report_json_begin(&out, "check");
		report_json_string(&out, "check", row->check);
		report_json_string(&out, "object", row->object[0] ? row->object : NULL);
		report_json_string(&out, "result", doctor_names[row->result]);
		report_json_string(&out, "cause", row->cause);
		report_json_string(&out, "mend", row->mend);
		report_json_end(&c->report, &out);
	} else if (c->settings.verbosity >= 0 || row->result == DOCTOR_WARN ||
		   row->result == DOCTOR_FAIL) {
		doctor_row_text(&out, row);
		report_write(&c->report, text_str(&out), out.len);
		text_fini(&out);
	}
	report_flush(&c->report); /* rows come as they are found: some take seconds */
}

static void doctor_summary(struct client *c, const struct doctor *d)
{
	unsigned bad = d->counts[DOCTOR_WARN] + d->counts[DOCTOR_FAIL];
	struct text out = {0};

	if (report_json(&c->report)) {
		report_json_begin(&out, "done");
		for (unsigned i = 0; i < DOCTOR_RESULTS; i++)
			report_json_number(&out, doctor_names[i], d->counts[i]);
		report_json_bool(&out, "healthy", !bad);
		report_json_end(&c->report, &out);
		return;
	}
	if (bad)
		text_printf(&out, "%u to mend: %u fail, %u warn\n", bad, d->counts[DOCTOR_FAIL],
			d->counts[DOCTOR_WARN]);
	else
		text_puts(&out, "nothing to mend\n");
	report_write(&c->report, text_str(&out), out.len);
	text_fini(&out);
}

int doctor_run(struct client *c, const struct doctor_params *params)
{
	struct doctor d;
	struct url url = {.path = NULL};
	struct client_connect_peer peer;
	const char *why;
	int err = params->url ? url_parse(params->url, &url, &why) : 0;

	if (err) {
		report_error(&c->report, err == -ENOMEM ? EXIT_CODE_OK : EXIT_CODE_USAGE,
			status_from_errno(err), params->url, why);
		return err;
	}
	if (params->url && url.ssh) {
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_INVALID, params->url,
			"the doctor looks at a daemon that runs: rftp://");
		url_fini(&url);
		return -EINVAL;
	}
	doctor_init(&d);
	if (params->directory)
		d.directory = params->directory;
	d.direct = c->settings.direct;
	d.fabric = c->settings.fabric;
	d.channels = c->settings.channels;
	err = params->url ? client_connect_params(c, &url, &d.session, &peer) : 0;
	if (err) {
		url_fini(&url);
		return err;
	}
	d.row = doctor_show;
	d.ctx = c;
	doctor_checks(&d);
	if (params->url) {
		client_connect_peer_fini(&peer);
		url_fini(&url);
	}
	if (interrupt_signal())
		return -ECANCELED;
	doctor_summary(c, &d);
	if (!d.counts[DOCTOR_WARN] && !d.counts[DOCTOR_FAIL])
		return 0;
	c->report.code = exit_code_join(c->report.code, EXIT_CODE_OTHER);
	return -EREMOTEIO;
}
