/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen: see listen.h.
 *
 * Owns transports and listeners, and hands connection events to sessions.  Knows greetings; no
 * other message.
 */
#include "rftpd/serve/listen.h"

#include "base/addr.h"
#include "fabric/select.h"
#include "proto/message.h"
#include "proto/message_greeting.h"
#include "proto/status.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/daemon_session.h"
#include "rftpd/serve/listen_devices.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define PORT_TRIES 8 /* a free port of one fabric may be taken on the next */

/* ---- addresses ---- */

int listen_resolve(const struct daemon_settings *settings, const char *text,
	struct addr out[LISTEN_RESOLVED_MAX])
{
	char host[256], shown[ADDR_TEXT_MAX];
	uint16_t port;
	size_t count;
	int err = addr_split(text, host, sizeof host, ADDR_DEFAULT_PORT, &port);

	if (!err)
		err = addr_resolve(host, port, false, out, LISTEN_RESOLVED_MAX, &count);
	if (!err && !count)
		err = -ENOENT;
	if (err) {
		log_error("listen %s: %s", text, err == -ENOENT ? "no such host" : strerror(-err));
		return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		if (settings->insecure || !daemon_settings_is_open(settings) ||
			addr_is_loopback((struct sockaddr *)&out[i].ss))
			continue;
		addr_format((struct sockaddr *)&out[i].ss, shown);
		log_error("listen %s: %s is not a loopback address, and nobody has to log in: "
			  "anybody "
			  "who reaches it could use the export.  Say who may (users = FILE), or "
			  "allow it with --insecure",
			text, shown);
		return -EINVAL;
	}
	return (int)count;
}

const char *listen_text(const struct daemon_settings *settings, unsigned i)
{
	if (!settings->listen_count)
		return i ? NULL : DAEMON_LISTEN_DEFAULT;
	return i < settings->listen_count ? settings->listen[i] : NULL;
}

/* Whether the addresses can be resolved and may be listened on.  0 or -EINVAL, logged. */
static int listen_check(const struct daemon_settings *settings)
{
	struct addr addrs[LISTEN_RESOLVED_MAX];
	const char *text;

	for (unsigned i = 0; (text = listen_text(settings, i)); i++)
		if (listen_resolve(settings, text, addrs) < 0)
			return -EINVAL;
	return 0;
}

/* ---- who connects ---- */

static void reject(struct daemon *d, struct fabric_chan *chan, uint16_t status)
{
	struct message_welcome welcome = {.version = MESSAGE_VERSION, .status = status};
	uint8_t bytes[MESSAGE_WELCOME_BYTES];
	ssize_t len = message_put_welcome(&welcome, bytes, sizeof bytes);

	assert(len > 0);
	fabric_chan_reject(chan, bytes, (size_t)len);
	d->statistics.refused++;
}

static void refuse(struct daemon *d, struct fabric_chan *chan, uint16_t status, const char *why)
{
	char peer[ADDR_TEXT_MAX];

	if (admit_shuns(d, fabric_chan_peer(chan))) { /* which was said once */
		reject(d, chan, status);
		return;
	}
	addr_format(fabric_chan_peer(chan), peer);
	log_info("%s refused: %s", peer, why);
	audit_write(&d->audit,
		&(struct audit_event){
			.event = "refused", .peer = peer, .status = status, .text = why});
	reject(d, chan, status);
}

static void take_request(struct daemon *d, const struct fabric_event *ev)
{
	struct message_greeting greeting;
	struct daemon_session *s;

	if (message_get_greeting(&greeting, ev->priv, ev->priv_len)) {
		admit_blame(d, fabric_chan_peer(ev->chan), PENALTY_PROTOCOL);
		refuse(d, ev->chan, STATUS_PROTOCOL, "it does not greet as an rftp client does");
		return;
	}
	if (d->stopping) {
		refuse(d, ev->chan, STATUS_SHUTDOWN, "the daemon is ending");
		return;
	}
	if (greeting.kind == MESSAGE_CHANNEL_CONTROL) {
		const char *why;

		if (admit_shuns(d, fabric_chan_peer(ev->chan))) { /* which was said once */
			reject(d, ev->chan, STATUS_LIMIT);
			return;
		}
		admit_make_room(d);
		why = admit_refusal(d, fabric_chan_peer(ev->chan));
		if (why)
			refuse(d, ev->chan, STATUS_LIMIT, why);
		else
			daemon_session_open(d, ev->chan, &greeting);
		return;
	}
	s = daemon_session_find(d, greeting.session);
	if (!s || !session_transfers_accept_channel(s, ev->chan, &greeting))
		refuse(d, ev->chan, STATUS_REFUSED, "a data channel that no session waits for");
}

