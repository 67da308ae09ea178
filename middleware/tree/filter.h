/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/filter: which names of a tree are copied: rules in the order in which they were given, of
 * which the first that matches decides.  What no rule matches is copied.  What rules mean is what
 * they mean to rsync(1), "FILTER RULES", as far as they go here:
 *
 *     + PATTERN, include PATTERN     it is copied
 *     - PATTERN, exclude PATTERN     it is left out, and of a directory all that is in it
 *     . FILE, merge FILE             the rules of a file, one a line
 *     .- FILE, .+ FILE               a file's lines are patterns, to be left out or copied
 *     !, clear                       all rules so far are forgotten
 *
 * A PATTERN (tree/pattern) that begins with '/' is matched against the whole name, from the top of
 * what is copied; one with another '/' or with "**" in it against the end of the name, from a '/'
 * on; any other against the last component alone.  One that ends in '/' matches directories only.
 * "dir/" and three stars are the directory and all that is in it.
 *
 * Pure but for the reading of files.  Any number of threads may ask one that does not change.
 */
#ifndef TREE_FILTER_H
#define TREE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#define FILTER_WHY_MAX 512u
#define FILTER_RULES_MAX 65536u
#define FILTER_FILE_BYTES_MAX (16u << 20)

struct filter { /* zeroed: no rules */
	struct filter_rule *rules;
	size_t count, room;
};

void filter_fini(struct filter *);

/* Adds one.  0; -EINVAL, or -errno of a file, and `why` says what is wrong; -ENOMEM, -E2BIG. */
int filter_add(struct filter *, const char *rule, char why[FILTER_WHY_MAX]);
int filter_add_pattern(
	struct filter *, bool include, const char *pattern, char why[FILTER_WHY_MAX]);

/* In a file of rules empty lines, and those that begin with '#' or ';', say nothing; in one of
 * patterns a line that begins with "+ " or "- ", or is "!", is a rule all the same. */

/* The i-th rule as it would be added again, without files: its pattern, and whether that is copied.
 * i < count. */
const char *filter_rule_pattern(const struct filter *, size_t i, bool *include);

/* Whether a name beneath the destination (components with '/' between, none in front) is left
 * out. */
bool filter_excludes(const struct filter *, const char *name, bool directory);

#endif
