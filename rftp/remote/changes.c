/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/changes.c: see changes.h.
 */
#include "rftp/remote/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_LIST_BYTES (MESSAGE_DATA_MAX - 2)

struct changes {
	struct client *client;
	int first;  /* error of a name */
	bool names; /* of users or groups are among them */
	uint16_t count;
	size_t used;
	size_t added; /* changes_add, so far */
	void (*changed)(void *ctx, size_t number);
	void *ctx;
	size_t numbers[MESSAGE_CHANGES_MAX];
	char *paths[MESSAGE_CHANGES_MAX];
	uint8_t list[CHANGES_LIST_BYTES];
};

struct changes *changes_new(struct client *c)
{
	struct changes *n = malloc(sizeof *n);

	if (!n) {
		client_no_memory(c);
		return NULL;
	}
	n->client = c;
	n->added = 0;
	n->changed = NULL;
	n->first = 0;
	n->names = false;
	n->count = 0;
	n->used = 0;
	return n;
}

void changes_tell_changed(struct changes *n, void (*changed)(void *ctx, size_t number), void *ctx)
{
	n->changed = changed;
	n->ctx = ctx;
}

static void changes_forget(struct changes *n)
{
	for (unsigned i = 0; i < n->count; i++)
		free(n->paths[i]);
	n->count = 0;
	n->used = 0;
}

void changes_free(struct changes *n)
{
	if (n)
		changes_forget(n);
	free(n);
}

static void changes_failed(struct changes *n, const char *path, uint16_t status)
{
	report_error(&n->client->report, EXIT_CODE_OK, status, path, NULL);
	if (!n->first)
		n->first = status_to_errno(status);
}

static void changes_done(void *ctx, unsigned index, uint16_t status)
{
	struct changes *n = ctx;

	if (status == STATUS_CHANGED && n->changed) {
		n->changed(n->ctx, n->numbers[index]);
		return;
	}
	if (status == STATUS_INVALID && n->names) {
		report_error(&n->client->report, EXIT_CODE_OK, status, n->paths[index],
			"the server knows no user or group of that name");
		n->first = n->first ? n->first : status_to_errno(status);
		return;
	}

	if (status)
		changes_failed(n, n->paths[index], status);
}

static int changes_send(struct changes *n)
{
	struct client *c = n->client;
	const struct message_set_attr request = {n->count, {n->list, n->used}};
	int err;

	if (!n->count)
		return 0;
	err = c->session ? calls_changes(c->session, &request, changes_done, n) : -ENOTCONN;
	if (err == -ENOMEM)
		client_no_memory(c);
	else if (err && c->session)
		client_report(c, n->paths[0], err);
	changes_forget(n);
	return err;
}

int changes_add(struct changes *n, const char *path, struct message_change change)
{
	const size_t number = n->added++;
	int err, add;

	n->names |= change.user.len || change.group.len;
	change.path = (struct wire_bytes){(const uint8_t *)path, strlen(path)};
	if (!message_path_ok(change.path)) {
		changes_failed(n, path, STATUS_NAME);
		return 0;
	}
	if (n->count == MESSAGE_CHANGES_MAX) {
		err = changes_send(n);
		if (err)
			return err;
	}
	add = message_add_change(n->list, sizeof n->list, &n->used, &change);
	if (add) {
		err = changes_send(n);
		if (err)
			return err;
		add = message_add_change(n->list, sizeof n->list, &n->used, &change);
	}
	if (add) {
		changes_failed(n, path, STATUS_INVALID);
		return 0;
	}
	n->paths[n->count] = strdup(path);
	if (!n->paths[n->count])
		return client_no_memory(n->client);
	n->numbers[n->count++] = number;
	return 0;
}

int changes_end(struct changes *n)
{
	int err = changes_send(n);

	return err ? err : n->first;
}
