/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/pattern: what a shell's pattern matches, in time that grows no faster than the length of
 * pattern and text together multiplied: no pattern makes it slow.
 *
 * '?' is any byte but '/', '*' any number of them, "**" any number of bytes, '/' among them.
 * [abc], [a-z], [!abc], [^abc], [[:alpha:]] is one byte of a set, never '/'; a '[' without an end
 * is itself.  A backslash takes the meaning from the byte behind it.  All else, and each byte of
 * the text, is itself: names are bytes.
 */
#ifndef TREE_PATTERN_H
#define TREE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#define PATTERN_MAX 4096u /* bytes of a pattern */

struct pattern;

/* Any thread may match with it afterwards.  0; -ENAMETOOLONG: over PATTERN_MAX; -ENOMEM. */
int pattern_new(const char *text, size_t len, struct pattern **out);
void pattern_free(struct pattern *);

/* Whether it matches the text from its beginning to its end.  -ENOMEM is no match, either. */
bool pattern_matches(const struct pattern *, const char *text, size_t len);
/* The same from the text's beginning, or from behind any '/' in it, to its end. */
bool pattern_matches_end(const struct pattern *, const char *text, size_t len);

/* Whether it stands for one text alone. */
bool pattern_is_plain(const struct pattern *);

#endif
