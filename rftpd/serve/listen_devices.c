/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen_devices: see listen_devices.h.
 *
 * Owns a slow timer.  Most of the time a look finds that nothing changed; then it touches no
 * fabric.  A device that has just come gets its addresses a little later, so a change is followed
 * by several looks.
 */
#include "rftpd/serve/listen_devices.h"

#include "base/addr.h"
#include "fabric/select.h"
#include "rftpd/serve/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOK_S 10
#define LOOKS 6 /* after a change */

static uint64_t stamp_all(const struct daemon *d)
{
	uint64_t stamp = 0;

	for (unsigned i = 0; select_name(i); i++)
		if (listen_wants(d, select_name(i)))
			stamp += select_stamp(select_name(i));
	return stamp;
}

static bool any_lost(const struct daemon *d)
{
	struct sockaddr_storage ignored;

	for (unsigned i = 0; i < d->address_count; i++)
		for (unsigned t = 0; t < d->transport_count; t++) {
			const struct fabric_listener *listener = d->addresses[i].listeners[t];

			if (listener && fabric_listener_addr(listener, &ignored))
				return true;
		}
	return false;
}

/* The fabric's transport, opened if need be; NULL: it has no device. */
static struct daemon_transport *transport_of(struct daemon *d, const char *name)
{
	int err;

	for (unsigned i = 0; i < d->transport_count; i++)
		if (!strcmp(fabric_name(d->transports[i].fabric), name))
			return &d->transports[i];
	err = listen_open_transport(d, name);
	if (!err)
		return &d->transports[d->transport_count - 1];
	log_debug("fabric %s: %s", name, select_open_text(err));
	return NULL;
}

/* An iWARP device that has come wants the TCP port for itself.  Its listener serves the clients of
 * those that give way, too; where it cannot have it all the same, they are next to look. */
static bool give_way(struct daemon *d, struct daemon_address *a)
{
	bool any = false;

	for (unsigned i = 0; i < d->transport_count; i++)
		if (a->listeners[i] &&
			select_port_is_shared(fabric_name(d->transports[i].fabric))) {
			fabric_listener_free(a->listeners[i]);
			a->listeners[i] = NULL;
			any = true;
		}
	return any;
}

static void look_at(struct daemon_transport *t, struct daemon_address *a)
{
	struct fabric_listener **listener = &a->listeners[t - t->daemon->transports];
	const char *name = fabric_name(t->fabric);
	struct sockaddr_storage ignored;
	char shown[ADDR_TEXT_MAX];
	int err;

	if (*listener && !fabric_listener_addr(*listener, &ignored))
		return;
	addr_format((const struct sockaddr *)&a->ss, shown);
	if (*listener)
		log_warning("listen %s: fabric %s has lost its device", shown, name);
	fabric_listener_free(*listener);
	*listener = NULL;
	err = fabric_listen(t->eq, (const struct sockaddr *)&a->ss, a->len, listener);
	if (err == -EADDRINUSE && select_is_plugged(name) && give_way(t->daemon, a))
		err = fabric_listen(t->eq, (const struct sockaddr *)&a->ss, a->len, listener);
	if (!err)
		log_info("listen %s: fabric %s listens now", shown, name);
	else
		log_debug("listen %s: fabric %s: %s", shown, name, strerror(-err));
}

static void look_for(struct daemon *d, const char *name)
{
	struct daemon_transport *t = transport_of(d, name);

	for (unsigned i = 0; t && i < d->address_count; i++)
		look_at(t, &d->addresses[i]);
	if (t && select_is_plugged(name)) /* not before: libraries may print of a host without */
		select_close_gone(name);
}

static void look(void *owner)
{
	struct daemon *d = owner;
	uint64_t count, stamp = stamp_all(d);

	if (read(d->devices.fd, &count, sizeof count) < 0)
		return;
	if (stamp != d->devices.stamp || any_lost(d))
		d->devices.looks = LOOKS;
	d->devices.stamp = stamp;
	if (!d->devices.looks)
		return;
	d->devices.looks--;
	/* the others as well: where an iWARP device has gone, its TCP port is free for soft */
	for (unsigned i = 0; select_name(i); i++)
		if (listen_wants(d, select_name(i)))
			look_for(d, select_name(i));
}

int listen_devices_start(struct daemon *d)
{
	const struct itimerspec every = {{LOOK_S, 0}, {LOOK_S, 0}};
	bool any = false;
	int err = 0;

	for (unsigned i = 0; select_name(i); i++)
		any |= select_is_plugged(select_name(i)) && listen_wants(d, select_name(i));
	if (!any)
		return 0;
	d->devices.stamp = stamp_all(d);
	d->devices.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->devices.fd < 0 || timerfd_settime(d->devices.fd, 0, &every, NULL) < 0)
		err = -errno;
	if (!err)
		err = poller_add(&d->poller, &d->devices.watch, d->devices.fd, look, d);
	if (err)
		log_error("cannot watch for devices: %s", strerror(-err));
	return err == -EINVAL ? -EIO : err;
}

void listen_devices_stop(struct daemon *d)
{
	if (d->devices.fd < 0)
		return;
	poller_remove(&d->poller, &d->devices.watch);
	close(d->devices.fd);
	d->devices.fd = -1;
}
