/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/outgoing_keep: see outgoing_keep.h.
 */
#include "tree/outgoing_keep.h"

#include "tree/acls.h"
#include "tree/owners.h"
#include "tree/xattrs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What was read of one item, before it is known how much memory it takes. */
struct outgoing_kept {
	char user[OWNERS_NAME_MAX + 1], group[OWNERS_NAME_MAX + 1];
	char acl[TRANSFER_ACL_MAX + 1], default_acl[TRANSFER_ACL_MAX + 1];
	uint8_t xattrs[TRANSFER_XATTRS_MAX];
	size_t xattrs_len;
};

/* With the lock. */
static int outgoing_keep_names_locked(struct outgoing_keep *k, const struct stat *st,
	struct transfer_file *file, struct outgoing_kept *kept)
{
	int err = k->numeric || k->owners ? 0 : owners_new(&k->owners);

	if (err)
		return err;
	if (k->has & TRANSFER_HAS_OWNER) {
		file->uid = st->st_uid;
		if (!k->numeric)
			strcpy(kept->user, owners_name(k->owners, OWNERS_USER, st->st_uid));
	}
	if (k->has & TRANSFER_HAS_GROUP) {
		file->gid = st->st_gid;
		if (!k->numeric)
			strcpy(kept->group, owners_name(k->owners, OWNERS_GROUP, st->st_gid));
	}
	file->has |= k->has & (TRANSFER_HAS_OWNER | TRANSFER_HAS_GROUP);
	return 0;
}

static int outgoing_keep_names(struct outgoing_keep *k, const struct stat *st,
	struct transfer_file *file, struct outgoing_kept *kept)
{
	int err;

	pthread_mutex_lock(&k->lock);
	err = outgoing_keep_names_locked(k, st, file, kept);
	pthread_mutex_unlock(&k->lock);
	return err;
}

static int outgoing_keep_lists(const struct outgoing_keep *k, int fd, bool directory,
	struct transfer_file *file, struct outgoing_kept *kept)
{
	const struct acls_text text = {kept->acl, kept->default_acl, sizeof kept->acl};
	int lost = 0;

	if (k->has & TRANSFER_HAS_XATTRS) {
		lost = xattrs_read(fd, kept->xattrs, sizeof kept->xattrs, &kept->xattrs_len);
		if (lost < 0)
			return lost;
		file->has |= TRANSFER_HAS_XATTRS;
	}
	if (k->has & TRANSFER_HAS_ACLS) {
		lost |= acls_read(fd, directory, k->numeric, &text);
		file->has |= TRANSFER_HAS_ACLS;
	}
	if (lost)
		file->has |= TRANSFER_HAS_LOST;
	return 0;
}

/* Copies it all to memory of its own, which the file then points to. */
static int outgoing_keep_store(
	const struct outgoing_kept *kept, struct transfer_file *file, void **out)
{
	struct {
		struct wire_bytes *to;
		const void *from;
		size_t len;
	} const parts[] = {{&file->user, kept->user, strlen(kept->user)},
		{&file->group, kept->group, strlen(kept->group)},
		{&file->acl, kept->acl, strlen(kept->acl)},
		{&file->default_acl, kept->default_acl, strlen(kept->default_acl)},
		{&file->xattrs, kept->xattrs, kept->xattrs_len}};
	size_t room = 0;
	uint8_t *at;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		room += parts[i].len;
	if (!room)
		return 0;
	*out = at = malloc(room);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		memcpy(at, parts[i].from, parts[i].len);
		*parts[i].to = (struct wire_bytes){at, parts[i].len};
		at += parts[i].len;
	}
	return 0;
}

static void outgoing_kept_init(struct outgoing_kept *kept)
{
	kept->user[0] = kept->group[0] = kept->acl[0] = kept->default_acl[0] = '\0';
	kept->xattrs_len = 0;
}

int outgoing_keep_owner(
	struct outgoing_keep *k, const struct stat *st, struct transfer_file *file, void **out)
{
	struct outgoing_kept kept;
	int err;

	if (!(k->has & (TRANSFER_HAS_OWNER | TRANSFER_HAS_GROUP)))
		return 0;
	outgoing_kept_init(&kept);
	err = outgoing_keep_names(k, st, file, &kept);
	return err ? err : outgoing_keep_store(&kept, file, out);
}

int outgoing_keep_all(struct outgoing_keep *k, int fd, const struct stat *st,
	struct transfer_file *file, void **out)
{
	struct outgoing_kept kept;
	int err = 0;

	if (!k->has)
		return 0;
	outgoing_kept_init(&kept);
	if (k->has & (TRANSFER_HAS_OWNER | TRANSFER_HAS_GROUP))
		err = outgoing_keep_names(k, st, file, &kept);
	if (!err)
		err = outgoing_keep_lists(k, fd, S_ISDIR(st->st_mode), file, &kept);
	return err ? err : outgoing_keep_store(&kept, file, out);
}

void outgoing_keep_fini(struct outgoing_keep *k)
{
	owners_free(k->owners);
	k->owners = NULL;
}
