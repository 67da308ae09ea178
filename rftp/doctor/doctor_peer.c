/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor_peer.c: the way to a server: which fabrics answer, how far it is, how fast it
 * goes.
 *
 * Has sessions of its own, one per fabric, and moves memory to memory: no file, here or there.
 */
#include "rftp/doctor/doctor_impl.h"

#include "base/addr.h"
#include "fabric/select.h"
#include "rftp/remote/client.h"
#include "rftp/ui/units.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PEER_FIRST_BYTES (1ull << 20)
#define PEER_MOST_BYTES (256ull << 20)
#define PEER_STEP 8.0      /* each trial moves at most so many times what the one before did */
#define PEER_ENOUGH_S 0.25 /* a trial that took so long tells the rate */
#define PEER_WANTED_S 1.0
#define PEER_MEND_BYTES 200

/* ---- rate ---- */

struct peer_rate {
	uint64_t bytes;
	double seconds;
	unsigned channels;
};

static void peer_params(
	const struct doctor *d, const struct calls *s, struct transfer_params *params)
{
	const struct calls_info *info = calls_info(s);

	*params = (struct transfer_params){
		.engines = info->engines,
		.protect = info->protect,
		.max_block = info->max_block,
		.max_depth = info->max_depth,
		.rtt_ns = info->rtt_ns,
		.cancel_fd = d->session.cancel_fd,
	};
}

static int peer_put(struct doctor *d, struct calls *s, uint64_t bytes, struct transfer_stats *stats)
{
	const struct outgoing_params out = {.top = AT_FDCWD};
	const struct message_data_request request = {
		.kind = MESSAGE_DATA_NULL, .rtt_us = calls_rtt_us(s), .size = bytes};
	struct transfer_params params;
	struct outgoing *outgoing;
	int err = outgoing_new(&out, &outgoing);

	if (err)
		return err;
	err = outgoing_add_null(outgoing, bytes);
	if (!err)
		err = calls_store(s, 0, &request);
	if (!err) {
		peer_params(d, s, &params);
		err = transfer_error(
			transfer_send(calls_link(s), &params, outgoing_source(outgoing), stats),
			stats);
		if (err)
			client_after_transfer(s, err, stats);
	}
	outgoing_free(outgoing);
	return err;
}

static int peer_get(struct doctor *d, struct calls *s, uint64_t bytes, struct transfer_stats *stats)
{
	const struct incoming_params in = {
		.kind = INCOMING_NULL, .top = AT_FDCWD, .path = "", .fd = -1, .replace = true};
	const struct message_data_request request = {
		.kind = MESSAGE_DATA_NULL,
		.size = bytes,
		.channels = (uint16_t)link_channel_count(calls_link(s), 0),
		.rtt_us = calls_rtt_us(s),
	};
	struct transfer_params params;
	struct incoming *incoming;
	int err = incoming_new(&in, &incoming);

	if (err)
		return err;
	err = calls_retrieve(s, 0, &request);
	if (!err) {
		peer_params(d, s, &params);
		err = transfer_error(
			transfer_receive(calls_link(s), &params, incoming_sink(incoming), stats),
			stats);
		if (err)
			client_after_transfer(s, err, stats);
	}
	incoming_free(incoming);
	return err;
}

/* More and more, until it takes long enough to be measured. */
static int peer_measure(struct doctor *d, struct calls *s, bool get, struct peer_rate *out)
{
	uint64_t bytes = PEER_FIRST_BYTES;

	for (;;) {
		struct transfer_stats stats = {0};
		int err = get ? peer_get(d, s, bytes, &stats) : peer_put(d, s, bytes, &stats);
		double more;

		if (err)
			return err;
		out->bytes = bytes;
		out->seconds = (double)(stats.ended_ns - stats.started_ns) / 1e9;
		out->channels = stats.channels;
		if (out->seconds >= PEER_ENOUGH_S || bytes >= PEER_MOST_BYTES)
			return 0;
		more = PEER_WANTED_S / (out->seconds > 1e-6 ? out->seconds : 1e-6);
		bytes = (uint64_t)((double)bytes * (more < PEER_STEP ? more : PEER_STEP));
		bytes = bytes < PEER_MOST_BYTES ? bytes & ~4095ull : PEER_MOST_BYTES;
	}
}

static double peer_per_second(const struct peer_rate *r)
{
	return r->seconds > 0 ? (double)r->bytes / r->seconds : 0;
}

/* Whether the TCP windows of this side are what bounds the rate. */
static bool peer_is_bound(const struct doctor *d, const struct calls *s, const struct peer_rate *r)
{
	double rtt = (double)calls_info(s)->rtt_ns / 1e9, most;

	if (strcmp(calls_info(s)->fabric, "soft") || rtt <= 0)
		return false;
	most = (double)doctor_tcp_window(d) * r->channels / rtt;
	return most > 0 && peer_per_second(r) > most / 2;
}

