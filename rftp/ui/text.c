/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/text.c: owns the string's memory.
 */
#include "rftp/ui/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_fini(struct text *t)
{
	free(t->data);
	*t = (struct text){0};
}

void text_clear(struct text *t)
{
	t->len = 0;
	t->failed = false;
	if (t->data)
		t->data[0] = '\0';
}

/* Room for n more bytes and the NUL. */
static bool text_reserve(struct text *t, size_t n)
{
	size_t need = t->len + n + 1, size = t->size ? t->size : 32;
	char *data;

	if (t->failed)
		return false;
	if (need <= t->size)
		return true;
	while (size < need)
		size *= 2;
	data = realloc(t->data, size);
	if (!data) {
		t->failed = true;
		return false;
	}
	t->data = data;
	t->size = size;
	return true;
}

void text_add(struct text *t, const char *s, size_t n)
{
	if (!text_reserve(t, n))
		return;
	if (n)
		memcpy(t->data + t->len, s, n);
	t->len += n;
	t->data[t->len] = '\0';
}

void text_puts(struct text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

void text_putc(struct text *t, char c)
{
	text_add(t, &c, 1);
}

void text_printf(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n < 0) {
		t->failed = true;
		return;
	}
	if (!text_reserve(t, (size_t)n))
		return;
	va_start(ap, format);
	vsnprintf(t->data + t->len, (size_t)n + 1, format, ap);
	va_end(ap);
	t->len += (size_t)n;
}

void text_cut(struct text *t, size_t len)
{
	if (len >= t->len)
		return;
	t->len = len;
	t->data[len] = '\0';
}

const char *text_str(const struct text *t)
{
	return t->data ? t->data : "";
}

char *text_take(struct text *t)
{
	char *data = NULL;

	if (text_reserve(t, 0)) {
		t->data[t->len] = '\0';
		data = t->data;
	} else {
		free(t->data);
	}
	*t = (struct text){0};
	return data;
}
