/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/verdict: see verdict.h.
 */
#include "base/verdict.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Whether it is the first. */
static bool begin(struct verdict *v, enum verdict_scope scope, uint16_t status)
{
	bool first = !v->status;

	assert(status && scope != VERDICT_NONE);
	if (scope > v->scope)
		v->scope = scope;
	if (first)
		v->status = status;
	return first;
}

void verdict_set(
	struct verdict *v, enum verdict_scope scope, uint16_t status, const char *format, ...)
{
	va_list ap;

	if (!begin(v, scope, status))
		return;
	va_start(ap, format);
	vsnprintf(v->text, sizeof v->text, format, ap);
	va_end(ap);
}

void verdict_note(struct verdict *v, const char *text, size_t len)
{
	if (!v->status)
		snprintf(v->text, sizeof v->text, "%.*s", (int)len, text);
}

void verdict_join(struct verdict *v, const struct verdict *other)
{
	if (other->status)
		verdict_set(v, other->scope, other->status, "%s", other->text);
}

void verdict_clear(struct verdict *v)
{
	v->scope = VERDICT_NONE;
	v->status = 0;
	v->text[0] = '\0';
}