static void peer_rates(struct doctor *d, struct calls *s, const char *object)
{
	char put_text[UNITS_TEXT_MAX], get_text[UNITS_TEXT_MAX], mend[PEER_MEND_BYTES];
	struct peer_rate put, get;
	uint64_t need;
	int err = calls_channels(s, 0, d->channels);

	if (!err)
		err = peer_measure(d, s, false, &put);
	if (!err)
		err = peer_measure(d, s, true, &get);
	if (err) {
		const struct calls_error *why = calls_error(s);

		doctor_say(d, DOCTOR_FAIL, object, "rftp -vv -c bench URL  (and rftpd's log)", "%s",
			why->text[0]
				? why->text
				: status_text(why->status ? why->status : status_from_errno(err)));
		return;
	}
	units_format_rate(peer_per_second(&put), put_text);
	units_format_rate(peer_per_second(&get), get_text);
	if (!peer_is_bound(d, s, &put) && !peer_is_bound(d, s, &get)) {
		doctor_say(d, DOCTOR_OK, object, NULL, "put %s, get %s, %u channel%s", put_text,
			get_text, put.channels, put.channels == 1 ? "" : "s");
		return;
	}
	/* 10 Gb/s on one connection, but no more than a host would give away */
	need = (uint64_t)((double)calls_info(s)->rtt_ns / 1e9 * 1.25e9) * 2;
	need = need < (1ull << 30) ? need : 1ull << 30;
	snprintf(mend, sizeof mend,
		"sysctl net.ipv4.tcp_rmem='4096 131072 %ju' net.ipv4.tcp_wmem='4096 65536 %ju'  "
		"(both hosts)",
		(uintmax_t)need, (uintmax_t)need);
	doctor_say(d, DOCTOR_WARN, object, mend,
		"put %s, get %s, %u channels: TCP's buffers bound it", put_text, get_text,
		put.channels);
}

/* ---- who answers ---- */

/* Whether one of our RDMA devices is on the way. */
static bool peer_is_behind_device(const struct doctor *d)
{
	struct addr addresses[4];
	struct sockaddr_storage source;
	char netdev[IF_NAMESIZE];
	size_t count = 0;

	addr_resolve(d->session.host, d->session.port, false, addresses, 4, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sockaddr *sa = (const struct sockaddr *)&addresses[i].ss;

		if (addr_is_loopback(sa) || device_route(sa, &source, netdev))
			continue;
		for (unsigned p = 0; p < d->port_count; p++)
			if (!strcmp(d->ports[p].netdev, netdev))
				return true;
	}
	return false;
}

static void peer_no_answer(
	struct doctor *d, const char *name, int err, const struct calls_error *why, bool others)
{
	bool devices = select_is_plugged(name),
	     needed = !strcmp(d->fabric, name) || (!devices && !others);
	char object[40], mend[PEER_MEND_BYTES];
	enum doctor_result result = DOCTOR_INFO;
	const char *text = why->text[0] ? why->text : status_text(why->status);

	if (needed)
		result = DOCTOR_FAIL;
	else if (devices && !d->port_count)
		result = DOCTOR_SKIP;
	else if (devices && peer_is_behind_device(d))
		result = DOCTOR_WARN;
	if (devices && !d->port_count)
		snprintf(mend, sizeof mend, "see the row rdma device");
	else if (devices)
		snprintf(mend, sizeof mend,
			"rftpd --fabric=auto there, with a device; RoCE: let UDP port 4791 pass");
	else if (err == -ECONNREFUSED)
		snprintf(mend, sizeof mend, "rftpd --listen=ADDRESS:%u ... there", d->session.port);
	else
		snprintf(mend, sizeof mend,
			"look at the name, the route, and the firewall for TCP port %u",
			d->session.port);
	snprintf(object, sizeof object, "fabric %s", name);
	/* the row names the fabric already */
	if (!strncmp(text, object, strlen(object)) && !strncmp(text + strlen(object), ": ", 2))
		text += strlen(object) + 2;
	doctor_say(d, result, object, result == DOCTOR_WARN || result == DOCTOR_FAIL ? mend : NULL,
		"%s", text);
}

void doctor_peer(struct doctor *d)
{
	bool answered = false;
	const char *name;

	for (unsigned i = 0; d->session.host && (name = select_name(i)); i++) {
		struct calls_params params = d->session;
		const struct calls_info *info;
		struct calls_error why;
		struct calls *s;
		char object[40];
		int err;

		if (d->fabric[0] && strcmp(d->fabric, name))
			continue;
		params.fabric = name;
		if (params.login)
			login_again(params.login_ctx);
		err = calls_open(&params, &s, &why);
		d->check = "server";
		if (err == -ECANCELED)
			return;
		if (err) {
			peer_no_answer(d, name, err, &why, answered);
			continue;
		}
		answered = true;
		info = calls_info(s);
		snprintf(object, sizeof object, "fabric %s", name);
		doctor_say(d, DOCTOR_OK, object, NULL, "%s answers: %s%s; %s", info->address,
			info->agent, info->read_only ? " (read-only)" : "", info->description);
		d->check = "rtt";
		doctor_say(d, DOCTOR_OK, object, NULL, "%.3f ms", (double)info->rtt_ns / 1e6);
		d->check = "rate";
		peer_rates(d, s, object);
		calls_close(s);
	}
}
