/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/client_connect: see client_connect.h.
 */
#include "rftp/remote/client_connect.h"

#include "proto/message_login.h"
#include "rftp/shell/interrupt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void client_connect_end_ssh(struct client *c)
{
	if (c->over)
		over_ssh_end(c->over);
	free(c->over);
	c->over = NULL;
}

/* The class of a failure to connect: the daemon's own answer tells more than "cannot". */
static enum exit_code connect_code(int error, const struct calls_error *why)
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

static void passed_over(void *ctx, const char *fabric, const char *why)
{
	struct client *c = ctx;

	report_verbose(&c->report, "fabric %s passed over: %s", fabric, why);
}

/* The context of TLS, made when it is first needed and when its files were set to others. */
static int prepare_tls(struct client *c)
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

static void trust_note(void *ctx, const char *text)
{
	struct client *c = ctx;

	report_note(&c->report, "%s", text);
}

static int check_trust(
	void *ctx, const struct tls *tls, const struct sockaddr *address, char why[TLS_WHY_MAX])
{
	return trust_check(ctx, tls, address, why);
}

static void login_note(void *ctx, const char *text)
{
	struct client *c = ctx;

	if (c->settings.verbosity > 1)
		report_verbose(&c->report, "%s", text);
}

void client_connect_peer_fini(struct client_connect_peer *peer)
{
	login_fini(&peer->login);
}

int client_connect_params(struct client *c, const struct url *url, struct calls_params *params,
	struct client_connect_peer *peer)
{
	char why[TLS_WHY_MAX];
	int err = prepare_tls(c);

	if (err)
		return err;
	peer->login = (struct login){
		.settings = &c->settings,
		.host = url->host,
		.port = url->port,
		.user = url->user,
		.cancel_fd = interrupt_fd(),
		.note = login_note,
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
		.note = trust_note,
		.note_ctx = c,
	};
	*params = (struct calls_params){
		.host = url->host,
		.port = url->port,
		.agent = CLIENT_AGENT,
		.fabric = c->settings.fabric,
		.tls = c->tls,
		.trust = check_trust,
		.trust_ctx = &peer->trust,
		.login = login_next,
		.login_ctx = &peer->login,
		.protect = c->settings.protect,
		.ring = c->settings.engine == MESSAGE_ENGINE_PULL,
		.crc = c->settings.crc,
		.connect_timeout_ms = (int)c->settings.connect_timeout_ms,
		.reply_timeout_ms = (int)c->settings.timeout_ms,
		.cancel_fd = interrupt_fd(),
		.passed_over = passed_over,
		.passed_over_ctx = c,
	};
	return 0;
}

/* The daemon does not wait for long: while the user compared keys, or looked for a password, it may
 * have hung up. */
static bool may_be_late(int err, const struct client_connect_peer *peer)
{
	return err && err != -EKEYREJECTED && err != -ENOKEY && err != -ECANCELED &&
	       (peer->trust.asked || peer->login.asked);
}

static void connect_failed(struct client *c, int err, const struct calls_error *why,
	const struct client_connect_peer *peer)
{
	struct text text = {0};

	if (err == -ENOKEY && why->status == STATUS_LOGIN)
		login_explain(&peer->login, &text);
	else
		text_puts(&text, why->text);
	report_error(&c->report, connect_code(err, why), why->status, NULL, text_str(&text));
	text_fini(&text);
}

/* A server for this session alone; then the URL is that of where it listens. */
static int start_ssh(struct client *c, struct url *url)
{
	char why[OVER_SSH_WHY_MAX];
	int err;

	client_connect_end_ssh(c);
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
		client_connect_end_ssh(c);
		return err;
	}
	snprintf(url->host, sizeof url->host, "%s", c->over->host);
	url->port = c->over->port;
	report_verbose(&c->report, "it listens on port %u of %s", url->port, url->host);
	return 0;
}

int client_connect(struct client *c)
{
	const struct calls_info *info;
	struct calls_params params;
	struct client_connect_peer peer;
	struct calls_error why;
	struct url url = {.port = c->port};
	int err;

	snprintf(url.host, sizeof url.host, "%s", c->host);
	snprintf(url.user, sizeof url.user, "%s", c->user);
	url.ssh = c->ssh;
	err = c->ssh ? start_ssh(c, &url) : 0;
	if (err)
		return err;
	err = client_connect_params(c, &url, &params, &peer);
	if (err)
		goto err_ssh;
	c->users = malloc(sizeof *c->users);
	if (!c->users) {
		err = client_no_memory(c);
		goto err_peer;
	}
	*c->users = 1;
	params.ahead = c->ahead;
	params.ahead_ctx = c->ahead_ctx;
	err = calls_open(&params, &c->session, &why);
	if (!c->ssh && may_be_late(err, &peer)) {
		login_again(&peer.login);
		err = calls_open(&params, &c->session, &why);
	}
	if (err) {
		c->session = NULL;
		free(c->users);
		c->users = NULL;
		client_connect_end_ssh(c);
		connect_failed(c, err, &why, &peer);
		goto err_peer;
	}
	client_connect_peer_fini(&peer);
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

err_peer:
	client_connect_peer_fini(&peer);
err_ssh:
	client_connect_end_ssh(c);
	return err;
}
