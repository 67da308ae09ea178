/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/client.c: owns the session and the remote directory.
 */
#include "rftp/remote/client.h"
#include "proto/message_login.h"
#include "rftp/remote/remote_path.h"

#include "base/addr.h"
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

/* The server that was started for the session. */
static void client_end_ssh(struct client *c)
{
	if (c->over)
		over_ssh_end(c->over);
	free(c->over);
	c->over = NULL;
}

static void client_drop(struct client *c)
{
	if (c->users && !--*c->users) {
		calls_close(c->session);
		client_end_ssh(c);
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

/* The class of a failure to connect: the daemon's own answer tells more than "can not". */
static enum exit_code client_connect_code(int error, const struct calls_error *why)
{
	switch (error) {
	case -ECANCELED:
		return EXIT_CODE_INTERRUPTED;
	case -EPROTO:
		return EXIT_CODE_PROTOCOL;
	case -EACCES:
		return exit_code_from_status(why->status);
	case -EKEYREJECTED:
		return EXIT_CODE_UNTRUSTED;
	case -ENOKEY:
		return EXIT_CODE_REFUSED;
	case -ENOMEM:
		return EXIT_CODE_IO;
	default:
		return EXIT_CODE_CONNECT;
	}
}

static void client_passed_over(void *ctx, const char *fabric, const char *why)
{
	struct client *c = ctx;

	report_verbose(&c->report, "fabric %s passed over: %s", fabric, why);
}

/* The context of TLS, made when it is first needed and when its files were set to others. */
static int client_tls(struct client *c)
{
	const struct settings *s = &c->settings;
	const struct tls_files files = {
		.ca = *s->ca ? s->ca : NULL,
		.certificate = *s->cert ? s->cert : NULL,
		.key = !*s->cert ? NULL
		       : *s->key ? s->key
				 : s->cert,
	};
	struct text names = {0};
	char why[TLS_WHY_MAX];
	int err;

	text_printf(&names, "%s\n%s\n%s", s->ca, s->cert, s->key);
	if (c->tls && !strcmp(c->tls_files, text_str(&names))) {
		text_fini(&names);
		return 0;
	}
	tls_context_free(c->tls);
	c->tls = NULL;
	free(c->tls_files);
	c->tls_files = text_take(&names);
	if (!c->tls_files)
		return client_no_memory(c);
	err = tls_context_new_client(&files, &c->tls, why);
	if (err)
		report_error(&c->report, EXIT_CODE_USAGE, status_from_errno(err), NULL, why);
	return err;
}

static void client_trust_note(void *ctx, const char *text)
{
	struct client *c = ctx;

	report_note(&c->report, "%s", text);
}

static int client_trust(
	void *ctx, const struct tls *tls, const struct sockaddr *address, char why[TLS_WHY_MAX])
{
	return trust_check(ctx, tls, address, why);
}

static void client_login_note(void *ctx, const char *text)
{
	struct client *c = ctx;

	if (c->settings.verbosity > 1)
		report_verbose(&c->report, "%s", text);
}

void client_peer_fini(struct client_peer *peer)
{
	login_fini(&peer->login);
}

int client_params(struct client *c, const struct url *url, struct calls_params *params,
	struct client_peer *peer)
{
	char why[TLS_WHY_MAX];
	int err = client_tls(c);

	if (err)
		return err;
	peer->login = (struct login){
		.settings = &c->settings,
		.host = url->host,
		.port = url->port,
		.user = url->user,
		.cancel_fd = interrupt_fd(),
		.note = client_login_note,
		.note_ctx = c,
		.once_key = url->ssh ? c->over->key : NULL,
	};
	err = login_init(&peer->login, why);
	if (err) {
		login_fini(&peer->login);
		report_error(&c->report, EXIT_CODE_USAGE, status_from_errno(err), NULL, why);
		return err;
	}
	peer->trust = (struct trust){
		.host = url->host,
		.port = url->port,
		.policy = c->settings.host_keys,
		/* that came through ssh, too */
		.fingerprint = url->ssh ? c->over->fingerprint : c->settings.host_key,
		.has_ca = *c->settings.ca,
		.known_hosts = c->settings.known_hosts,
		.cancel_fd = interrupt_fd(),
		.note = client_trust_note,
		.note_ctx = c,
	};
	*params = (struct calls_params){
		.host = url->host,
		.port = url->port,
		.agent = CLIENT_AGENT,
		.fabric = c->settings.fabric,
		.tls = c->tls,
		.trust = client_trust,
		.trust_ctx = &peer->trust,
		.login = login_next,
		.login_ctx = &peer->login,
		.protect = c->settings.protect,
		.ring = c->settings.engine == MESSAGE_ENGINE_PULL,
		.crc = c->settings.crc,
		.connect_timeout_ms = (int)c->settings.connect_timeout_ms,
		.reply_timeout_ms = (int)c->settings.timeout_ms,
		.cancel_fd = interrupt_fd(),
		.passed_over = client_passed_over,
		.passed_over_ctx = c,
	};
	return 0;
}

/* The daemon does not wait for long: while the user compared keys, or looked for a password, it may
 * have hung up. */
static bool client_may_be_late(int err, const struct client_peer *peer)
{
	return err && err != -EKEYREJECTED && err != -ENOKEY && err != -ECANCELED &&
	       (peer->trust.asked || peer->login.asked);
}

static void client_connect_failed(
	struct client *c, int err, const struct calls_error *why, const struct client_peer *peer)
{
	struct text text = {0};

	if (err == -ENOKEY && why->status == STATUS_LOGIN)
		login_explain(&peer->login, &text);
	else
		text_puts(&text, why->text);
	report_error(&c->report, client_connect_code(err, why), why->status, NULL, text_str(&text));
	text_fini(&text);
}

/* A server for this session alone; then the URL is that of where it listens. */
static int client_start_ssh(struct client *c, struct url *url)
{
	char why[OVER_SSH_WHY_MAX];
	int err;

	client_end_ssh(c);
	c->over = calloc(1, sizeof *c->over);
	if (!c->over)
		return client_no_memory(c);
	report_verbose(&c->report, "starting %s --serve-once there with %s", c->settings.rftpd_path,
		c->settings.ssh);
	err = over_ssh_start(
		c->over, url, c->settings.ssh, c->settings.rftpd_path, interrupt_fd(), why);
	if (err) {
		report_error(&c->report,
			err == -ECANCELED ? EXIT_CODE_INTERRUPTED : EXIT_CODE_CONNECT,
			status_from_errno(err), url->host, why);
		client_end_ssh(c);
		return err;
	}
	snprintf(url->host, sizeof url->host, "%s", c->over->host);
	url->port = c->over->port;
	report_verbose(&c->report, "it listens on port %u of %s", url->port, url->host);
	return 0;
}

static int client_connect(struct client *c)
{
	const struct calls_info *info;
	struct calls_params params;
	struct client_peer peer;
	struct calls_error why;
	struct url url = {.port = c->port};
	int err;

	snprintf(url.host, sizeof url.host, "%s", c->host);
	snprintf(url.user, sizeof url.user, "%s", c->user);
	url.ssh = c->ssh;
	err = c->ssh ? client_start_ssh(c, &url) : 0;
	if (err)
		return err;
	err = client_params(c, &url, &params, &peer);
	if (err)
		return err;
	c->users = malloc(sizeof *c->users);
	if (!c->users)
		return client_no_memory(c);
	*c->users = 1;
	params.ahead = c->ahead;
	params.ahead_ctx = c->ahead_ctx;
	err = calls_open(&params, &c->session, &why);
	if (!c->ssh && client_may_be_late(err, &peer)) {
		login_again(&peer.login);
		err = calls_open(&params, &c->session, &why);
	}
	if (err) {
		c->session = NULL;
		free(c->users);
		c->users = NULL;
		client_end_ssh(c);
		client_connect_failed(c, err, &why, &peer);
		client_peer_fini(&peer);
		return err;
	}
	client_peer_fini(&peer);
	info = calls_info(c->session);
	report_verbose(&c->report, "connected to %s: %s%s, rtt %.3f ms", info->address, info->agent,
		info->read_only ? " (read-only)" : "", (double)info->rtt_ns / 1e6);
	report_verbose(&c->report, "logged in as %s (%s)", *info->user ? info->user : "anonymous",
		message_login_name(info->method));
	report_verbose(&c->report, "fabric %s (%s): %s", info->fabric,
		c->settings.fabric[0] && !strchr(c->settings.fabric, ',')
			? "asked for"
			: "the best that connected",
		info->description);
	report_verbose(&c->report, "control channel: %s%s; host key %s; blocks: %s", info->security,
		info->ring ? ", replies read" : "", info->host_key,
		message_protect_name(info->protect));
	return 0;
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

const char *client_scheme(const struct client *c)
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

int client_report(struct client *c, const char *object, int error)
{
	const struct calls_error *why = c->session ? calls_error(c->session) : NULL;
	struct text text = {0};

	if (why && why->status && error == -ENOMEM && why->status != STATUS_NO_MEMORY)
		why = NULL; /* ours, not the session's */
	if (!why || !why->status) {
		report_error(&c->report, EXIT_CODE_OK, status_from_errno(error), object, NULL);
		return error;
	}
	if (calls_lost(c->session)) /* the status says less than the text */
		text_puts(&text, why->text);
	else
		report_reason(&text, why->status, why->text);
	report_error(&c->report, EXIT_CODE_OK, why->status, object, text_str(&text));
	text_fini(&text);
	if (calls_lost(c->session))
		client_drop(c);
	return error;
}
