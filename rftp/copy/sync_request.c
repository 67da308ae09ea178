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

/* Asks for what an entry is linked to, if that was in another request.  Whether there was room. */
static bool request_add_leader(struct sync_request *r, const struct compare_entry *e)
{
	struct compare_entry *leader = e->leader;
	bool added = true;
	char *name;

	if (!leader || leader == e || leader->round == r->round ||
		selection_order(leader->name, r->first) >= 0)
		return true;
	leader->round = r->round;
	name = malloc(strlen(leader->name) + 2);
	if (!name)
		return true;
	stpcpy(stpcpy(name, leader->name), "/");
	if (strlen(name) <= MESSAGE_PATH_MAX)
		added = request_add(r, name, strlen(name));
	free(name);
	return added;
}

/* Of a name, or of all in it.  Whether there was room for all. */
static bool request_add_leaders(
	struct sync_request *r, const struct compare_list *from, const char *name)
{
	const size_t len = strlen(name);
	const bool alone = len && name[len - 1] == '/';
	char *plain = strndup(name, len - alone);
	const struct compare_entry *e = plain ? compare_list_find(from, plain) : NULL;
	const struct compare_entry *end = from->entries + from->count;
	bool added;

	free(plain);
	if (!e)
		return true;
	added = request_add_leader(r, e);
	if (alone || e->type != MESSAGE_DIRECTORY)
		return added;
	while (added && ++e < end && !strncmp(e->name, name, len) && e->name[len] == '/')
		added = request_add_leader(r, e);
	return added;
}

/* A name, and what it and all in it are linked to.  Where not even an empty request has room for
 * all of that, files come in place of links, and the next sync makes them links.  Whether there was
 * room. */
static bool request_add_linked(
	struct sync_request *r, const struct compare_list *from, const char *name)
{
	const struct sync_request before = *r;

	if (!request_add(r, name, strlen(name)))
		return false;
	if (request_add_leaders(r, from, name) || !before.count)
		return true;
	*r = before;
	return false;
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
		if (r->round > 1 && c->settings.hard_links ? !request_add_linked(r, from, name)
							   : !request_add(r, name, strlen(name)))
			return;
	}
}

bool sync_request_itself(struct sync_request *r)
{
	return request_add(r, "/", 1);
}
