/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/feed/feed.c: owns the sources of a feed, and what is said of them.  How they are read
 * together is the transfer's.
 */
#include "rftp/feed/feed.h"

#include "rftp/feed/feed_source.h"
#include "rftp/shell/interrupt.h"
#include "rftp/copy/mover.h"
#include "rftp/copy/mover_file.h"
#include "session/calls_names.h"
#include "rftp/remote/visit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct feed {
	struct mover mover;
	struct client *client;
	struct feed_source *sources;
	size_t count, next;
	struct feed_keeper keeper; /* of those that are commands */
};

/* ---- what the transfer asks ---- */

static int feed_next(void *ctx, struct transfer_item *item)
{
	struct feed *f = ctx;
	struct feed_source *s;

	if (f->next == f->count)
		return 0;
	s = &f->sources[f->next++];
	*item = (struct transfer_item){
		.file = {.kind = TRANSFER_FILE_STREAM,
			.mode = 0644,
			.size = MESSAGE_UNKNOWN,
			.name = {(const uint8_t *)s->name, strlen(s->name)}},
		.cookie = s,
	};
	if (!s->end) /* a command: it begins when there is somebody to listen */
		item->error = feed_source_open(s, (unsigned)f->count, &f->keeper);
	item->end = s->end;
	s->end = NULL;
	return 1;
}

/* What became of a device: once, whatever else ends with it. */
static void feed_tell(struct feed *f, struct feed_source *s, uint16_t status, const char *text)
{
	struct report *r = &f->client->report;
	struct text json = {0}, whole = {0};
	const struct outcome outcome = {.path = s->name,
		.name = {(const uint8_t *)s->name, strlen(s->name)},
		.bytes = s->bytes,
		.status = status,
		.text = text};
	bool tell = mover_file_count(&f->mover, s->name, &outcome);

	s->untold = false;
	if (status)
		report_reason(&whole, status, text);
	if (report_json(r)) {
		report_json_begin(&json, "device");
		report_json_string(&json, "name", s->name);
		report_json_number(&json, "bytes", s->bytes);
		report_json_number(&json, "packets", s->packets);
		report_json_number(&json, "dropped", s->dropped);
		report_json_string(&json, "status", status_name(status));
		report_json_string(&json, "text", text_str(&whole));
		report_json_end(r, &json);
	}
	if (tell)
		report_error(r, EXIT_CODE_OK, status, s->name, text_str(&whole));
	else if (s->dropped)
		report_note(r, "%s: %ju packets sent, %ju dropped", s->name, (uintmax_t)s->packets,
			(uintmax_t)s->dropped);
	else if (!status)
		report_verbose(r, "%s: %ju bytes in %ju packets", s->name, (uintmax_t)s->bytes,
			(uintmax_t)s->packets);
	text_fini(&whole);
}

/* A command that failed is an error of its device; what it wrote is kept.  What became of the
 * device is told as soon as that is known. */
static void feed_reap(struct feed *f, struct feed_source *s, enum feed_reap how)
{
	struct text text = {0};
	int status = feed_source_reap(s, how);

	if (!s->untold || (s->pid && how == FEED_REAP_IF_ENDED))
		return;
	/* when we stopped reading it, it ends by SIGPIPE or as it likes */
	if (how == FEED_REAP_NOW || interrupt_signal())
		status = 0;
	if (status > 128)
		text_printf(&text, "the command was ended by signal %d", status - 128);
	else if (status > 0)
		text_printf(&text, "the command ended with status %d", status);
	feed_tell(f, s, status > 0 ? STATUS_OTHER : STATUS_OK, text_str(&text));
	text_fini(&text);
}

static void feed_done(
	void *ctx, const struct transfer_item *item, uint16_t status, const char *text)
{
	struct feed *f = ctx;
	struct feed_source *s = item->cookie;

	s->bytes = item->sent_bytes;
	s->packets = item->sent_blocks;
	s->dropped = item->dropped_blocks;
	s->ended = s->untold = !status;
	if (status)
		feed_tell(f, s, status, text);
	else
		feed_reap(f, s, FEED_REAP_IF_ENDED);
}

/* ---- the sources ---- */

