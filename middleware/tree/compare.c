/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/compare.c: one pass through both lists.
 */
#include "tree/compare.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COMPARE_PAGE 4096u /* by which a file takes more of a disk than it has, at most */

static int names_add(struct compare_names *names, const struct compare_entry *entry)
{
	size_t room = names->room ? names->room * 2 : 64;

	if (names->count == names->room) {
		const struct compare_entry **grown =
			realloc(names->entries, room * sizeof *names->entries);

		if (!grown)
			return -ENOMEM;
		names->entries = grown;
		names->room = room;
	}
	names->entries[names->count++] = entry;
	return 0;
}

void compare_plan_fini(struct compare_plan *p)
{
	selection_fini(&p->copy);
	free(p->attrs.entries);
	free(p->beside.entries);
	free(p->in_the_way.entries);
	free(p->blocked.entries);
	free(p->extra.entries);
	*p = (struct compare_plan){0};
}

static bool is_in(const struct compare_entry *e, const struct compare_entry *directory)
{
	size_t len = strlen(directory->name);

	return !strncmp(e->name, directory->name, len) && e->name[len] == '/';
}

static bool same_time(const struct compare_entry *a, const struct compare_entry *b)
{
	return a->mtime_s == b->mtime_s &&
	       (a->mtime_ns == b->mtime_ns || !a->mtime_ns || !b->mtime_ns);
}

bool compare_is_judged(enum compare_level level)
{
	return level == COMPARE_MTIME || level == COMPARE_DIGEST;
}

static bool same_file(
	const struct compare_entry *from, const struct compare_entry *to, enum compare_level level)
{
	if (level == COMPARE_EXISTS)
		return true;
	if (from->size != to->size)
		return false;
	if (from->has_sum && to->has_sum)
		return !memcmp(from->sum, to->sum, sizeof from->sum);
	return level == COMPARE_SIZE || (level == COMPARE_MTIME && same_time(from, to));
}

static bool same_account(const char *a, uint32_t a_id, const char *b, uint32_t b_id, bool numeric)
{
	return numeric || !*a || !*b ? a_id == b_id : !strcmp(a, b);
}

static bool owner_differs(const struct compare_entry *from, const struct compare_entry *to,
	const struct compare_params *p)
{
	const struct compare_owner *a = from->owner, *b = to->owner;

	if (!a || !b || !(to->has & MESSAGE_TREE_HAS_GIVEN))
		return false;
	return (p->owner && !same_account(a->user, a->uid, b->user, b->uid, p->numeric)) ||
	       (p->group && !same_account(a->group, a->gid, b->group, b->gid, p->numeric));
}

/* Attributes and lists.  Of what cannot be read at the source nothing could be sent. */
static bool same_extra(const struct compare_entry *from, const struct compare_entry *to)
{
	return !(from->has & MESSAGE_TREE_HAS_EXTRA) || from->extra == to->extra;
}

struct compare_pair compare_beside(const struct compare_entry *from, const struct compare_entry *to,
	const struct compare_params *params)
{
	if (!compare_is_judged(params->level))
		return (struct compare_pair){.from = from};
	return (struct compare_pair){.from = from,
		.owner = owner_differs(from, to, params),
		.other = !same_extra(from, to) || from->leader};
}

/* Whether there is nothing to be copied, whatever mode and time say of what is set alone. */
static bool same(
	const struct compare_entry *from, const struct compare_entry *to, enum compare_level level)
{
	switch (from->type) {
	case MESSAGE_DIRECTORY:
		return !to->touched && (!compare_is_judged(level) ||
					       (from->mode == to->mode && same_time(from, to)));
	case MESSAGE_SYMLINK:
		return from->target && to->target && !strcmp(from->target, to->target);
	default:
		return same_file(from, to, level);
	}
}

struct pass {
	const struct compare_list *from, *to;
	size_t f, t; /* the next of each */
	/* the outermost directory of the second tree that the first one lacks, and that stays */
	const struct compare_entry *stays;
	const struct compare_params *params;
	struct compare_plan *plan;
};

