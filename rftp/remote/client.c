/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/client.c: owns the session and the remote directory.
 */
#include "rftp/remote/client.h"

#include "base/addr.h"
#include "rftp/remote/client_connect.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int client_init(struct client *c, const struct settings *settings)
{
	*c = (struct client){.settings = *settings, .cancel_fd = -1};
	pthread_mutex_init(&c->own_lock, NULL);
	c->lock = &c->own_lock;
	client_lock(c);
	report_init(&c->report, &c->settings);
	c->cwd = strdup("/");
	c->previous = strdup("/");
	return c->cwd && c->previous ? 0 : -ENOMEM;
}

static void client_drop(struct client *c)
{
	if (c->users && !--*c->users) {
		calls_close(c->session);
		client_connect_end_ssh(c);
		free(c->users);
	}
	c->over = NULL;
	c->users = NULL;
	c->session = NULL;
}

void client_fini(struct client *c)
{
	client_drop(c);
	client_unlock(c);
	pthread_mutex_destroy(&c->own_lock);
	tls_context_free(c->tls);
	free(c->tls_files);
	free(c->host);
	free(c->user);
	free(c->cwd);
	free(c->previous);
	*c = (struct client){0};
}

/* ---- clones ---- */

static void client_queued(void *ctx, const struct message_queued *queued)
{
	line_queued(ctx, queued);
}

void client_lock(const struct client *c)
{
	pthread_mutex_lock(c->lock);
}

void client_unlock(const struct client *c)
{
	pthread_mutex_unlock(c->lock);
}

