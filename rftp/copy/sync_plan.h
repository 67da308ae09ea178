/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_plan: the two directories of a sync as lists, and what is said of a plan that is
 * not carried out (dry-run): the commands of rftp's shell that would do the same.
 */
#ifndef RFTP_SYNC_PLAN_H
#define RFTP_SYNC_PLAN_H

#include "rftp/copy/sync.h"
#include "tree/compare.h"
#include "tree/filter.h"

/* What is in a local directory, by a thread that need not be the client's. */
struct sync_plan_walk {
	const struct settings *settings; /* may be read meanwhile */
	const char *directory;
	const struct filter *filter;
	struct compare_list *list;
	/* So many names so far; -errno ends it. */
	int (*listed)(void *ctx, size_t count);
	void *ctx;
};
/* 0; -errno of the directory itself, or `listed`'s; -ENOMEM. */
int sync_plan_walk_local(const struct sync_plan_walk *);
/* The same, by the client's, and shown. */
int sync_plan_list_local(
	struct client *, const char *directory, const struct filter *, struct compare_list *);
/* What is in the one at the server.  0 or -errno (reported). */
int sync_plan_list_remote(
	struct client *, const char *directory, const struct filter *, struct compare_list *);

/* Each name of a list that could not be looked at, reported. */
void sync_plan_tell_failed(struct client *, const struct compare_list *, const char *directory);

/* What is done at the destination before all else: a directory, a rename; names beneath it. */
void sync_plan_print_mkdir(struct client *, const struct sync_params *, const char *name);
void sync_plan_print_rename(
	struct client *, const struct sync_params *, const char *from, const char *to);
/* Mode, time or both of a name that is there. */
void sync_plan_print_attrs(
	struct client *, const struct sync_params *, const struct compare_pair *);
/* What a copy of one source would be: a line. */
void sync_plan_print_copy(struct client *, const char *command, const char *from, const char *to);
struct sync_plan {
	const struct compare_list *from, *to; /* empty: what is there is not known */
	const struct compare_plan *plan;
	bool remove; /* extra names, too */
};

/* Each command a line; with `json` an event. */
void sync_plan_print(struct client *, const struct sync_params *, const struct sync_plan *);

/* The same of names that are copied without a comparison, the plan's `copy`: finds out what they
 * are. `missing`: the destination is not there.  0 or -errno (reported). */
int sync_plan_print_names(struct client *, const struct sync_params *, const struct filter *,
	struct compare_plan *, bool missing);

#endif
