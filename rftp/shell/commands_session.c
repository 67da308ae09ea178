/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_session.c: the commands about the connection, the place in it, and settings.
 */
#include "proto/message_login.h"
#include "rftp/shell/commands_impl.h"

#include "rftp/doctor/doctor.h"
#include "rftp/ui/escape.h"
#include "rftp/remote/remote_path.h"
#include "rftp/remote/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Goes to an absolute path, if it is a directory. */
static int session_go(struct client *c, char *path)
{
	struct calls *s = client_session(c);
	struct message_attr attr;
	int err = s ? 0 : -ENOTCONN;

	if (!err) {
		err = calls_stat(s, path, &attr);
		if (err)
			client_report(c, path, err);
	}
	if (!err && attr.type != MESSAGE_DIRECTORY) {
		err = -ENOTDIR;
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_DIRECTORY, path, NULL);
	}
	if (err) {
		free(path);
		return err;
	}
	free(c->previous);
	c->previous = c->cwd;
	c->cwd = path;
	return 0;
}

/* What is asked for first, as far as it is known before the server has said anything. */
static void session_ahead(void *ctx, struct calls *calls)
{
	const struct client *c = ctx;

	if (c->opening[1])
		calls_stat_ahead(calls, c->opening);
	if (c->lists_first)
		calls_list_ahead(calls, c->opening);
}

static int session_open(struct client *c, const struct url *url)
{
	int err;

	if (!url->ssh) { /* else it begins where the server says */
		c->opening = remote_normalize(url->path);
		c->ahead = session_ahead;
		c->ahead_ctx = c;
	}
	err = client_open(c, url);
	c->ahead = NULL;
	c->opening = NULL;
	c->lists_first = false;
	return err;
}

int command_open(struct client *c, const struct lexer_command *line)
{
	const char *name = line->words[1].text, *why = "";
	struct text text = {0};
	struct url url;
	char *given;
	int err;

	if (!url_is(name) && !url_is_foreign(name))
		text_puts(&text, "rftp://");
	text_puts(&text, name);
	given = text_take(&text);
	if (!given)
		return client_no_memory(c);
	err = url_parse(given, &url, &why);
	free(given);
	if (err) {
		report_error(&c->report, err == -ENOMEM ? EXIT_CODE_OK : EXIT_CODE_USAGE,
			status_from_errno(err), name, why);
		return err;
	}
	err = session_open(c, &url);
	if (!err && url.path[1])
		err = client_place(c, &url);
	if (!err && url.path[1] && strcmp(remote_normalize(url.path), "/")) {
		err = session_go(c, url.path);
		url.path = NULL;
	}
	url_fini(&url);
	return err;
}

int command_close(struct client *c, const struct lexer_command *line)
{
	(void)line;
	client_close(c);
	return 0;
}

int command_cd(struct client *c, const struct lexer_command *line)
{
	char *path;

	if (line->count > 1 && !strcmp(line->words[1].text, "-"))
		path = strdup(c->previous);
	else
		path = remote_join(c->cwd, line->count > 1 ? line->words[1].text : "/");
	if (!path)
		return client_no_memory(c);
	return session_go(c, remote_normalize(path));
}

int command_status(struct client *c, const struct lexer_command *line)
{
	struct calls *s = client_session(c);
	const struct calls_info *info;
	struct text out = {0}, server = {0};

	(void)line;
	if (!s)
		return -ENOTCONN;
	info = calls_info(s);
	client_server(c, &server);
	if (report_json(&c->report)) {
		report_json_begin(&out, "status");
		report_json_string(&out, "server", text_str(&server));
		report_json_string(&out, "address", info->address);
		report_json_bytes(&out, "agent", info->agent, strlen(info->agent));
		report_json_string(&out, "fabric", info->fabric);
		report_json_string(&out, "connection", info->description);
		report_json_string(&out, "control", info->security);
		report_json_string(&out, "host_key", info->host_key);
		report_json_string(&out, "protect", message_protect_name(info->protect));
		report_json_number(&out, "rtt_ns", info->rtt_ns);
		report_json_string(&out, "user", *info->user ? info->user : NULL);
		report_json_string(&out, "method", message_login_name(info->method));
		report_json_bool(&out, "read_only", info->read_only);
		report_json_end(&c->report, &out);
	} else {
		text_printf(&out, "server          %s (%s)\n", text_str(&server), info->address);
		text_puts(&out, "program         ");
		escape_display(&out, info->agent, strlen(info->agent));
		text_printf(&out, "%s\n", info->read_only ? ", read-only" : "");
		text_puts(&out, "user            ");
		escape_display(&out, *info->user ? info->user : "anonymous",
			*info->user ? strlen(info->user) : strlen("anonymous"));
		text_printf(&out, " (%s)\n", message_login_name(info->method));
		text_printf(&out, "fabric          %s: %s\n", info->fabric, info->description);
		text_printf(&out, "round trip      %.3f ms\n", (double)info->rtt_ns / 1e6);
		text_printf(&out, "control         %s\n", info->security);
		text_printf(&out, "host key        %s\n", info->host_key);
		text_printf(&out, "blocks          %s\n", message_protect_name(info->protect));
		report_write(&c->report, text_str(&out), out.len);
		text_fini(&out);
	}
	text_fini(&server);
	return 0;
}

