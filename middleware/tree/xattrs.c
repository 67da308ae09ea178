/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/xattrs: see xattrs.h.
 */
#include "tree/xattrs.h"

#include "base/opener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define XATTRS_PREFIX "user."
#define XATTRS_NAMES_MAX 65536u /* XATTR_LIST_MAX, of the kernel */

static bool xattrs_is_users(const char *name)
{
	return !strncmp(name, XATTRS_PREFIX, strlen(XATTRS_PREFIX));
}

/* The names, each ended by a NUL.  Their bytes, 0: there are none; -errno. */
static ssize_t xattrs_names(int fd, char **names)
{
	ssize_t n = flistxattr(fd, NULL, 0);

	*names = NULL;
	if (n <= 0)
		return !n || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	*names = malloc(XATTRS_NAMES_MAX);
	if (!*names)
		return -ENOMEM;
	n = flistxattr(fd, *names, XATTRS_NAMES_MAX);
	return n < 0 ? -errno : n;
}

/* 0; 1: it is left out. */
static int xattrs_read_one(int fd, const char *name, uint8_t *list, size_t size, size_t *len)
{
	uint8_t value[UINT16_MAX];
	const size_t room = size - *len < sizeof value ? size - *len : sizeof value;
	ssize_t n;

	if (!room)
		return 1;
	n = opener_fgetxattr(fd, name, value, room);
	if (n < 0)
		return errno != ENODATA; /* it went away meanwhile */
	return attributes_add(list, size, len,
		       &(struct attribute){
			       {(const uint8_t *)name, strlen(name)}, {value, (size_t)n}}) != 0;
}

int xattrs_read(int fd, uint8_t *list, size_t size, size_t *len)
{
	char *names;
	ssize_t n = xattrs_names(fd, &names);
	int lost = n < 0;

	*len = 0;
	for (const char *at = names; n > 0 && at < names + n; at += strlen(at) + 1)
		if (xattrs_is_users(at))
			lost |= xattrs_read_one(fd, at, list, size, len);
	free(names);
	return n == -ENOMEM ? -ENOMEM : lost;
}

static bool xattrs_has(struct wire_bytes list, const char *name)
{
	struct attribute a;

	while (attributes_next(&list, &a))
		if (a.name.len == strlen(name) && !memcmp(a.name.data, name, a.name.len))
			return true;
	return false;
}

/* Notes the first that went wrong. */
static void xattrs_failed(int error, const char *name, int *first, char which[64])
{
	if (*first)
		return;
	*first = error;
	snprintf(which, 64, "%.63s", name);
}

static void xattrs_remove_others(int fd, struct wire_bytes list, int *first, char which[64])
{
	char *names;
	ssize_t n = xattrs_names(fd, &names);

	for (const char *at = names; n > 0 && at < names + n; at += strlen(at) + 1)
		if (xattrs_is_users(at) && !xattrs_has(list, at) && opener_fremovexattr(fd, at) &&
			errno != ENODATA)
			xattrs_failed(errno, at, first, which);
	free(names);
}

int xattrs_write(int fd, struct wire_bytes list, char which[64])
{
	char name[ATTRIBUTES_NAME_MAX + 1];
	struct attribute a;
	int first = 0;

	xattrs_remove_others(fd, list, &first, which);
	while (attributes_next(&list, &a)) {
		memcpy(name, a.name.data, a.name.len);
		name[a.name.len] = '\0';
		if (!xattrs_is_users(name))
			xattrs_failed(EPERM, name, &first, which);
		else if (opener_fsetxattr(fd, name, a.value.data, a.value.len, 0))
			xattrs_failed(errno, name, &first, which);
	}
	return first;
}
