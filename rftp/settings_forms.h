/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_forms: forms of values that several settings have.
 *
 * To read one: 0 or -EINVAL, and `why` says what it may be.  To show one: what is read.
 */
#ifndef RFTP_SETTINGS_FORMS_H
#define RFTP_SETTINGS_FORMS_H

#include "rftp/ui/text.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

bool settings_is_auto(const char *value);
/* Which of some words it is: its number, or -EINVAL. */
#define SETTINGS_WORDS(words) words, sizeof(words) / sizeof *(words)
int settings_find_word(const char *const *words, size_t count, const char *value, struct text *why);
/* on, off, yes, no. */
int settings_parse_bool(const char *value, bool *out, struct text *why);
/* A file; or "none": "". */
int settings_set_path(char path[PATH_MAX], const char *value, struct text *why);
int settings_set_path_or_none(char path[PATH_MAX], const char *value, struct text *why);

/* A number; 0: "auto". */
void settings_show_number(uint32_t, struct text *out);
/* A size as it may be given: 64K. */
void settings_show_size(uint64_t, struct text *out);
/* A text; "": what stands for none. */
void settings_show_or_none(const char *value, const char *none, struct text *out);

#endif