static void take_events(void *owner)
{
	struct daemon_transport *t = owner;
	struct daemon *d = t->daemon;
	struct fabric_event ev;
	int err;

	while ((err = fabric_eq_get(t->eq, &ev)) == 1) {
		if (ev.type == FABRIC_EVENT_REQUEST)
			take_request(d, &ev);
		else if (ev.owner)
			daemon_session_event(ev.owner, &ev);
	}
	if (err < 0) {
		log_error("%s: no more connection events: %s", fabric_name(t->fabric),
			strerror(-err));
		poller_remove(&d->poller, &t->watch);
	}
}

/* ---- open ---- */

/* Whether `name` is asked for by the list in `wanted`. */
static bool is_named(const char *wanted, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = wanted; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && !strncmp(at, name, len))
			return true;
	return false;
}

static bool is_automatic(const struct daemon *d)
{
	return !d->settings->fabric || !strcmp(d->settings->fabric, "auto");
}

bool listen_wants(const struct daemon *d, const char *name)
{
	return is_automatic(d) || is_named(d->settings->fabric, name);
}

int listen_open_transport(struct daemon *d, const char *name)
{
	struct daemon_transport *t = &d->transports[d->transport_count];
	struct select_config config = {
		.handshake_ms = (unsigned)d->settings->handshake_timeout_s * 1000,
		.crc = d->settings->crc,
		.inherited = d->settings->inherited,
		.inherited_count = d->settings->inherited_count,
	};
	int err;

	if (d->transport_count == DAEMON_TRANSPORTS_MAX)
		return -ENOSPC;
	*t = (struct daemon_transport){.daemon = d, .watch = {.fd = -1}};
	err = select_open(name, &config, &t->fabric);
	if (err)
		return err;
	err = fabric_eq_new(t->fabric, &t->eq);
	if (err)
		goto err_close;
	err = poller_add(&d->poller, &t->watch, fabric_eq_fd(t->eq), take_events, t);
	if (err)
		goto err_eq;
	d->transport_count++;
	return 0;

err_eq:
	fabric_eq_free(t->eq);
err_close:
	fabric_close(t->fabric);
	return err;
}

static int open_transports(struct daemon *d)
{
	const char *name;

	for (unsigned i = 0; (name = select_name(i)); i++) {
		int err = listen_wants(d, name) ? listen_open_transport(d, name) : 0;

		if (!err)
			continue;
		if (!is_automatic(d) || !select_is_plugged(name)) {
			log_error("fabric %s: %s", name, select_open_text(err));
			return err == -EINVAL ? -EIO : err;
		}
		log_write(err == -ENODEV ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
			"fabric %s is not served: %s", name, select_open_text(err));
	}
	if (!d->transport_count) {
		log_error("no fabric can be served on this host");
		return -ENODEV;
	}
	return 0;
}

static void close_address(struct daemon *d, struct daemon_address *a)
{
	for (unsigned i = 0; i < d->transport_count; i++)
		fabric_listener_free(a->listeners[i]);
	*a = (struct daemon_address){0};
}

/* Whether the others may go on without this transport, on an address where `r` was its error. */
static bool is_spared(
	const struct daemon *d, const struct addr *addr, const char *name, int err, bool any)
{
	char shown[ADDR_TEXT_MAX];

	addr_format((const struct sockaddr *)&addr->ss, shown);
	/* rdma_cm's other word for it */
	if (err == -ENODEV || (err == -EADDRNOTAVAIL && select_is_plugged(name))) {
		log_debug("listen %s: fabric %s: no device has this address", shown, name);
		return true;
	}
	if (err == -EADDRINUSE && any && select_port_is_shared(name)) {
		log_info(
			"listen %s: the TCP port belongs to an RDMA device (iWARP), whose listener "
			"serves the clients of fabric %s there, too",
			shown, name);
		return true;
	}
	if (is_automatic(d) && select_is_plugged(name)) {
		log_warning("listen %s: fabric %s is not served: %s", shown, name, strerror(-err));
		return true;
	}
	return false;
}