static void count(struct compare_plan *p, const struct compare_entry *e)
{
	if (e->type == MESSAGE_DIRECTORY)
		return;
	p->files++;
	if (e->type != MESSAGE_FILE)
		return;
	p->bytes += e->size;
	if (!e->leader || e->leader == e) /* other names of it take no room */
		p->disk_bytes += e->disk;
	if (e->size > p->largest_bytes)
		p->largest_bytes = e->size;
}

/* A file of the second tree goes when another one comes: all that it may take of the disk. */
static void count_replaced(struct compare_plan *p, const struct compare_entry *to)
{
	if (to->type == MESSAGE_FILE && !to->failed)
		p->replaced_bytes += to->size + COMPARE_PAGE;
}

uint64_t compare_plan_room(const struct compare_plan *p)
{
	return p->disk_bytes > p->replaced_bytes ? p->disk_bytes - p->replaced_bytes : 0;
}

int compare_plan_copy_too(struct compare_plan *p, const struct compare_pair *pair)
{
	p->same--;
	count(p, pair->from);
	count_replaced(p, pair->to);
	return selection_add(&p->copy, pair->from->name, strlen(pair->from->name));
}

/* A directory that is there gets mode and time, or is made: its name with a '/' behind. */
static int pass_touch(struct pass *p, const char *name, size_t len)
{
	char *text = malloc(len + 1);
	int err;

	if (!text)
		return -ENOMEM;
	memcpy(text, name, len);
	text[len] = '/';
	err = selection_add(&p->plan->copy, text, len + 1);
	free(text);
	return err;
}

static void pass_special(struct pass *p, const struct compare_entry *e)
{
	p->plan->special++;
	if (!p->plan->special_apart++)
		p->plan->first_apart = e->name;
}

/* An entry of the first tree that is to be copied, and what is in it. */
static int pass_copy(struct pass *p)
{
	const struct compare_entry *top = &p->from->entries[p->f++];

	if (top->type == MESSAGE_OTHER) {
		pass_special(p, top);
		return 0;
	}
	if (top->part)
		return 0; /* it is made for what follows */
	if (top->alone && top->type == MESSAGE_DIRECTORY)
		return pass_touch(p, top->name, strlen(top->name));
	count(p->plan, top);
	while (top->type == MESSAGE_DIRECTORY && p->f < p->from->count &&
		is_in(&p->from->entries[p->f], top)) {
		const struct compare_entry *e = &p->from->entries[p->f++];

		if (e->type == MESSAGE_OTHER)
			p->plan->special++;
		else
			count(p->plan, e);
	}
	return selection_add(&p->plan->copy, top->name, strlen(top->name));
}

/* An entry of the second tree, and what is in it. */
static int pass_remove(struct pass *p, struct compare_names *names, uint64_t *all)
{
	const struct compare_entry *top = &p->to->entries[p->t++];

	++*all;
	while (top->type == MESSAGE_DIRECTORY && p->t < p->to->count &&
		is_in(&p->to->entries[p->t], top)) {
		p->t++;
		++*all;
	}
	return names_add(names, top);
}

/* In the second tree alone. */
static int pass_extra(struct pass *p)
{
	const struct compare_entry *e = &p->to->entries[p->t];
	const char *name = e->name, *last = strrchr(name, '/');
	const bool within = p->stays && is_in(e, p->stays);
	int err;

	if (e->part) {
		p->stays = within ? p->stays : e;
		p->t++;
		return 0;
	}
	err = pass_remove(p, &p->plan->extra, &p->plan->extra_names);
	/* the directory that it is in is one of both */
	return err || !p->params->remove || !last || within
		       ? err
		       : pass_touch(p, name, (size_t)(last - name));
}

/* What is called so in the first tree has no place. */
static int pass_blocked(struct pass *p)
{
	const struct compare_entry *to = &p->to->entries[p->t++];

	p->f++;
	while (p->t < p->to->count && is_in(&p->to->entries[p->t], to))
		p->t++;
	return names_add(&p->plan->blocked, to);
}

