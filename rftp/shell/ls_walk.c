/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/ls_walk: see ls_walk.h.
 *
 * The directories that are not told yet stand in a queue in the order of telling: when one has
 * answered, those in it are put behind it.  Those at the front are asked for first.
 */
#include "rftp/shell/ls_walk.h"

#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "rftp/ui/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* Asked for and not told, and bytes of what has come of these: what a client should hold. */
#define LS_WALK_HELD_MAX 256u
#define LS_WALK_HELD_BYTES (64ull << 20)

struct ls_node {
	TAILQ_ENTRY(ls_node) link;   /* in the order of telling */
	STAILQ_ENTRY(ls_node) asked; /* in the order of asking */
	char *path, *title;
	bool is_asked, is_here;
	struct calls_list list; /* once it is here */
};

struct ls_walk {
	struct client *client;
	struct ls_walk_params params;
	TAILQ_HEAD(, ls_node) nodes;
	STAILQ_HEAD(, ls_node) asked; /* without those that have answered */
	size_t held;
	uint64_t held_bytes;
	int err; /* the first */
};

static void node_free(struct ls_node *node)
{
	if (!node)
		return;
	calls_list_free(&node->list);
	free(node->path);
	free(node->title);
	free(node);
}

/* The strings are its own from now on.  NULL: no memory, and they are freed. */
static struct ls_node *node_new(char *path, char *title)
{
	struct ls_node *node = path ? calloc(1, sizeof *node) : NULL;

	if (!node) {
		free(path);
		free(title);
		return NULL;
	}
	node->path = path;
	node->title = title;
	return node;
}

static void note_error(struct ls_walk *w, int err)
{
	w->err = w->err ? w->err : err;
}

static void node_drop(struct ls_walk *w, struct ls_node *node)
{
	TAILQ_REMOVE(&w->nodes, node, link);
	w->held -= node->is_asked;
	w->held_bytes -= node->list.bytes;
	node_free(node);
}

struct ls_walk *ls_walk_new(struct client *c, const struct ls_walk_params *params)
{
	struct ls_walk *w = calloc(1, sizeof *w);

	if (!w) {
		client_no_memory(c);
		return NULL;
	}
	w->client = c;
	w->params = *params;
	TAILQ_INIT(&w->nodes);
	STAILQ_INIT(&w->asked);
	return w;
}

void ls_walk_free(struct ls_walk *w)
{
	struct ls_node *node;

	if (!w)
		return;
	while ((node = TAILQ_FIRST(&w->nodes)))
		node_drop(w, node);
	free(w);
}

int ls_walk_add(struct ls_walk *w, const char *path, const char *title)
{
	char *copy = title ? strdup(title) : NULL;
	struct ls_node *node = node_new(title && !copy ? NULL : strdup(path), copy);

	if (!node)
		return client_no_memory(w->client);
	TAILQ_INSERT_TAIL(&w->nodes, node, link);
	return 0;
}

/* The directories in one that has answered are told behind it. */
static void add_beneath(struct ls_walk *w, struct ls_node *node)
{
	struct ls_node *last = node;

	for (size_t i = 0; i < node->list.count; i++) {
		const struct calls_entry *e = &node->list.entries[i];
		const char *title = node->title ? node->title : "";
		struct text shown = {0};
		struct ls_node *inner;

		if (e->attr.type != MESSAGE_DIRECTORY || (*e->name == '.' && !w->params.hidden))
			continue;
		text_printf(&shown, "%s%s%s", title,
			*title && title[strlen(title) - 1] == '/' ? "" : "/", e->name);
		inner = node_new(remote_join(node->path, e->name), text_take(&shown));
		if (!inner) {
			note_error(w, client_no_memory(w->client));
			return;
		}
		TAILQ_INSERT_AFTER(&w->nodes, last, inner, link);
		last = inner;
	}
}

static const char *next_path(void *ctx)
{
	struct ls_walk *w = ctx;
	struct ls_node *node = TAILQ_FIRST(&w->nodes);

	if (interrupt_signal())
		return NULL;
	while (node && node->is_asked)
		node = TAILQ_NEXT(node, link);
	/* the first of all is never waited for in vain: it makes room */
	if (!node)
		return NULL;
	if ((w->held >= LS_WALK_HELD_MAX || w->held_bytes >= LS_WALK_HELD_BYTES) &&
		node != TAILQ_FIRST(&w->nodes))
		return NULL;
	node->is_asked = true;
	w->held++;
	STAILQ_INSERT_TAIL(&w->asked, node, asked);
	return node->path;
}

static void tell_those_here(struct ls_walk *w)
{
	struct ls_node *node;

	while ((node = TAILQ_FIRST(&w->nodes)) && node->is_here && !interrupt_signal()) {
		w->params.tell(w->params.ctx, node->path, node->title, &node->list);
		node_drop(w, node);
	}
}

static void take_list(void *ctx, int err, struct calls_list *list)
{
	struct ls_walk *w = ctx;
	struct ls_node *node = STAILQ_FIRST(&w->asked);

	STAILQ_REMOVE_HEAD(&w->asked, asked);
	if (err) {
		note_error(w, client_report(w->client, node->path, err));
		node_drop(w, node);
	} else {
		node->list = *list;
		node->is_here = true;
		w->held_bytes += list->bytes;
		w->params.sort(w->params.ctx, &node->list);
		if (w->params.recursive)
			add_beneath(w, node);
	}
	tell_those_here(w);
}

int ls_walk_run(struct ls_walk *w)
{
	const struct calls_listing listing = {.next = next_path, .done = take_list, .ctx = w};

	if (w->client->session)
		(void)calls_list_all(w->client->session, &listing);
	return w->err;
}
