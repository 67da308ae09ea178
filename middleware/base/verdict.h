/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/verdict: how a failure travels: how much of what was going on it ends, what it is, and a
 * sentence for people.
 *
 * It is written once, where the failure is detected.  The first one wins: what fails after it fails
 * because of it.  Only the scope grows, when a later failure takes more with it.  An -errno on its
 * way up beside a verdict says no more than that something failed.
 *
 * Statuses are numbers to this module, with 0 for "nothing has failed"; proto/status.h has them.
 * One thread owns a verdict.
 */
#ifndef BASE_VERDICT_H
#define BASE_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#define VERDICT_TEXT 512 /* with its NUL */

/* What cannot go on.  Each takes with it what stands before it. */
enum verdict_scope {
	VERDICT_NONE,
	VERDICT_BLOCK,    /* it is thrown away, and its file fails with it */
	VERDICT_FILE,     /* others go on */
	VERDICT_TRANSFER, /* the session goes on */
	VERDICT_SESSION,  /* its stream of frames, or its memory, is not to be trusted any more */
};

struct verdict {
	enum verdict_scope scope;
	uint16_t status;
	char text[VERDICT_TEXT]; /* may be "": the status says it all; with status 0, a note */
};

/* `status` must not be 0. */
void verdict_set(struct verdict *, enum verdict_scope, uint16_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Nothing failed, and yet there is something to be said: what fails later takes its place. */
void verdict_note(struct verdict *, const char *text, size_t len);
/* The same of another verdict; one of nothing changes nothing. */
void verdict_join(struct verdict *, const struct verdict *);
/* As if nothing had failed. */
void verdict_clear(struct verdict *);

#endif
