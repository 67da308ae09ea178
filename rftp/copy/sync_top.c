/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_top: see sync_top.h.
 */
#include "rftp/copy/sync_top.h"

#include "proto/message_change.h"
#include "rftp/remote/remote_path.h"
#include "tree/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOP_OURS 0700u /* without these we could not work in it */

static bool is_export(struct client *c, const char *path)
{
	char *plain = strdup(path);
	bool top = true; /* without memory it stays as it is */

	if (plain) {
		remote_normalize(plain);
		top = !plain[1] || (calls_info(c->session)->exports && !strchr(plain + 1, '/'));
	}
	free(plain);
	return top;
}

static void ignore(void *ctx, unsigned index, uint16_t status)
{
	(void)ctx;
	(void)index;
	(void)status;
}

/* If it is not ours to change, who works in it says what is wrong. */
static void set_remote(struct client *c, const char *path, unsigned mode)
{
	uint8_t list[MESSAGE_PATH_MAX + 64];
	const struct message_change change = {.flags = MESSAGE_CHANGE_MODE,
		.mode = mode,
		.path = {(const uint8_t *)path, strlen(path)}};
	struct message_set_attr request = {.count = 1};
	size_t len = 0;

	if (message_add_change(list, sizeof list, &len, &change))
		return;
	request.changes = (struct wire_bytes){list, len};
	(void)calls_changes(c->session, &request, ignore, NULL);
}

/* 0 or -errno; at the server 0: it was asked. */
static int set_mode(struct client *c, const struct sync_params *p, unsigned mode)
{
	const struct change change = {.has_mode = true, .set_id = true, .mode = mode};

	if (!p->to_server)
		return change_run(AT_FDCWD, p->local, &change);
	set_remote(c, p->remote, mode);
	return 0;
}

bool sync_top_open(
	struct client *c, const struct sync_params *p, struct compare_list *to, unsigned *was)
{
	const unsigned mode = to->top.mode | TOP_OURS;

	if (!to->top.name || to->top.mode == mode || (p->to_server && is_export(c, p->remote)))
		return false;
	*was = to->top.mode;
	(void)set_mode(c, p, mode);
	to->top.mode = (uint16_t)mode;
	return true;
}

void sync_top_close(struct client *c, const struct sync_params *p, unsigned was)
{
	int err = 0;

	if (!p->to_server || c->session)
		err = set_mode(c, p, was);
	if (err)
		report_errorf(&c->report, err, p->local, "%s (giving back its mode %04o)",
			status_text(status_from_errno(err)), was);
}

bool sync_top_differs(struct client *c, const struct sync_params *p, const struct sync_top *top,
	struct compare_pair *pair)
{
	const struct compare_entry *a = &top->from->top, *b = &top->to->top;
	const struct settings *s = &c->settings;
	const bool made = !b->name;

	if (!a->name || (p->to_server && (!c->session || is_export(c, p->remote))) ||
		(!made && !compare_is_judged(c->settings.compare)))
		return false;
	*pair = made ? (struct compare_pair){.from = a,
			       .owner = s->owner || s->group,
			       .other = s->xattrs || s->acls}
		     : compare_beside(a, b, top->compare);
	pair->mode = made || a->mode != b->mode;
	pair->mtime =
		made || top->changed || a->mtime_s != b->mtime_s || a->mtime_ns != b->mtime_ns;
	return pair->mode || pair->mtime || pair->owner || pair->other;
}

int sync_top_find(struct client *c, const struct sync_params *p, bool *missing)
{
	const char *name = p->to_server ? p->remote : p->local;
	struct message_attr attr = {.type = MESSAGE_DIRECTORY};
	struct stat st = {.st_mode = S_IFDIR};
	int err;

	if (p->to_server)
		err = calls_stat(c->session, name, &attr);
	else
		err = stat(name, &st) ? -errno : 0;
	*missing = err == -ENOENT;
	if (err && !*missing)
		return p->to_server
			       ? client_report(c, name, err)
			       : (report_errorf(&c->report, err, name, "%s", strerror(-err)), err);
	if (attr.type == MESSAGE_DIRECTORY && S_ISDIR(st.st_mode))
		return 0;
	report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_DIRECTORY, name, NULL);
	return -ENOTDIR;
}
