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

/* What a directory is called, which those in it need as well. */
struct ls_called {
	unsigned refs;
	char *path, *title; /* the title may be NULL */
};

/* Many may stand in the queue, with long paths: each has no more than its own name until it is
 * asked for. */
struct ls_node {
	TAILQ_ENTRY(ls_node) link;   /* in the order of telling */
	STAILQ_ENTRY(ls_node) asked; /* in the order of asking */
	struct ls_called *in;        /* NULL: it was added as it is */
	char *name;                  /* in there */
	struct ls_called *called;    /* once it is asked for */
	bool is_asked, is_here;
	bool waits;             /* it is too large to be held, and asked for when it is its turn */
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

static void called_drop(struct ls_called *called)
{
	if (!called || --called->refs)
		return;
	free(called->path);
	free(called->title);
	free(called);
}

/* The strings are its own from now on.  NULL: no memory, and they are freed. */
static struct ls_called *called_new(char *path, char *title)
{
	struct ls_called *called = path ? malloc(sizeof *called) : NULL;

	if (!called) {
		free(path);
		free(title);
		return NULL;
	}
	*called = (struct ls_called){1, path, title};
	return called;
}

static struct ls_called *called_beneath(const struct ls_called *in, const char *name)
{
	const char *title = in->title ? in->title : "";
	struct text shown = {0};
	char *path;

	text_printf(&shown, "%s%s%s", title, *title && title[strlen(title) - 1] == '/' ? "" : "/",
		name);
	path = shown.len ? remote_join(in->path, name) : NULL;
	return called_new(path, text_take(&shown));
}

static void node_free(struct ls_node *node)
{
	if (!node)
		return;
	calls_list_free(&node->list);
	called_drop(node->in);
	called_drop(node->called);
	free(node->name);
	free(node);
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
	struct ls_node *node = calloc(1, sizeof *node);

	if (node)
		node->called = called_new(title && !copy ? NULL : strdup(path), copy);
	else
		free(copy);
	if (!node || !node->called) {
		node_free(node);
		return client_no_memory(w->client);
	}
	TAILQ_INSERT_TAIL(&w->nodes, node, link);
	return 0;
}

/* The directories in one that has answered are told behind it. */
static void add_beneath(struct ls_walk *w, struct ls_node *node)
{
	struct ls_node *last = node;

	for (size_t i = 0; i < node->list.count; i++) {
		const struct calls_entry *e = &node->list.entries[i];
		struct ls_node *inner;

		if (e->attr.type != MESSAGE_DIRECTORY || (*e->name == '.' && !w->params.hidden))
			continue;
		inner = calloc(1, sizeof *inner);
		if (!inner || !(inner->name = strdup(e->name))) {
			node_free(inner);
			note_error(w, client_no_memory(w->client));
			return;
		}
		inner->in = node->called;
		inner->in->refs++;
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
	while (node && (node->is_asked || (node->waits && node != TAILQ_FIRST(&w->nodes))))
		node = TAILQ_NEXT(node, link);
	/* the first of all is never waited for in vain: it makes room */
	if (!node)
		return NULL;
	if ((w->held >= LS_WALK_HELD_MAX || w->held_bytes >= LS_WALK_HELD_BYTES) &&
		node != TAILQ_FIRST(&w->nodes))
		return NULL;
	if (!node->called)
		node->called = called_beneath(node->in, node->name);
	if (!node->called) {
		note_error(w, client_no_memory(w->client));
		return NULL;
	}
	node->is_asked = true;
	w->held++;
	STAILQ_INSERT_TAIL(&w->asked, node, asked);
	return node->called->path;
}

static void tell_those_here(struct ls_walk *w)
{
	struct ls_node *node;

	while ((node = TAILQ_FIRST(&w->nodes)) && node->is_here && !interrupt_signal()) {
		w->params.tell(w->params.ctx, node->called->path, node->called->title, &node->list);
		node_drop(w, node);
	}
}

static void take_list(void *ctx, int err, struct calls_list *list)
{
	struct ls_walk *w = ctx;
	struct ls_node *node = STAILQ_FIRST(&w->asked);

	STAILQ_REMOVE_HEAD(&w->asked, asked);
	if (err) {
		note_error(w, client_report(w->client, node->called->path, err));
		node_drop(w, node);
	} else if (node != TAILQ_FIRST(&w->nodes) &&
		   w->held_bytes + list->bytes > LS_WALK_HELD_BYTES) {
		/* each of those under way may be as large as one list may be */
		calls_list_free(list);
		node->is_asked = false;
		node->waits = true;
		w->held--;
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
