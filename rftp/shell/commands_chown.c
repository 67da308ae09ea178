/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_chown.c: owner and group of names at the server.
 */
#include "rftp/shell/commands_impl.h"

#include "base/number.h"
#include "rftp/remote/changes.h"
#include "rftp/remote/remote_path.h"
#include "session/calls_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct chown {
	struct client *client;
	struct changes *changes;
	struct message_change change; /* what each name gets */
	bool recursive, link;
	struct names beneath; /* of the tree that is listed */
};

/* A number, or the name of somebody whom the server has to know.  0 or -EINVAL. */
static int chown_id(const char *word, size_t len, uint32_t *id, struct wire_bytes *name)
{
	char digits[16];
	uint64_t number;

	*id = MESSAGE_CHANGE_NO_ID;
	if (len < sizeof digits && strspn(word, "0123456789") >= len) {
		memcpy(digits, word, len);
		digits[len] = '\0';
		if (number_parse(digits, 0, MESSAGE_CHANGE_NO_ID - 1, &number))
			return -EINVAL;
		*id = (uint32_t)number;
		return 0;
	}
	*name = (struct wire_bytes){(const uint8_t *)word, len};
	return len <= MESSAGE_NAME_MAX ? 0 : -EINVAL;
}

/* "USER", "USER:GROUP" or ":GROUP". */
static int chown_who(const char *word, struct message_change *change)
{
	const char *colon = strchrnul(word, ':');
	int err = 0;

	if (colon > word) {
		change->flags |= MESSAGE_CHANGE_OWNER;
		err = chown_id(word, (size_t)(colon - word), &change->uid, &change->user);
	}
	if (!err && *colon && colon[1]) {
		change->flags |= MESSAGE_CHANGE_GROUP;
		err = chown_id(colon + 1, strlen(colon + 1), &change->gid, &change->group);
	}
	return err || !change->flags || (*colon && !colon[1]) ? -EINVAL : 0;
}

static int chown_found(void *ctx, const struct message_tree_entry *e)
{
	struct chown *m = ctx;
	const bool link = e->attr.type == MESSAGE_SYMLINK;
	char *name = strndup((const char *)e->name.data, e->name.len);

	if (e->status)
		report_error(&m->client->report, EXIT_CODE_OK, e->status, name, NULL);
	if (e->attr.type == MESSAGE_OTHER || (link && !m->link)) {
		free(name);
		return 0;
	}
	return names_add(&m->beneath, name);
}

static int chown_add(const struct chown *m, const char *path, bool link)
{
	struct message_change change = m->change;

	if (link)
		change.flags |= MESSAGE_CHANGE_LINK;
	return changes_add(m->changes, path, change);
}

/* What is beneath a directory: the last one first, so that none is out of reach before its time. */
static int chown_beneath(struct chown *m, const char *path)
{
	const struct message_tree request = {.path = {(const uint8_t *)path, strlen(path)}};
	int err = calls_tree(m->client->session, &request, chown_found, m);

	if (err == -ENOMEM)
		client_no_memory(m->client);
	else if (err)
		client_report(m->client, path, err);
	for (size_t i = m->beneath.count; i-- && !err;) {
		char *inner = remote_join(path, m->beneath.list[i]);

		/* none is a link, or it is meant itself: one that takes its place now leads nowhere
		 */
		err = inner ? chown_add(m, inner, true) : client_no_memory(m->client);
		free(inner);
	}
	names_fini(&m->beneath);
	return err;
}

/* Whether a directory is called so by a symbolic link, which its parent tells.  0 or -errno,
 * reported. */
static int chown_is_link(struct chown *m, const char *path, bool *link)
{
	struct calls_list list;
	size_t len;
	const char *last = remote_last(path, &len);
	char *parent;
	int err;

	*link = false;
	/* the top is none; with a '/' behind it is what the link leads to */
	if (!len || last == path || last[len])
		return 0;
	parent = strndup(path, (size_t)(last - path));
	if (!parent)
		return client_no_memory(m->client);
	err = calls_list(m->client->session, parent, &list);
	if (err) {
		client_report(m->client, parent, err);
		free(parent);
		return err;
	}
	for (size_t i = 0; i < list.count; i++)
		*link |= list.entries[i].attr.type == MESSAGE_SYMLINK &&
			 !strcmp(list.entries[i].name, last);
	calls_list_free(&list);
	free(parent);
	return 0;
}

static int chown_path(struct chown *m, const char *path)
{
	struct client *c = m->client;
	struct message_attr attr = {0};
	bool link = false;
	int err = 0;

	if (m->recursive && !m->link) {
		err = calls_stat(c->session, path, &attr);
		if (err)
			return client_report(c, path, err);
	} else if (m->recursive && calls_stat(c->session, path, &attr) && calls_lost(c->session)) {
		return client_report(c, path, -ENOTCONN);
	}
	if (m->link && attr.type == MESSAGE_DIRECTORY) {
		err = chown_is_link(m, path, &link);
		if (err)
			return err;
	}
	if (attr.type == MESSAGE_DIRECTORY && !link)
		err = chown_beneath(m, path);
	return err ? err : chown_add(m, path, m->link && (link || attr.type != MESSAGE_DIRECTORY));
}

int command_chown(struct client *c, const struct lexer_command *line)
{
	struct chown m = {.client = c};
	struct names names = {0};
	unsigned mask;
	int first = command_flags(c, line, "hR", &mask), err, last;

	if (first < 0)
		return first;
	m.link = mask & 1;
	m.recursive = mask & 2;
	if (line->count - (size_t)first < 2 || chown_who(line->words[first].text, &m.change)) {
		report_usage(
			&c->report, "usage: chown [-hR] [USER][:GROUP] PATH..., names or numbers");
		return -EINVAL;
	}
	err = command_expand_remote(c, line, (size_t)first + 1, &names);
	m.changes = names.count ? changes_new(c) : NULL;
	for (size_t i = 0; m.changes && i < names.count && c->session; i++) {
		int one = chown_path(&m, names.list[i]);

		err = err ? err : one;
	}
	last = m.changes ? changes_end(m.changes) : 0;
	changes_free(m.changes);
	names_fini(&names);
	return err ? err : last;
}
