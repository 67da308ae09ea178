/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_digest.c: see sync_digest.h.
 */
#include "rftp/copy/sync_digest.h"

#include "proto/message_sum.h"
#include "rftp/copy/sync_plan.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "rftp/sum/sums.h"
#include "tree/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct digests {
	struct client *client;
	const struct sync_params *params;
	struct sums sums;
	struct compare_entry **entries; /* whose sum each is */
	size_t count, room, told;
};

/* Paths of names as each side knows them. */
static char *digest_path(const struct digests *d, const char *name, bool source)
{
	const bool remote = source != d->params->to_server;

	return remote_join(remote ? d->params->remote : d->params->local, name);
}

static int digest_add(struct digests *d, struct compare_entry *e, bool source)
{
	struct compare_entry **grown;
	char *path;
	int err;

	if (d->count == d->room) {
		grown = realloc(d->entries, (d->room * 2 + 64) * sizeof *grown);
		if (!grown)
			return client_no_memory(d->client);
		d->entries = grown;
		d->room = d->room * 2 + 64;
	}
	path = digest_path(d, e->name, source);
	if (!path)
		return client_no_memory(d->client);
	err = sums_add(&d->sums, e->name, path, source != d->params->to_server);
	free(path);
	if (!err)
		d->entries[d->count++] = e;
	return err;
}

static void digest_done(void *ctx, const struct sums_item *item)
{
	struct digests *d = ctx;
	struct compare_entry *e = d->entries[d->told++];

	e->has_sum = !item->status && item->size == e->size;
	memcpy(e->sum, item->sum, sizeof e->sum);
}

/* Ends it, also after an error. */
static int digest_run(struct digests *d, int err)
{
	if (!err && d->count)
		err = sums_run(&d->sums, digest_done, d);

	sums_fini(&d->sums);
	free(d->entries);
	/* it was told; what comes next would be another session's */
	if (!err && client_is_gone(d->client))
		err = -ENOTCONN;
	return err;
}

static struct digests digest_begin(struct client *c, const struct sync_params *params)
{
	return (struct digests){.client = c,
		.params = params,
		.sums = {.client = c, .algorithm = MESSAGE_SUM_XXH128}};
}

static bool digest_is_file(const struct compare_entry *e)
{
	return e->type == MESSAGE_FILE && !e->failed;
}

/* Those of one side: of one server as many as can be are asked for at once. */
static int digest_add_same(
	struct digests *d, struct compare_list *from, struct compare_list *to, bool source)
{
	int err = 0;

	for (size_t f = 0, t = 0; f < from->count && t < to->count && !err;) {
		struct compare_entry *a = &from->entries[f], *b = &to->entries[t];
		const int order = selection_order(a->name, b->name);

		f += order <= 0;
		t += order >= 0;
		if (!order && digest_is_file(a) && digest_is_file(b) && a->size == b->size &&
			!(a->has_sum && b->has_sum))
			err = digest_add(d, source ? a : b, source);
	}
	return err;
}

int sync_digest_same(struct client *c, const struct sync_params *params, struct compare_list *from,
	struct compare_list *to)
{
	struct digests d = digest_begin(c, params);
	int err = digest_add_same(&d, from, to, true);

	if (!err)
		err = digest_add_same(&d, from, to, false);
	return digest_run(&d, err);
}

/* ---- renames ---- */

struct lone { /* files that one list has alone */
	struct compare_entry **entries;
	size_t count;
};

static int lone_by_size(const void *a, const void *b)
{
	const struct compare_entry *x = *(struct compare_entry *const *)a,
				   *y = *(struct compare_entry *const *)b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Files of `list` whose names `other` lacks.  0 or -ENOMEM. */
static int lone_find(
	struct lone *out, const struct compare_list *list, const struct compare_list *other)
{
	size_t k = 0;

	*out = (struct lone){.entries = malloc((list->count + 1) * sizeof *out->entries)};
	if (!out->entries)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		struct compare_entry *e = &list->entries[i];

		while (k < other->count && selection_order(other->entries[k].name, e->name) < 0)
			k++;
		if ((k == other->count || strcmp(other->entries[k].name, e->name) != 0) &&
			digest_is_file(e) && e->size && !e->part)
			out->entries[out->count++] = e;
	}
	qsort(out->entries, out->count, sizeof *out->entries, lone_by_size);
	return 0;
}

/* The sums of those of which the other side has some of the same size. */
static int lone_sum(
	struct digests *d, const struct lone *mine, const struct lone *other, bool source)
{
	size_t k = 0;
	int err = 0;

	for (size_t i = 0; i < mine->count && !err; i++) {
		const uint64_t size = mine->entries[i]->size;

		while (k < other->count && other->entries[k]->size < size)
			k++;
		if (k < other->count && other->entries[k]->size == size)
			err = digest_add(d, mine->entries[i], source);
	}
	return err;
}

/* The entry of that name among the first `count`, which are sorted; NULL: there is none. */
static struct compare_entry *renames_find(
	const struct compare_list *list, size_t count, const char *name, size_t len)
{
	const struct compare_list first = {.entries = list->entries, .count = count};
	char *text = strndup(name, len);
	struct compare_entry *found = text ? compare_list_find(&first, text) : NULL;

	free(text);
	return found;
}

/* The directory that a name is in has another time from then on. */
static void renames_touch(struct compare_list *to, size_t sorted, const char *name)
{
	const char *slash = strrchr(name, '/');
	struct compare_entry *e =
		slash ? renames_find(to, sorted, name, (size_t)(slash - name)) : NULL;

	if (e)
		e->touched = true;
}

