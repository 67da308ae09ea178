/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/text: a string that grows.
 *
 * Running out of memory is sticky: later additions do nothing and text_take gives NULL, so a
 * message is built straight down and checked once.  A text of zeros is empty and ready for use.
 */
#ifndef RFTP_TEXT_H
#define RFTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
	char *data; /* terminated when not NULL */
	size_t len, size;
	bool failed;
};

void text_fini(struct text *);  /* frees; the text is empty again */
void text_clear(struct text *); /* empties, keeps the memory */
void text_add(struct text *, const char *, size_t);
void text_puts(struct text *, const char *);
void text_putc(struct text *, char);
void text_printf(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_cut(struct text *, size_t len); /* shortens to len */
/* The string, "" when empty; valid until the next change. */
const char *text_str(const struct text *);
/* Hands the string over to be freed by the caller and empties the text; NULL: out of memory. */
char *text_take(struct text *);

#endif