static int pairs_add(struct compare_pairs *pairs, const struct compare_pair *pair)
{
	if (pairs->count == pairs->room) {
		const size_t room = pairs->room * 2 + 64;
		struct compare_pair *grown = realloc(pairs->entries, room * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		pairs->entries = grown;
		pairs->room = room;
	}
	pairs->entries[pairs->count++] = *pair;
	return 0;
}

/* It gets what it has beside its bytes. */
static int pass_beside(struct pass *p, const struct compare_pair *pair)
{
	const bool any = pair->owner || pair->other || pair->mode;
	int err = any ? pairs_add(&p->plan->beside, pair) : 0;

	return err ? err : pass_touch(p, pair->from->name, strlen(pair->from->name));
}

/* A file or link whose contents are the same.  1: it is to be copied all the same; 0; -ENOMEM. */
static int pass_same(
	struct pass *p, const struct compare_entry *from, const struct compare_entry *to)
{
	const bool judged = compare_is_judged(p->params->level);
	struct compare_pair pair = compare_beside(from, to, p->params);

	pair.to = to;
	pair.mode = judged && from->type == MESSAGE_FILE &&
		    (from->mode ^ to->mode) & p->params->mode_mask;
	pair.mtime = judged && !same_time(from, to);
	/* a link is made anew: it has no bytes */
	if (pair.owner && from->type == MESSAGE_SYMLINK)
		return 1;
	p->plan->same++;
	if (pair.owner || pair.other || (pair.mode && p->params->lists))
		return pass_beside(p, &pair);
	return pair.mode || pair.mtime ? pairs_add(&p->plan->attrs, &pair) : 0;
}

/* Of the same name in both. */
static int pass_both(struct pass *p)
{
	const struct compare_entry *from = &p->from->entries[p->f], *to = &p->to->entries[p->t];
	uint64_t all = 0;
	int err = 0;

	if (from->type != to->type) {
		/* a file or link takes the place of another by itself, a directory of nothing */
		if (from->type == MESSAGE_OTHER) {
			pass_special(p, from);
			p->f++;
			p->t++;
			while (p->t < p->to->count && is_in(&p->to->entries[p->t], to))
				p->t++;
			return 0;
		}
		if (to->type == MESSAGE_DIRECTORY && to->part)
			return pass_blocked(p);
		if (from->type == MESSAGE_DIRECTORY || to->type == MESSAGE_DIRECTORY)
			err = pass_remove(p, &p->plan->in_the_way, &all);
		else {
			count_replaced(p->plan, to);
			p->t++;
		}
		return err ? err : pass_copy(p);
	}
	if (from->type == MESSAGE_DIRECTORY && !from->failed) {
		const struct compare_pair pair = compare_beside(from, to, p->params);

		p->f++;
		p->t++;
		return same(from, to, p->params->level) && !pair.owner && !pair.other
			       ? 0
			       : pass_beside(p, &pair);
	}
	p->t++;
	if (from->type == MESSAGE_DIRECTORY || from->type == MESSAGE_OTHER) {
		p->f++;
		if (from->type == MESSAGE_OTHER)
			pass_special(p, from);
		return 0;
	}
	if (!from->failed && !to->failed && same(from, to, p->params->level)) {
		err = pass_same(p, from, to);
		if (err <= 0) {
			p->f++;
			return err;
		}
	}
	count_replaced(p->plan, to);
	return pass_copy(p);
}

int compare_make(const struct compare_list *from, const struct compare_list *to,
	const struct compare_params *params, struct compare_plan *plan)
{
	struct pass p = {.from = from, .to = to, .params = params, .plan = plan};
	int err = 0;

	while (!err && (p.f < from->count || p.t < to->count)) {
		int order = p.f == from->count ? 1
			    : p.t == to->count ? -1
					       : selection_order(from->entries[p.f].name,
							 to->entries[p.t].name);

		err = order < 0 ? pass_copy(&p) : order > 0 ? pass_extra(&p) : pass_both(&p);
	}
	return err ? err : selection_sort(&plan->copy);
}
