/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/connect.c: owns nothing that outlives a call.  Does not know what is said over the link.
 */
#include "rftp/connect.h"

#include "base/addr.h"
#include "fabric/select.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_ADDRESSES 16u

struct connect {
	const struct session_params *params;
	struct addr addresses[CONNECT_ADDRESSES];
	size_t count;
	struct fabric *fabric;
	struct link *link;
	char *address;
	int error;  /* of the most telling attempt so far; 0: none */
	struct session_error *why;
};

/* "no device here" tells less than "nobody listens", and that less than a daemon's own answer. */
static int connect_weight(int error)
{
	switch (error) {
	case 0:
		return 0;
	case -ENODEV:
		return 1;
	case -ECANCELED:
		return 9;
	case -EACCES:
		return 4;
	case -EPROTO:
		return 3;
	default:
		return 2;
	}
}

static void connect_failed(struct connect *c, int error, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void connect_failed(struct connect *c, int error, uint16_t status, const char *format, ...)
{
	va_list ap;

	if (connect_weight(error) <= connect_weight(c->error))
		return;
	c->error = error;
	c->why->status = status;
	va_start(ap, format);
	vsnprintf(c->why->text, sizeof c->why->text, format, ap);
	va_end(ap);
}

static bool connect_cancelled(const struct connect *c)
{
	struct pollfd fd = {c->params->cancel_fd, POLLIN, 0};

	return c->params->cancel_fd >= 0 && poll(&fd, 1, 0) > 0;
}

static int connect_resolve(struct connect *c)
{
	const char *host = c->params->host;
	int err = addr_resolve(host, c->params->port, false, c->addresses, CONNECT_ADDRESSES,
		&c->count);

	if (err == -EAGAIN)
		connect_failed(c, err, STATUS_NOT_FOUND, "%s: the name service does not answer now",
			host);
	else if (err == -ENOMEM)
		connect_failed(c, err, STATUS_NO_MEMORY, "%s", status_text(STATUS_NO_MEMORY));
	else if (err)
		connect_failed(c, err, STATUS_NOT_FOUND, "%s: no such host", host);
	return err;
}

static void connect_explain(struct connect *c, const char *fabric, int error, uint16_t status)
{
	switch (error) {
	case -EACCES:
		connect_failed(c, error, status, "%s: refused by the server: %s", c->address,
			status_text(status));
		break;
	case -ECONNREFUSED:
		connect_failed(c, error, STATUS_REFUSED,
			"%s: connection refused: no rftpd listens there", c->address);
		break;
	case -ETIMEDOUT:
		connect_failed(c, error, STATUS_TIMEOUT, "%s: no answer within %d s", c->address,
			c->params->connect_timeout_ms / 1000);
		break;
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		connect_failed(c, error, STATUS_DISCONNECTED, "%s: no route to the host",
			c->address);
		break;
	case -ENODEV:
		connect_failed(c, error, STATUS_UNSUPPORTED,
			"%s: fabric %s has no device that leads there", c->address, fabric);
		break;
	case -EPROTO:
	case -EBADMSG:
	case -ECONNRESET:
	case -ENOTCONN:
		connect_failed(c, -EPROTO, STATUS_PROTOCOL,
			"%s: answers, but not as an rftpd does", c->address);
		break;
	default:
		connect_failed(c, error, status_from_errno(error), "%s: %s", c->address,
			strerror(-error));
	}
}

/* All addresses over one fabric.  Whether one connected. */
static bool connect_fabric(struct connect *c, const char *name)
{
	struct select_config config = {.crc = c->params->crc};
	int err = select_open(name, &config, &c->fabric);

	if (err) {
		connect_failed(c, err, status_from_errno(err), "fabric %s: %s", name,
			err == -ENODEV ? "no device on this host" : strerror(-err));
		return false;
	}
	for (size_t i = 0; i < c->count; i++) {
		const struct sockaddr *sa = (const struct sockaddr *)&c->addresses[i].ss;
		uint16_t status = 0;

		addr_format(sa, c->address);
		if (connect_cancelled(c)) {
			connect_failed(c, -ECANCELED, STATUS_CANCELLED, "interrupted");
			break;
		}
		err = link_connect(c->fabric, sa, NULL, c->params->connect_timeout_ms, &c->link,
			&status);
		if (!err)
			return true;
		connect_explain(c, name, err, status);
	}
	fabric_close(c->fabric);
	return false;
}

int connect_any(const struct session_params *params, struct fabric **fabric, struct link **link,
	char address[64], struct session_error *error)
{
	struct connect c = {.params = params, .address = address, .why = error};
	bool connected = false;

	if (connect_resolve(&c))
		return c.error;
	for (unsigned i = 0; select_name(i) && !connected && c.error != -ECANCELED; i++)
		if (!params->fabric[0] || !strcmp(params->fabric, select_name(i)))
			connected = connect_fabric(&c, select_name(i));
	if (!connected)
		return c.error ? c.error : -ENODEV;
	*fabric = c.fabric;
	*link = c.link;
	return 0;
}