/*
 * All transports on one address; port 0 becomes a real one by the first.  Those that have no device
 * there are left out, but one must listen.
 */
static int listen_at(struct daemon *d, struct daemon_address *a, const struct addr *wanted)
{
	struct addr addr = *wanted;
	bool any = false;
	int error = 0;

	*a = (struct daemon_address){0};
	for (unsigned i = 0; i < d->transport_count; i++) {
		struct daemon_transport *t = &d->transports[i];
		int err = fabric_listen(
			t->eq, (struct sockaddr *)&addr.ss, addr.len, &a->listeners[i]);

		if (!err)
			err = fabric_listener_addr(a->listeners[i], &addr.ss);
		if (!err) {
			any = true;
		} else if (is_spared(d, &addr, fabric_name(t->fabric), err, any)) {
			error = error ? error : err;
		} else {
			close_address(d, a);
			/* worth another free port only if this one was had from another fabric */
			return err == -EADDRINUSE && any &&
					       !addr_port((const struct sockaddr *)&wanted->ss)
				       ? -EAGAIN
				       : err;
		}
	}
	if (!any)
		return error;
	a->ss = addr.ss;
	a->len = addr.len;
	return 0;
}

static int listen_on(struct daemon *d, const struct addr *wanted)
{
	char shown[ADDR_TEXT_MAX];
	int err = -EAGAIN;

	if (d->address_count == DAEMON_LISTENERS_MAX)
		return -ENOSPC;
	for (unsigned i = 0; i < PORT_TRIES && err == -EAGAIN; i++)
		err = listen_at(d, &d->addresses[d->address_count], wanted);
	if (!err) {
		d->address_count++;
		return 0;
	}
	addr_format((const struct sockaddr *)&wanted->ss, shown);
	log_error("listen %s: %s", shown,
		err == -ENODEV   ? "no device of the fabrics to serve has this address"
		: err == -EAGAIN ? "no port is free on all fabrics"
				 : strerror(-err));
	return err;
}

int listen_open_fabrics(struct daemon *d)
{
	int err = listen_check(d->settings);

	return err ? err : open_transports(d);
}

int listen_open(struct daemon *d)
{
	struct addr addrs[LISTEN_RESOLVED_MAX];
	const char *text;
	int err = listen_open_fabrics(d);

	if (err)
		return err;
	for (unsigned i = 0; (text = listen_text(d->settings, i)); i++) {
		int count = listen_resolve(d->settings, text, addrs);
		unsigned before = d->address_count;

		if (count < 0)
			return count;
		/* a name may stand for addresses that this host does not have, such as ::1: one
		 * will do */
		for (int k = 0; k < count; k++) {
			if (k && d->address_count > before &&
				!addr_port((struct sockaddr *)&addrs[k].ss))
				addr_set_port((struct sockaddr *)&addrs[k].ss,
					addr_port((struct sockaddr *)&d->addresses[before].ss));
			err = listen_on(d, &addrs[k]);
		}
		if (d->address_count == before)
			return err == -EINVAL ? -EIO : err;
	}
	return listen_devices_start(d);
}

int listen_announce(const struct daemon *d, FILE *out)
{
	for (unsigned i = 0; i < d->address_count; i++) {
		const struct daemon_address *a = &d->addresses[i];
		char shown[ADDR_TEXT_MAX];
		const char *comma = "";

		addr_format((const struct sockaddr *)&a->ss, shown);
		fprintf(out, "ready %s ", shown);
		for (unsigned t = 0; t < d->transport_count; t++)
			if (a->listeners[t]) {
				fprintf(out, "%s%s", comma, fabric_name(d->transports[t].fabric));
				comma = ",";
			}
		fputc('\n', out);
	}
	return fflush(out) ? -errno : 0;
}

void listen_close(struct daemon *d)
{
	listen_devices_stop(d);
	while (d->address_count)
		close_address(d, &d->addresses[--d->address_count]);
}

void listen_fini(struct daemon *d)
{
	listen_close(d);
	while (d->transport_count) {
		struct daemon_transport *t = &d->transports[--d->transport_count];

		poller_remove(&d->poller, &t->watch);
		fabric_eq_free(t->eq);
		fabric_close(t->fabric);
	}
}
