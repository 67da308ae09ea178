/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/deadline: see deadline.h.
 */
#include "rftpd/serve/deadline.h"

#include <stddef.h>

void deadline_list_init(struct deadline_list *list, uint64_t length_ns)
{
	TAILQ_INIT(&list->running);
	list->length_ns = length_ns;
}

void deadline_list_change(struct deadline_list *list, uint64_t length_ns)
{
	struct deadline *d, *next;

	for (d = TAILQ_FIRST(&list->running); d; d = next) {
		next = TAILQ_NEXT(d, entry);
		if (length_ns)
			d->expires_ns = d->expires_ns - list->length_ns + length_ns;
		else
			deadline_stop(d);
	}
	list->length_ns = length_ns;
}

void deadline_start(struct deadline_list *list, struct deadline *d, uint64_t now_ns)
{
	struct deadline *before;

	deadline_stop(d);
	if (!list->length_ns)
		return;
	d->list = list;
	d->expires_ns = now_ns + list->length_ns;
	before = TAILQ_LAST(&list->running, deadline_running);
	while (before && before->expires_ns > d->expires_ns) /* it began some time ago */
		before = TAILQ_PREV(before, deadline_running, entry);
	if (before)
		TAILQ_INSERT_AFTER(&list->running, before, d, entry);
	else
		TAILQ_INSERT_HEAD(&list->running, d, entry);
}

void deadline_stop(struct deadline *d)
{
	if (!d->list)
		return;
	TAILQ_REMOVE(&d->list->running, d, entry);
	d->list = NULL;
}

uint64_t deadline_first_ns(const struct deadline_list *list)
{
	const struct deadline *first = TAILQ_FIRST(&list->running);

	return first ? first->expires_ns : UINT64_MAX;
}

struct deadline *deadline_expired(struct deadline_list *list, uint64_t now_ns)
{
	struct deadline *first = TAILQ_FIRST(&list->running);

	if (!first || first->expires_ns > now_ns)
		return NULL;
	deadline_stop(first);
	return first;
}