int command_pwd(struct client *c, const struct lexer_command *line)
{
	struct text out = {0}, url = {0};

	(void)line;
	if (!client_session(c))
		return -ENOTCONN;
	client_url(c, c->cwd, &url);
	if (report_json(&c->report)) {
		report_json_begin(&out, "pwd");
		report_json_string(&out, "path", c->cwd);
		report_json_string(&out, "url", text_str(&url));
		report_json_end(&c->report, &out);
	} else {
		text_putc(&url, '\n');
		report_write(&c->report, text_str(&url), url.len);
	}
	text_fini(&url);
	return 0;
}

static void set_show(struct client *c, unsigned i)
{
	struct text value = {0}, values = {0}, out = {0};

	settings_show(&c->settings, i, &value);
	settings_values(i, &values);
	if (report_json(&c->report)) {
		report_json_begin(&out, "setting");
		report_json_string(&out, "name", settings_at(i)->name);
		report_json_string(&out, "value", text_str(&value));
		report_json_string(&out, "values", text_str(&values));
		report_json_end(&c->report, &out);
	} else {
		text_printf(&out, "%-16s %-8s %s (%s)\n", settings_at(i)->name, text_str(&value),
			settings_at(i)->help, text_str(&values));
		report_write(&c->report, text_str(&out), out.len);
	}
	text_fini(&out);
	text_fini(&values);
	text_fini(&value);
}

int command_set(struct client *c, const struct lexer_command *line)
{
	const char *name = line->count > 1 ? line->words[1].text : NULL;
	struct text why = {0};
	bool found = false;
	int err = 0;

	if (line->count > 2) {
		err = settings_set(&c->settings, name, line->words[2].text, &why);
		if (!err) {
			command_apply_settings(c);
			if (c->session && (!strcmp(name, "fabric") || !strcmp(name, "crc")))
				report_note(&c->report, "%s: takes effect at the next open", name);
		}
	} else {
		for (unsigned i = 0; settings_at(i); i++) {
			if (name && strcmp(settings_at(i)->name, name))
				continue;
			set_show(c, i);
			found = true;
		}
		if (!found) /* says what there is */
			err = settings_set(&c->settings, name, "", &why);
	}
	if (err)
		report_usage(&c->report, "%s", text_str(&why));
	text_fini(&why);
	return err;
}

/* Without a URL of the server that the shell is connected to. */
int command_doctor(struct client *c, const struct lexer_command *line)
{
	struct doctor_params params = {.url = NULL};
	struct text url = {0};
	int err;

	for (size_t i = 1; i < line->count; i++) {
		const char *word = line->words[i].text,
			   **to = url_is(word) ? &params.url : &params.directory;

		if (*to) {
			report_usage(&c->report, "usage: doctor [URL] [DIRECTORY]");
			return -EINVAL;
		}
		*to = word;
	}
	if (!params.url && c->host && !c->ssh) {
		text_puts(&url, "rftp://");
		client_server(c, &url);
		params.url = text_str(&url);
	}
	err = doctor_run(c, &params);
	text_fini(&url);
	return err;
}

int command_quit(struct client *c, const struct lexer_command *line)
{
	(void)line;
	c->quit = true;
	return 0;
}
