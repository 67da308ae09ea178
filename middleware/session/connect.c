/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/connect.c: owns nothing that outlives a call.
 */
#include "session/connect.h"

#include "base/addr.h"
#include "base/worker.h"
#include "fabric/select.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECT_ADDRESSES 16u
#define CONNECT_FABRICS 4u
/* An address that another fabric may still reach: RDMA's messages are dropped without a word by
 * hosts and firewalls that know TCP only, and people wait. */
#define CONNECT_TRY_MS 3000

struct connect {
	const struct calls_params *params;
	struct addr addresses[CONNECT_ADDRESSES];
	size_t count;
	struct fabric *fabric;
	struct link *link;
	char *address;
	int timeout_ms; /* of one attempt */
	int error;      /* of the most telling attempt with this fabric; 0: none */
	struct calls_error why;
};

/*
 * One attempt, in a thread of its own: connecting blocks, and a person who presses Ctrl-C wants the
 * prompt back now.  An attempt that nobody waits for any more cleans up after itself.
 */
struct attempt {
	struct worker worker;
	struct fabric *fabric;
	struct sockaddr_storage address;
	struct tls_context *tls; /* a reference */
	char *host;
	int timeout_ms;
	struct link *link;
	uint16_t status;
	int error;
	int done_fd; /* eventfd: the thread is through */
	pthread_mutex_t lock;
	bool done, abandoned;
};

static void attempt_free(struct attempt *a)
{
	if (a->done_fd >= 0)
		close(a->done_fd);
	pthread_mutex_destroy(&a->lock);
	tls_context_free(a->tls);
	free(a->host);
	free(a);
}

static void attempt_run(void *arg)
{
	struct attempt *a = arg;
	const uint64_t one = 1;
	bool abandoned;

	a->error = link_connect(a->fabric,
		&(struct link_target){
			.dst = (const struct sockaddr *)&a->address,
			.tls = a->tls,
			.host = a->host,
		},
		a->timeout_ms, &a->link, &a->status);
	pthread_mutex_lock(&a->lock);
	a->done = true;
	abandoned = a->abandoned;
	if (write(a->done_fd, &one, sizeof one) < 0) {
		/* a new eventfd takes a 1 */
	}
	pthread_mutex_unlock(&a->lock);
	if (abandoned) {
		if (!a->error)
			link_free(a->link);
		fabric_close(a->fabric);
		attempt_free(a);
	}
}

/* Whether it was done before it was let go of. */
static bool attempt_abandon(struct attempt *a)
{
	bool done;

	pthread_mutex_lock(&a->lock);
	done = a->done;
	a->abandoned = !done;
	if (!done)
		worker_detach(&a->worker);
	pthread_mutex_unlock(&a->lock);
	return done;
}

/*
 * link_connect that the cancel_fd ends: -ECANCELED; the fabric is then the attempt's, and NULL
 * here.
 */
static int attempt_connect(
	struct connect *c, const struct addr *address, struct link **link, uint16_t *status)
{
	struct attempt *a = calloc(1, sizeof *a);
	struct pollfd fds[2] = {{-1, POLLIN, 0}, {c->params->cancel_fd, POLLIN, 0}};
	int err = 0;

	if (!a)
		return -ENOMEM;
	a->fabric = c->fabric;
	a->address = address->ss;
	a->tls = tls_context_ref(c->params->tls);
	a->host = strdup(c->params->host);
	a->timeout_ms = c->timeout_ms;
	pthread_mutex_init(&a->lock, NULL);
	a->done_fd = fds[0].fd = eventfd(0, EFD_CLOEXEC);
	if (a->done_fd < 0)
		err = -errno;
	else if (!a->host)
		err = -ENOMEM;
	if (!err)
		err = worker_start(&a->worker, "rftp-connect", attempt_run, a);
	if (err) {
		attempt_free(a);
		return err;
	}
	while (poll(fds, 2, -1) < 0) /* interrupted, or the kernel has no memory right now */
		;
	if (!fds[0].revents && !attempt_abandon(a)) {
		c->fabric = NULL;
		return -ECANCELED;
	}
	worker_stop(&a->worker);
	err = a->error;
	*link = a->link;
	*status = a->status;
	attempt_free(a);
	return err;
}

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
	c->why.status = status;
	va_start(ap, format);
	vsnprintf(c->why.text, sizeof c->why.text, format, ap);
	va_end(ap);
}

