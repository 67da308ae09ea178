/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_request.c: see sync_request.h.
 */
#include "rftp/copy/sync_request.h"

#include <stdlib.h>
#include <string.h>

/* Whether there was room. */
static bool request_add(struct sync_request *r, const char *name, size_t len)
{
	const struct wire_bytes bytes = {(const uint8_t *)name, len};

	if (r->count == MESSAGE_PATHS_MAX - 1 ||
		message_add_path(r->list, SYNC_REQUEST_BYTES, &r->used, bytes))
		return false;
	r->count++;
	return true;
}

/* Asks for what an entry is linked to, if that was in another request.  Where there is no room a
 * file comes in place of the link, and the next sync makes it one. */
static void request_add_leader(struct sync_request *r, const struct compare_entry *e)
{
	struct compare_entry *leader = e->leader;
	char *name;

	if (!leader || leader == e || leader->round == r->round ||
		selection_order(leader->name, r->first) >= 0)
		return;
	leader->round = r->round;
	name = malloc(strlen(leader->name) + 2);
	if (!name)
		return;
	stpcpy(stpcpy(name, leader->name), "/");
	if (strlen(name) <= MESSAGE_PATH_MAX)
		(void)request_add(r, name, strlen(name));
	free(name);
}

/* Of a name, or of all in it. */
static void request_add_leaders(
	struct sync_request *r, const struct compare_list *from, const char *name)
{
	const size_t len = strlen(name);
	const bool alone = len && name[len - 1] == '/';
	char *plain = strndup(name, len - alone);
	const struct compare_entry *e = plain ? compare_list_find(from, plain) : NULL;
	const struct compare_entry *end = from->entries + from->count;

	free(plain);
	if (!e)
		return;
	request_add_leader(r, e);
	if (alone || e->type != MESSAGE_DIRECTORY)
		return;
	while (++e < end && !strncmp(e->name, name, len) && e->name[len] == '/')
		request_add_leader(r, e);
}

void sync_request_fill(struct client *c, struct sync_request *r, const struct compare_list *from,
	const struct selection *copy, size_t *at)
{
	for (; *at < copy->count; ++*at) {
		const char *name = copy->names[*at];

		if (strlen(name) > MESSAGE_PATH_MAX) {
			report_error(&c->report, EXIT_CODE_OK, STATUS_NAME, name,
				"is too long to be asked for");
			continue;
		}
		r->first = r->first ? r->first : name;
		if (r->round > 1 && c->settings.hard_links)
			request_add_leaders(r, from, name);
		if (!request_add(r, name, strlen(name)))
			return;
	}
}

bool sync_request_itself(struct sync_request *r)
{
	return request_add(r, "/", 1);
}
