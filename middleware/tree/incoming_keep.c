/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_keep: see incoming_keep.h.
 */
#include "tree/incoming_keep.h"

#include "tree/owners.h"

/* The number here of a user or group there. */
static int incoming_keep_id(struct incoming_keep *k, enum owners_kind kind, struct wire_bytes name,
	uint32_t there, uint32_t *here)
{
	int err = k->owners || !name.len ? 0 : owners_new(&k->owners);

	*here = there;
	if (!err && name.len)
		*here = owners_id(k->owners, kind, (const char *)name.data, there);
	return err;
}

int incoming_keep_metadata(
	struct incoming_keep *k, const struct transfer_file *file, struct metadata *m)
{
	const uint16_t has = file->has & k->has;
	int err = 0;

	*m = (struct metadata){.mode = (mode_t)file->mode,
		.mtime_s = file->mtime_s,
		.mtime_ns = file->mtime_ns,
		.set_id = k->set_id,
		.has_owner = has & TRANSFER_HAS_OWNER,
		.has_group = has & TRANSFER_HAS_GROUP,
		.has_xattrs = has & TRANSFER_HAS_XATTRS,
		.has_acls = has & TRANSFER_HAS_ACLS,
		.lost = has & TRANSFER_HAS_LOST,
		.xattrs = file->xattrs,
		.acl = (const char *)file->acl.data,
		.default_acl = (const char *)file->default_acl.data};
	if (m->has_owner)
		err = incoming_keep_id(k, OWNERS_USER, file->user, file->uid, &m->uid);
	if (!err && m->has_group)
		err = incoming_keep_id(k, OWNERS_GROUP, file->group, file->gid, &m->gid);
	return err;
}

void incoming_keep_fini(struct incoming_keep *k)
{
	owners_free(k->owners);
	k->owners = NULL;
}