static int feed_parse(struct feed *f, const char *const *words)
{
	struct report *r = &f->client->report;

	for (size_t i = 0; i < f->count; i++) {
		struct feed_source *s = &f->sources[i];
		const char *why;
		int err = feed_source_parse(s, words[i], &why);

		if (err && !why)
			return client_no_memory(f->client);
		for (size_t k = 0; !err && k < i; k++) {
			if (strcmp(f->sources[k].name, s->name))
				continue;
			why = "another device has this name";
			err = -EINVAL;
		}
		if (err) {
			report_error(r, EXIT_CODE_USAGE, STATUS_INVALID, words[i], why);
			return err;
		}
	}
	return 0;
}

/* All that can be known to be there, before anything begins. */
static int feed_open(struct feed *f)
{
	int err = 0;

	for (size_t i = 0; i < f->count && !err; i++) {
		if (feed_source_is_command(&f->sources[i])) {
			err = f->keeper.pid ? 0 : feed_keeper_start(&f->keeper);
			if (err)
				report_error(&f->client->report, EXIT_CODE_OK, STATUS_OTHER,
					f->sources[i].name, strerror(-err));
			continue;
		}
		err = feed_source_open(&f->sources[i], (unsigned)f->count, &f->keeper);
		if (err)
			report_error(&f->client->report, EXIT_CODE_OK, status_from_errno(err),
				f->sources[i].from, NULL);
	}
	return err;
}

static void feed_free(struct feed *f)
{
	for (size_t i = 0; f->sources && i < f->count; i++)
		feed_source_fini(&f->sources[i]);
	free(f->sources);
	feed_keeper_stop(&f->keeper);
}

/* ---- the feed ---- */

static int feed_request(struct feed *f, const char *target)
{
	struct client *c = f->client;
	struct message_feed request = {
		.streams = (uint16_t)f->count,
		.segment_bytes = c->settings.segment_bytes,
		.segment_ns = c->settings.segment_ns,
		.path = {(const uint8_t *)target, strlen(target)},
	};
	/* the point of it: all devices share one, unless the user says otherwise */
	int err = mover_channels(&f->mover, c->settings.channels ? c->settings.channels : 1);

	if (err)
		return err;
	err = calls_feed(c->session, c->transfer, &request);
	return err ? client_report(c, target, err) : 0;
}

static int feed_send(struct feed *f, const char *target)
{
	const struct transfer_feed feed = {
		.streams = (unsigned)f->count,
		.drop_oldest = f->client->settings.drop_oldest,
		.stop_fd = interrupt_fd(),
	};
	const struct transfer_source source = {
		.next = feed_next,
		.done = feed_done,
		.ctx = f,
		.feed = &feed,
		.total_files = f->count,
		.total_bytes = MESSAGE_UNKNOWN,
		.largest_bytes = MESSAGE_UNKNOWN,
	};
	int err = mover_send_source(&f->mover, &source, target);
	bool in_order = !err || err == -EREMOTEIO;

	for (size_t i = 0; i < f->count; i++) {
		struct feed_source *s = &f->sources[i];

		feed_reap(f, s,
			in_order && s->ended && !interrupt_signal() ? FEED_REAP_SOON
								    : FEED_REAP_NOW);
	}
	if (in_order) /* what the signal asked for is done */
		interrupt_answered();
	return err;
}

int feed_run(struct client *c, const char *const *words, size_t count, const char *target)
{
	struct feed f = {.client = c, .count = count};
	int err;

	mover_start(&f.mover, c, "feed");
	if (!count || count > TRANSFER_FEED_MAX) {
		report_usage(&c->report, "a feed has 1 to %u devices", TRANSFER_FEED_MAX);
		return mover_finish(&f.mover, -EINVAL);
	}
	f.sources = calloc(count, sizeof *f.sources);
	err = f.sources ? feed_parse(&f, words) : client_no_memory(c);
	if (!err)
		err = feed_open(&f);
	if (!err && !client_session(c))
		err = -ENOTCONN;
	if (!err)
		err = feed_request(&f, target);
	if (!err)
		err = feed_send(&f, target);
	feed_free(&f);
	return mover_finish(&f.mover, err);
}

int feed_main(struct client *c, char *const *names, int count)
{
	const char *last = count ? names[count - 1] : "";
	struct url url;
	int err;

	if (count < 2 || !url_is(last)) {
		report_usage(&c->report,
			"usage: rftp feed NAME=SOURCE... rftp://HOST[:PORT]/DIR (a file called "
			"feed is given as ./feed)");
		return -EINVAL;
	}
	err = visit_open(c, last, &url);
	if (err)
		return err;
	err = feed_run(c, (const char *const *)names, (size_t)count - 1, url.path);
	url_fini(&url);
	return err;
}