static int connect_resolve(struct connect *c)
{
	const char *host = c->params->host;
	int err = addr_resolve(
		host, c->params->port, false, c->addresses, CONNECT_ADDRESSES, &c->count);

	if (err == -EAGAIN)
		connect_failed(
			c, err, STATUS_NOT_FOUND, "%s: the name service does not answer now", host);
	else if (err == -ENOMEM)
		connect_failed(c, err, STATUS_NO_MEMORY, "%s", status_text(STATUS_NO_MEMORY));
	else if (err)
		connect_failed(c, err, STATUS_NOT_FOUND, "%s: no such host", host);
	return err;
}

static void connect_explain(struct connect *c, const char *fabric, const struct addr *address,
	int error, uint16_t status)
{
	char why[SELECT_WHY_MAX];

	switch (error) {
	case -EACCES:
		connect_failed(c, error, status, "%s: refused by the server: %s", c->address,
			status == STATUS_LIMIT
				? "over a limit: it has as many sessions as it allows, in "
				  "all or of one address"
				: status_text(status));
		break;
	case -ECONNREFUSED:
		connect_failed(c, error, STATUS_REFUSED,
			"%s: connection refused: no rftpd listens there", c->address);
		break;
	case -ETIMEDOUT:
		connect_failed(c, error, STATUS_TIMEOUT, "%s: no answer within %d s", c->address,
			c->timeout_ms / 1000);
		break;
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		connect_failed(
			c, error, STATUS_DISCONNECTED, "%s: no route to the host", c->address);
		break;
	case -ENODEV:
		select_explain(fabric, (const struct sockaddr *)&address->ss, why);
		connect_failed(c, error, STATUS_UNSUPPORTED, "%s: %s", c->address, why);
		break;
	case -ENOMEM:
		connect_failed(c, error, STATUS_NO_MEMORY, "%s: %s", c->address,
			select_is_plugged(fabric)
				? "no memory can be registered with the device (see ulimit -l)"
				: status_text(STATUS_NO_MEMORY));
		break;
	case -ECONNABORTED:
		connect_failed(c, error, STATUS_DISCONNECTED,
			"%s: the connection was lost while it was set up", c->address);
		break;
	case -ECONNRESET: /* as one does that ends at this moment */
	case -ENOTCONN:
		connect_failed(c, error, STATUS_DISCONNECTED,
			"%s: the connection was closed before it was answered", c->address);
		break;
	case -EPROTO:
	case -EBADMSG:
		connect_failed(c, -EPROTO, STATUS_PROTOCOL, "%s: answers, but not as an rftpd does",
			c->address);
		break;
	default:
		connect_failed(
			c, error, status_from_errno(error), "%s: %s", c->address, strerror(-error));
	}
}

/* All addresses over one fabric.  Whether one connected. */
static bool connect_fabric(struct connect *c, const char *name)
{
	struct select_config config = {.crc = c->params->crc};
	int err = select_open(name, &config, &c->fabric);

	if (err) {
		/* whatever it is, less than what a server says */
		connect_failed(c, -ENODEV, status_from_errno(err), "%s", select_open_text(err));
		return false;
	}
	for (size_t i = 0; i < c->count; i++) {
		const struct sockaddr *sa = (const struct sockaddr *)&c->addresses[i].ss;
		char why[SELECT_WHY_MAX];
		uint16_t status = 0;

		addr_format(sa, c->address);
		if (select_reaches(name, sa, why)) {
			connect_failed(c, -ENODEV, STATUS_UNSUPPORTED, "%s: %s", c->address, why);
			continue;
		}
		err = attempt_connect(c, &c->addresses[i], &c->link, &status);
		if (!err)
			return true;
		if (err == -ECANCELED) {
			connect_failed(c, err, STATUS_CANCELLED, "%s: interrupted", c->address);
			break;
		}
		connect_explain(c, name, &c->addresses[i], err, status);
	}
	fabric_close(c->fabric);
	return false;
}

