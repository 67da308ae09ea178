/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/attributes: see attributes.h.
 */
#include "proto/attributes.h"

#include <string.h>

static bool attributes_name_ok(struct wire_bytes name)
{
	return name.len && name.len <= ATTRIBUTES_NAME_MAX && !memchr(name.data, 0, name.len);
}

int attributes_add(uint8_t *list, size_t size, size_t *len, const struct attribute *a)
{
	struct wire w;
	ssize_t n;

	wire_init_put(&w, list + *len, size - *len);
	wire_put_bytes(&w, a->name, ATTRIBUTES_NAME_MAX);
	wire_put_bytes(&w, a->value, UINT16_MAX);
	wire_require(&w, attributes_name_ok(a->name));
	n = wire_put_end(&w);
	if (n < 0)
		return (int)n;
	*len += (size_t)n;
	return 0;
}

bool attributes_next(struct wire_bytes *list, struct attribute *a)
{
	struct wire w;

	if (!list->len)
		return false;
	wire_init_get(&w, list->data, list->len);
	a->name = wire_get_bytes(&w, ATTRIBUTES_NAME_MAX);
	a->value = wire_get_bytes(&w, UINT16_MAX);
	if (w.error || !attributes_name_ok(a->name))
		return false;
	list->data += list->len - wire_left(&w);
	list->len = wire_left(&w);
	return true;
}

bool attributes_ok(struct wire_bytes list)
{
	struct attribute a;

	while (attributes_next(&list, &a))
		;
	return !list.len;
}
