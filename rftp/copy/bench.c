/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/bench.c: owns nothing.  A bench is a transfer like any other with an end of the kind
 * null.
 */
#include "rftp/copy/bench.h"

#include "rftp/copy/mover.h"
#include "rftp/copy/mover_file.h"
#include "session/calls_names.h"
#include "rftp/ui/units.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int bench_put(struct mover *m, const struct bench_params *params)
{
	struct client *c = m->client;
	const struct outgoing_params out = {
		.top = AT_FDCWD,
		.direct = c->settings.direct,
		.done = mover_file_done,
		.ctx = m,
	};
	struct message_data_request request = {.kind = MESSAGE_DATA_NULL};
	struct outgoing *outgoing;
	int err = outgoing_new(&out, &outgoing);

	if (err)
		return client_no_memory(c);
	err = params->file ? outgoing_add(outgoing, params->file, "")
			   : outgoing_add_null(outgoing, params->bytes);
	if (err) {
		report_error(&c->report, EXIT_CODE_OK, status_from_errno(err), params->file, NULL);
		goto err_free;
	}
	err = mover_channels(m, c->settings.channels);
	if (err)
		goto err_free;
	mover_request(m, MESSAGE_STORE, &request);
	request.flags = 0;
	mover_request_size(&request, outgoing);
	err = calls_store(c->session, c->transfer, &request);
	err = err ? client_report(c, "bench", err) : mover_send(m, outgoing, "bench");
err_free:
	outgoing_free(outgoing);
	return err;
}

static int bench_get(struct mover *m, const struct bench_params *params)
{
	struct client *c = m->client;
	const char *object = params->file ? params->file : "bench";
	const struct incoming_params in = {
		.kind = INCOMING_NULL,
		.top = AT_FDCWD,
		.path = "",
		.fd = -1,
		.replace = true,
		.done = mover_file_done,
		.ctx = m,
	};
	struct message_data_request request = {
		.kind = params->file ? MESSAGE_DATA_FILES : MESSAGE_DATA_NULL,
		.size = params->file ? 0 : params->bytes,
	};
	struct incoming *incoming;
	int err = incoming_new(&in, &incoming);

	if (err)
		return client_no_memory(c);
	err = mover_channels(m, c->settings.channels);
	if (err)
		goto err_free;
	if (params->file) {
		request.path.data = (const uint8_t *)params->file;
		request.path.len = strlen(params->file);
	}
	mover_request(m, MESSAGE_RETRIEVE, &request);
	err = calls_retrieve(c->session, c->transfer, &request);
	err = err ? client_report(c, object, err) : mover_receive(m, incoming, object);
err_free:
	incoming_free(incoming);
	return err;
}

/* The rate is what was asked for: on stdout, also when quiet. */
static void bench_print(
	struct report *r, const struct bench_params *params, const struct report_done *d)
{
	char bytes[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX], block[UNITS_TEXT_MAX];
	struct text line = {0};

	units_format_amount(d->bytes, bytes);
	units_format_rate(d->seconds > 0 ? (double)d->bytes / d->seconds : 0, rate);
	units_format_size(d->block, block);
	text_printf(&line, "%s %s in %.3f s: %s (%s, %s, %u channel%s, block %s)\n",
		params->get ? "get" : "put", bytes, d->seconds, rate, d->fabric, d->engine,
		d->channels, d->channels == 1 ? "" : "s", block);
	report_write(r, text_str(&line), line.len);
	text_fini(&line);
}

int bench_run(struct client *c, const struct bench_params *params)
{
	struct mover m;
	int err = -ENOTCONN;

	mover_start(&m, c, "bench");
	m.quiet = true;
	if (client_session(c))
		err = params->get ? bench_get(&m, params) : bench_put(&m, params);
	err = mover_finish(&m, err);
	if (!err && !report_json(&c->report))
		bench_print(&c->report, params, &m.done);
	return err;
}