/* The fabrics in the order of a list such as "verbs,soft"; what is not known is left out. */
static unsigned connect_listed(const char *list, const char *order[CONNECT_FABRICS])
{
	unsigned n = 0;

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t len = strcspn(at, ",");
		const char *name;

		for (unsigned i = 0; (name = select_name(i)) && n < CONNECT_FABRICS; i++)
			if (strlen(name) == len && !strncmp(name, at, len))
				order[n++] = name;
	}
	return n;
}

/* All fabrics, best first; one that is slow on the way to the host is the last resort. */
static unsigned connect_order(const struct connect *c, const char *order[CONNECT_FABRICS])
{
	const struct sockaddr *sa = (const struct sockaddr *)&c->addresses[0].ss;
	const struct calls_params *params = c->params;
	const char *last[CONNECT_FABRICS], *name;
	char why[SELECT_WHY_MAX];
	unsigned n = 0, lasts = 0;

	if (params->fabric[0])
		return connect_listed(params->fabric, order);
	for (unsigned i = 0; (name = select_name(i)) && n + lasts < CONNECT_FABRICS; i++) {
		if (!select_name(i + 1) || !select_comes_last(name, sa, why)) {
			order[n++] = name;
			continue;
		}
		last[lasts++] = name;
		if (params->passed_over)
			params->passed_over(params->passed_over_ctx, name, why);
	}
	for (unsigned i = 0; i < lasts; i++)
		order[n++] = last[i];
	return n;
}

static void connect_outcome(const struct connect *c, const char *name, struct calls_error *error)
{
	*error = c->why;
	if (c->error == -ENODEV) /* nothing of the network: of which fabric says more */
		snprintf(error->text, sizeof error->text, "fabric %s: %.*s", name,
			(int)(sizeof error->text - strlen(name) - sizeof "fabric : "), c->why.text);
}

/* With one fabric after the other, until the daemon or the user says that it is of no use. */
static bool connect_fabrics(struct connect *c, struct calls_error *error, int *outcome)
{
	const struct calls_params *params = c->params;
	const char *order[CONNECT_FABRICS];
	unsigned count = connect_order(c, order);

	*outcome = -ENODEV;
	for (unsigned i = 0; i < count; i++) {
		const char *name = order[i];
		bool more = i + 1 < count;

		c->error = 0;
		c->timeout_ms = more && params->connect_timeout_ms > CONNECT_TRY_MS
					? CONNECT_TRY_MS
					: params->connect_timeout_ms;
		if (connect_fabric(c, name))
			return true;
		/* of several that could not be opened the last says most: soft needs no device */
		if (connect_weight(c->error) > connect_weight(*outcome) || *outcome == -ENODEV) {
			*outcome = c->error;
			connect_outcome(c, name, error);
		}
		if (c->error == -ECANCELED || c->error == -EACCES)
			break;
		if (more && params->passed_over)
			params->passed_over(params->passed_over_ctx, name, c->why.text);
	}
	return false;
}

int connect_any(const struct calls_params *params, struct fabric **fabric, struct link **link,
	char address[64], struct calls_error *error)
{
	struct connect c = {.params = params, .address = address};
	int err = connect_resolve(&c);

	*error = c.why;
	if (err)
		return c.error;
	if (!connect_fabrics(&c, error, &err))
		return err;
	*error = (struct calls_error){0};
	*fabric = c.fabric;
	*link = c.link;
	return 0;
}
