/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/try_login: see try_login.h.
 */
#include "rftp/remote/try_login.h"

#include "proto/message_login.h"
#include "rftp/remote/visit.h"
#include "rftp/ui/escape.h"

#include <errno.h>
#include <string.h>

static const struct {
	uint32_t right;
	const char *name;
} rights[] = {
	{MESSAGE_RIGHT_READ, "read"},
	{MESSAGE_RIGHT_LIST, "list"},
	{MESSAGE_RIGHT_WRITE, "write"},
	{MESSAGE_RIGHT_APPEND, "append"},
	{MESSAGE_RIGHT_DELETE, "delete"},
};

static void put_rights(struct text *out, uint32_t bits)
{
	const char *comma = "";

	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if (bits & rights[i].right) {
			text_printf(out, "%s%s", comma, rights[i].name);
			comma = ",";
		}
}

static void show_json(
	struct client *c, const struct calls_info *info, const struct calls_list *exports)
{
	struct text out = {0}, server = {0}, may = {0};

	client_server(c, &server);
	put_rights(&may, info->rights);
	report_json_begin(&out, "login");
	report_json_string(&out, "server", text_str(&server));
	if (*info->user)
		report_json_bytes(&out, "user", info->user, strlen(info->user));
	else
		report_json_string(&out, "user", NULL);
	report_json_string(&out, "method", message_login_name(info->method));
	report_json_string(&out, "rights", text_str(&may));
	report_json_bytes(&out, "home", info->home, strlen(info->home));
	report_json_end(&c->report, &out);
	for (size_t i = 0; i < exports->count; i++) {
		struct text one = {0};

		report_json_begin(&one, "export");
		report_json_bytes(
			&one, "name", exports->entries[i].name, strlen(exports->entries[i].name));
		report_json_end(&c->report, &one);
	}
	text_fini(&server);
	text_fini(&may);
}

static void show(struct client *c, const struct calls_info *info, const struct calls_list *exports)
{
	struct text out = {0}, server = {0};
	const char *user = *info->user ? info->user : "anonymous";

	client_server(c, &server);
	text_printf(&out, "server          %s (%s)\n", text_str(&server), info->address);
	text_puts(&out, "user            ");
	escape_display(&out, user, strlen(user));
	text_printf(&out, " (%s)\nrights          ", message_login_name(info->method));
	put_rights(&out, info->rights);
	text_puts(&out, exports->count ? " (not in every export)\n" : "\n");
	if (strcmp(info->home, "/") != 0) {
		text_puts(&out, "home            ");
		escape_display(&out, info->home, strlen(info->home));
		text_putc(&out, '\n');
	}
	for (size_t i = 0; i < exports->count; i++) {
		text_puts(&out, i ? "                " : "exports         ");
		escape_display(&out, exports->entries[i].name, strlen(exports->entries[i].name));
		text_putc(&out, '\n');
	}
	report_write(&c->report, text_str(&out), out.len);
	text_fini(&server);
	text_fini(&out);
}

int try_login(struct client *c, const char *name)
{
	struct calls_list exports = {0};
	const struct calls_info *info;
	struct url url;
	int err = visit_parse(c, name, &url);

	if (err)
		return err;
	err = client_open(c, &url);
	url_fini(&url);
	if (err)
		return err;
	info = calls_info(c->session);
	if (info->exports) {
		err = calls_list(c->session, "/", &exports);
		if (err)
			return client_report(c, "/", err);
	}
	if (report_json(&c->report))
		show_json(c, info, &exports);
	else
		show(c, info, &exports);
	calls_list_free(&exports);
	client_close(c);
	return 0;
}
