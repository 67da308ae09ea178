/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sums_tree: see sums_tree.h.
 */
#include "rftp/sum/sums_tree.h"

#include "rftp/copy/sync_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
	const struct compare_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Whether it is a directory; what cannot be looked at is none, and has no sum either.  1, 0, or
 * -errno: the connection is lost (reported). */
static int is_directory(struct client *c, const struct sums_item *item)
{
	struct message_attr attr;
	struct stat st;
	int err;

	if (!item->remote)
		return !stat(item->path, &st) && S_ISDIR(st.st_mode);
	err = calls_stat(c->session, item->path, &attr);
	if (err && calls_lost(c->session))
		return client_report(c, item->shown, err);
	return !err && attr.type == MESSAGE_DIRECTORY;
}

static int list_directory(
	struct sums *s, const struct sums_item *directory, struct compare_list *list)
{
	struct client *c = s->client;
	int err;

	if (directory->remote)
		err = sync_plan_list_remote(c, directory->path, s->filter, list);
	else
		err = sync_plan_list_local(c, directory->path, s->filter, list);
	if (err && (!directory->remote || err == -ENOENT))
		report_errorf(&c->report, err, directory->shown, "%s",
			status_text(status_from_errno(err)));
	return err;
}

static void join(struct text *path, const char *directory, const char *name)
{
	size_t len = strlen(directory);

	text_puts(path, directory);
	if (len && directory[len - 1] != '/')
		text_putc(path, '/');
	text_puts(path, name);
}

static int add_file(struct sums *s, const struct sums_item *directory, const char *name)
{
	struct text path = {0}, shown = {0};
	int err;

	join(&path, directory->path, name);
	if (directory->server)
		client_url(s->client, text_str(&path), &shown);
	else
		join(&shown, directory->shown, name);
	if (path.failed || shown.failed)
		err = client_no_memory(s->client);
	else
		err = sums_add_item(s, &(struct sums_item){.shown = shown.data,
					       .path = path.data,
					       .server = directory->server,
					       .remote = directory->remote});
	text_fini(&shown);
	text_fini(&path);
	return err;
}

/* What cannot be looked into may hold files that nobody hears of. */
static int report_failed(
	struct sums *s, const struct sums_item *directory, const struct compare_entry *e)
{
	struct text path = {0};

	join(&path, directory->shown, e->name);
	report_error(&s->client->report, EXIT_CODE_OK, e->failed, text_str(&path),
		status_text(e->failed));
	text_fini(&path);
	return -EACCES;
}

int sums_tree_add(struct sums *s, const struct sums_item *item)
{
	struct compare_list list = {0};
	int failed = 0, err = is_directory(s->client, item);

	if (err < 0)
		return err;
	if (!err)
		return sums_add_item(s, item);
	err = list_directory(s, item, &list);
	if (!err && list.count)
		qsort(list.entries, list.count, sizeof *list.entries, by_name);
	for (size_t i = 0; i < list.count && !err; i++) {
		const struct compare_entry *e = &list.entries[i];

		if (e->failed)
			failed = report_failed(s, item, e);
		else if (e->type == MESSAGE_FILE)
			err = add_file(s, item, e->name);
	}
	compare_list_fini(&list);
	return err ? err : failed;
}