static int renames_make(struct digests *d, struct compare_list *to, const char *name, size_t len)
{
	struct client *c = d->client;
	struct compare_entry made = {.type = MESSAGE_DIRECTORY, .touched = true};
	char *path;
	int err = 0;

	made.name = strndup(name, len);
	path = made.name ? digest_path(d, made.name, false) : NULL;
	if (!path)
		err = -ENOMEM;
	else if (c->settings.dry_run)
		sync_plan_print_mkdir(c, d->params, made.name);
	else if (d->params->to_server)
		err = calls_mkdir(c->session, path, false);
	else
		err = beneath_mkdir(AT_FDCWD, path, 0777, false);
	if (!err && compare_list_append(to, &made))
		err = -ENOMEM;
	if (err)
		free(made.name);
	free(path);
	return err;
}

/* The directories that a name is in, where the destination lacks them.  Names come in the order of
 * walks, so those of the one before are there. */
static int renames_make_parents(struct digests *d, struct compare_list *to, size_t sorted,
	const char *name, const char *before)
{
	int err = 0;

	for (const char *slash = strchr(name, '/'); slash && !err; slash = strchr(slash + 1, '/')) {
		const size_t len = (size_t)(slash - name);

		if (strncmp(name, before, len + 1) != 0 && !renames_find(to, sorted, name, len))
			err = renames_make(d, to, name, len);
	}
	return err;
}

static int renames_do(struct digests *d, const char *from, const char *to)
{
	struct client *c = d->client;
	char *a = digest_path(d, from, false), *b = digest_path(d, to, false);
	int err = a && b ? 0 : -ENOMEM;

	if (!err && c->settings.dry_run)
		sync_plan_print_rename(c, d->params, from, to);
	else if (!err && d->params->to_server)
		err = calls_rename(c->session, a, b, false);
	else if (!err)
		err = beneath_rename(AT_FDCWD, a, b, false);
	if (!err && !c->settings.dry_run)
		report_verbose(&c->report, "renamed %s to %s", a, b);
	free(a);
	free(b);
	return err;
}

struct renames_pair {
	size_t old; /* in the list */
	const struct compare_entry *new;
};

/* Pairs of equal sums, each file in one at most. */
static size_t renames_match(const struct lone *from, const struct lone *to,
	const struct compare_list *list, struct renames_pair *pairs)
{
	size_t count = 0, first = 0;

	for (size_t f = 0; f < from->count; f++) {
		const struct compare_entry *new = from->entries[f];

		while (first < to->count && to->entries[first]->size < new->size)
			first++;
		if (!new->has_sum)
			continue;
		for (size_t t = first; t < to->count && to->entries[t]->size == new->size; t++) {
			struct compare_entry *old = to->entries[t];

			if (!old->has_sum || old->renamed ||
				memcmp(old->sum, new->sum, sizeof old->sum) != 0)
				continue;
			old->renamed = true;
			pairs[count++] = (struct renames_pair){(size_t)(old - list->entries), new};
			break;
		}
	}
	return count;
}

static int renames_by_new(const void *a, const void *b)
{
	return selection_order(((const struct renames_pair *)a)->new->name,
		((const struct renames_pair *)b)->new->name);
}

static int renames_by_name(const void *a, const void *b)
{
	return selection_order(
		((const struct compare_entry *)a)->name, ((const struct compare_entry *)b)->name);
}

/* The list stays sorted up to where directories are appended, until the last one has its new name.
 */
static int renames_carry_out(
	struct digests *d, struct compare_list *to, struct renames_pair *pairs, size_t count)
{
	const size_t sorted = to->count;
	struct client *c = d->client;
	const char *before = "";
	int err = 0;

	qsort(pairs, count, sizeof *pairs, renames_by_new);
	for (size_t i = 0; i < count && !err; i++) {
		const char *old = to->entries[pairs[i].old].name, *new = pairs[i].new->name;

		renames_touch(to, sorted, old);
		renames_touch(to, sorted, new);
		err = renames_make_parents(d, to, sorted, new, before);
		if (!err)
			err = renames_do(d, old, new);
		before = new;
		if (!err)
			continue;
		to->entries[pairs[i].old].renamed = false; /* it is copied */
		if (err != -ENOMEM && !client_is_gone(c) && !interrupt_signal())
			err = 0;
		else if (d->params->to_server) /* of the server's memory, or of ours */
			client_report(c, new, err);
		else
			report_errorf(
				&c->report, err, new, "%s", status_text(status_from_errno(err)));
	}
	for (size_t i = 0; i < count; i++) {
		struct compare_entry *e = &to->entries[pairs[i].old];
		char *name = e->renamed ? strdup(pairs[i].new->name) : NULL;

		if (e->renamed && !name)
			return client_no_memory(c);
		if (name) {
			free(e->name);
			e->name = name;
			e->change = 0; /* which was one */
		}
	}
	return err;
}

int sync_digest_renames(struct client *c, const struct sync_params *params,
	struct compare_list *from, struct compare_list *to)
{
	struct digests d = digest_begin(c, params), act = d;
	struct lone news = {0}, olds = {0};
	struct renames_pair *pairs = NULL;
	size_t count = 0;
	int err = lone_find(&news, from, to);

	if (!err)
		err = lone_find(&olds, to, from);
	if (!err)
		pairs = malloc((news.count + 1) * sizeof *pairs);
	if (err || !pairs)
		err = client_no_memory(c);
	if (!err)
		err = lone_sum(&d, &news, &olds, true);
	if (!err)
		err = lone_sum(&d, &olds, &news, false);
	err = digest_run(&d, err);
	if (!err)
		count = renames_match(&news, &olds, to, pairs);
	if (!err)
		err = renames_carry_out(&act, to, pairs, count);
	if (count)
		qsort(to->entries, to->count, sizeof *to->entries, renames_by_name);
	free(pairs);
	free(news.entries);
	free(olds.entries);
	return err;
}