int client_clone(struct client *c, unsigned transfer, struct client *out)
{
	*out = (struct client){
		.settings = c->settings,
		.session = c->session,
		.users = c->users,
		.over = c->over,
		.ssh = c->ssh,
		.transfer = transfer,
		.host = strdup(c->host),
		.user = strdup(c->user ? c->user : ""),
		.port = c->port,
		.cwd = strdup(c->cwd),
		.previous = strdup(c->previous),
		.stdin_taken = true,
		.lock = c->lock,
		.is_clone = true,
		.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	++*out->users;
	report_init(&out->report, &out->settings);
	if (out->host && out->user && out->cwd && out->previous && out->cancel_fd >= 0)
		return 0;
	client_clone_fini(out);
	return client_no_memory(c);
}

void client_clone_fini(struct client *c)
{
	client_drop(c);
	if (c->cancel_fd >= 0)
		close(c->cancel_fd);
	free(c->host);
	free(c->user);
	free(c->cwd);
	free(c->previous);
}

void client_hear_queue(struct client *c)
{
	calls_on_queued(c->session, client_queued, c);
}

void client_cancel(const struct client *c)
{
	const uint64_t one = 1;

	if (write(c->cancel_fd, &one, sizeof one) < 0) {
		/* it is readable all the same */
	}
}

int client_cancel_fd(const struct client *c)
{
	return c->is_clone ? c->cancel_fd : interrupt_fd();
}

bool client_is_cancelled(const struct client *c)
{
	struct pollfd fd = {c->cancel_fd, POLLIN, 0};

	return c->is_clone ? poll(&fd, 1, 0) > 0 : interrupt_signal();
}

int client_no_memory(struct client *c)
{
	report_error(&c->report, EXIT_CODE_OK, STATUS_NO_MEMORY, NULL, NULL);
	return -ENOMEM;
}

static int client_go_home(struct client *c)
{
	char *home = strdup(calls_info(c->session)->home);

	if (!home)
		return -ENOMEM;
	free(c->cwd);
	c->cwd = home;
	return 0;
}

int client_place(struct client *c, struct url *url)
{
	const char *home = c->session ? calls_info(c->session)->home : "/";
	char *path, *pattern;

	if (!url->ssh)
		return 0;
	path = remote_join(home, url->path + 1);
	pattern = remote_join_pattern(home, url->pattern + 1);
	if (!path || !pattern) {
		free(path);
		free(pattern);
		return client_no_memory(c);
	}
	url_fini(url);
	url->path = path;
	url->pattern = pattern;
	return 0;
}

static const char *client_scheme(const struct client *c)
{
	return c->ssh ? "ssh://" : "rftp://";
}

int client_open(struct client *c, const struct url *url)
{
	char *name = strdup(url->host), *user = strdup(url->user), *top = strdup("/"),
	     *before = strdup("/");
	int err;

	if (!name || !user || !top || !before) {
		free(name);
		free(user);
		free(top);
		free(before);
		return client_no_memory(c);
	}
	client_close(c);
	c->host = name;
	c->user = user;
	c->port = url->port;
	c->ssh = url->ssh;
	free(c->cwd);
	free(c->previous);
	c->cwd = top;
	c->previous = before;
	err = client_connect(c);
	if (!err && c->ssh && client_go_home(c))
		err = client_no_memory(c);
	if (err)
		client_close(c); /* a server that was never reached is not taken up again */
	return err;
}

void client_close(struct client *c)
{
	client_drop(c);
	free(c->host);
	free(c->user);
	c->host = c->user = NULL;
}

void client_server(const struct client *c, struct text *out)
{
	for (const char *s = c->user; *s; s++)
		if (strchr("%@:/*?[]\\", *s) || (unsigned char)*s <= ' ' ||
			(unsigned char)*s >= 0x7f)
			text_printf(out, "%%%02X", (unsigned char)*s);
		else
			text_putc(out, *s);
	if (*c->user)
		text_putc(out, '@');
	text_printf(out, strchr(c->host, ':') ? "[%s]" : "%s", c->host);
	if (c->port && c->port != ADDR_DEFAULT_PORT)
		text_printf(out, ":%u", c->port);
}

static void client_note(struct client *c, const char *before, const char *behind)
{
	struct text server = {0};

	client_server(c, &server);
	report_note(&c->report, "%s %s %s", before, text_str(&server), behind);
	text_fini(&server);
}

bool client_check(struct client *c)
{
	if (!c->session || !calls_check(c->session))
		return false;
	client_drop(c);
	if (c->interactive)
		client_note(c, "connection to", "lost; the next command connects again");
	return true;
}

void client_url(const struct client *c, const char *path, struct text *out)
{
	text_puts(out, client_scheme(c));
	client_server(c, out);
	if (c->ssh)
		text_putc(out, '/');
	for (; *path; path++) {
		if (strchr("%*?[]\\", *path) || (unsigned char)*path <= ' ' ||
			(unsigned char)*path >= 0x7f)
			text_printf(out, "%%%02X", (unsigned char)*path);
		else
			text_putc(out, *path);
	}
}

struct calls *client_session(struct client *c)
{
	client_check(c);
	if (c->session && calls_info(c->session)->protect >= c->settings.protect) {
		/* `set engine pull`; while a job has the session, too, it goes on as it is.  One
		 * that is lost by it tells at the next request */
		if (c->settings.engine == MESSAGE_ENGINE_PULL && !c->is_clone && *c->users == 1)
			(void)calls_ring(c->session);
		return c->session;
	}
	if (c->session) { /* `set protect` asks for more than was agreed on */
		client_drop(c);
		return client_connect(c) ? NULL : c->session;
	}
	if (c->is_clone) {
		report_error(&c->report, EXIT_CODE_OK, STATUS_DISCONNECTED, NULL, NULL);
		return NULL;
	}
	if (!c->host) {
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_DISCONNECTED, NULL,
			"not connected: use open HOST first");
		return NULL;
	}
	if (client_connect(c))
		return NULL;
	client_note(c, "connected to", "again");
	return c->session;
}

int client_after_transfer(struct calls *calls, int error, const struct transfer_stats *stats)
{
	const struct calls_ending ending = {
		.lost = stats->verdict.scope == VERDICT_SESSION,
		.status = stats->verdict.status,
		.text = stats->verdict.text,
	};

	return calls_after_transfer(calls, error, &ending);
}

bool client_is_gone(const struct client *c)
{
	return !c->session || calls_lost(c->session);
}

int client_report(struct client *c, const char *object, int error)
{
	const struct calls_error *why = c->session ? calls_error(c->session) : NULL;
	const char *said;
	struct text text = {0};

	if (why && why->status && error == -ENOMEM && why->status != STATUS_NO_MEMORY)
		why = NULL; /* ours, not the session's */
	if (!why || !why->status) {
		report_error(&c->report, EXIT_CODE_OK, status_from_errno(error), object, NULL);
		return error;
	}
	said = why->text;
	if (c->side) { /* which comes between the object and what is said of it */
		text_printf(&text, "%s: ", c->side);
		if (object && !strncmp(said, object, strlen(object)) &&
			!strncmp(said + strlen(object), ": ", 2))
			said += strlen(object) + 2;
	}
	if (calls_lost(c->session)) /* the status says less than the text */
		text_puts(&text, said);
	else
		report_reason(&text, why->status, said);
	report_error(&c->report, EXIT_CODE_OK, why->status, object, text_str(&text));
	text_fini(&text);
	if (calls_lost(c->session))
		client_drop(c);
	return error;
}
