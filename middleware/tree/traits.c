/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/traits.c: see traits.h.
 */
#include "tree/traits.h"

#include "base/opener.h"
#include "block/digest.h"
#include "proto/transfer.h"
#include "tree/acls.h"
#include "tree/beneath.h"
#include "tree/owners.h"
#include "tree/seen.h"
#include "tree/xattrs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A FIFO that took a file's place meanwhile must not hang us, a terminal not become ours. */
#define TRAITS_OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

struct traits {
	uint32_t flags;
	struct owners *owners;
	char user[OWNERS_NAME_MAX + 1], group[OWNERS_NAME_MAX + 1];
	char acl[TRANSFER_ACL_MAX + 1], default_acl[TRANSFER_ACL_MAX + 1];
	uint8_t xattrs[TRANSFER_XATTRS_MAX];
};

int traits_new(uint32_t flags, struct traits **out)
{
	struct traits *t;
	int err;

	*out = NULL;
	flags &= MESSAGE_TREE_OWNERS | MESSAGE_TREE_XATTRS | MESSAGE_TREE_ACLS |
		 MESSAGE_TREE_NUMERIC | MESSAGE_TREE_INODES | MESSAGE_TREE_CHANGES;
	if (!flags)
		return 0;
	t = malloc(sizeof *t);
	if (!t)
		return -ENOMEM;
	t->flags = flags;
	err = owners_new(&t->owners);
	if (err)
		free(t);
	else
		*out = t;
	return err;
}

void traits_free(struct traits *t)
{
	if (!t)
		return;
	owners_free(t->owners);
	free(t);
}

static struct wire_bytes traits_text(const char *text)
{
	return (struct wire_bytes){(const uint8_t *)text, strlen(text)};
}

static void traits_owners(struct traits *t, const struct stat *st, struct message_tree_entry *entry)
{
	entry->has |= MESSAGE_TREE_HAS_OWNERS;
	/* nobody but root may */
	if (!opener_uid())
		entry->has |= MESSAGE_TREE_HAS_GIVEN;
	if (t->flags & MESSAGE_TREE_NUMERIC)
		return;
	strcpy(t->user, owners_name(t->owners, OWNERS_USER, st->st_uid));
	strcpy(t->group, owners_name(t->owners, OWNERS_GROUP, st->st_gid));
	entry->user = traits_text(t->user);
	entry->group = traits_text(t->group);
}

/* Of all attributes, in whatever order the file system has them. */
static uint64_t traits_xattrs_number(struct wire_bytes list)
{
	const uint8_t *before = list.data;
	struct attribute a;
	uint64_t number = 0;

	while (attributes_next(&list, &a)) {
		number += digest_leaf(before, (size_t)(list.data - before));
		before = list.data;
	}
	return number;
}

static uint64_t traits_list_number(const char *acl, uint64_t which)
{
	return *acl ? digest_leaf(acl, strlen(acl)) * which : 0;
}

/* Of an open file or directory.  What cannot be read does not count.  0 or -ENOMEM. */
static int traits_number(struct traits *t, int fd, bool directory, uint64_t *number)
{
	const struct acls_text text = {t->acl, t->default_acl, sizeof t->acl};
	size_t len = 0;

	*number = 0;
	if (t->flags & MESSAGE_TREE_XATTRS) {
		int err = xattrs_read(fd, t->xattrs, sizeof t->xattrs, &len);

		if (err < 0)
			return err;
		*number = traits_xattrs_number((struct wire_bytes){t->xattrs, len});
	}
	if (t->flags & MESSAGE_TREE_ACLS) {
		(void)acls_read(fd, directory, t->flags & MESSAGE_TREE_NUMERIC, &text);
		*number += traits_list_number(t->acl, 3);
		*number += traits_list_number(t->default_acl, 5);
	}
	return 0;
}

static int traits_extra(
	struct traits *t, const struct traits_name *name, struct message_tree_entry *entry)
{
	const bool directory = S_ISDIR(name->st->st_mode);
	struct stat st;
	int fd = beneath_open(name->top, name->path,
		TRAITS_OPEN_FLAGS | (directory ? O_DIRECTORY : 0) | (name->follow ? 0 : O_NOFOLLOW),
		0);
	int err = 0;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && st.st_ino == name->st->st_ino && st.st_dev == name->st->st_dev) {
		err = traits_number(t, fd, directory, &entry->extra);
		entry->has |= MESSAGE_TREE_HAS_EXTRA;
	}
	close(fd);
	return err;
}

static uint64_t traits_inode(const struct stat *st)
{
	const uint64_t parts[] = {st->st_dev, st->st_ino};
	uint64_t number = digest_leaf(parts, sizeof(parts));

	return number ? number : 1;
}

int traits_look(struct traits *t, const struct traits_name *name, struct message_tree_entry *entry)
{
	const struct stat *st = name->st;

	if (!t || entry->status)
		return 0;
	if (t->flags & MESSAGE_TREE_OWNERS)
		traits_owners(t, st, entry);
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return 0;
	if (t->flags & MESSAGE_TREE_INODES && S_ISREG(st->st_mode) && st->st_nlink > 1) {
		entry->has |= MESSAGE_TREE_HAS_INODE;
		entry->inode = traits_inode(st);
	}
	if (t->flags & MESSAGE_TREE_CHANGES && S_ISREG(st->st_mode) && st->st_nlink == 1) {
		/* of several names what is done to one is done to all */
		entry->has |= MESSAGE_TREE_HAS_CHANGE;
		entry->change = seen_change(st);
	}
	return t->flags & (MESSAGE_TREE_XATTRS | MESSAGE_TREE_ACLS) ? traits_extra(t, name, entry)
								    : 0;
}
