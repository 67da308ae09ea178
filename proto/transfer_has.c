/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/transfer_has: see transfer_has.h.
 */
#include "proto/transfer_has.h"

#include <string.h>

static bool transfer_text_ok(struct wire_bytes text)
{
	return !text.len || !memchr(text.data, 0, text.len);
}

bool transfer_has_ok(const struct transfer_file *m)
{
	if (m->has & ~TRANSFER_HAS_ALL)
		return false;
	/* a link has an owner; what is received and thrown away has nothing */
	if (m->kind == TRANSFER_FILE_LINK)
		return !(m->has & ~(TRANSFER_HAS_OWNER | TRANSFER_HAS_GROUP));
	if (m->kind != TRANSFER_FILE_REGULAR && m->kind != TRANSFER_FILE_DIRECTORY_END &&
		m->kind != TRANSFER_FILE_ATTRIBUTES)
		return !m->has;
	if (m->kind != TRANSFER_FILE_REGULAR &&
		m->has & (TRANSFER_HAS_HOLES | TRANSFER_HAS_IDENTITY))
		return false;
	if (m->kind == TRANSFER_FILE_DIRECTORY_END && m->has & TRANSFER_HAS_NAMES)
		return false;
	return transfer_text_ok(m->user) && transfer_text_ok(m->group) &&
	       transfer_text_ok(m->acl) && transfer_text_ok(m->default_acl) &&
	       (m->kind == TRANSFER_FILE_DIRECTORY_END || !m->default_acl.len) &&
	       attributes_ok(m->xattrs);
}

void transfer_has_get(struct transfer_file *m, struct wire *w)
{
	m->has = wire_get_u16(w);
	wire_require(w, m->has != 0);
	if (m->has & TRANSFER_HAS_OWNER) {
		m->uid = wire_get_u32(w);
		m->user = wire_get_bytes(w, TRANSFER_ACCOUNT_MAX);
	}
	if (m->has & TRANSFER_HAS_GROUP) {
		m->gid = wire_get_u32(w);
		m->group = wire_get_bytes(w, TRANSFER_ACCOUNT_MAX);
	}
	if (m->has & TRANSFER_HAS_XATTRS)
		m->xattrs = wire_get_bytes(w, TRANSFER_XATTRS_MAX);
	if (m->has & TRANSFER_HAS_ACLS) {
		m->acl = wire_get_bytes(w, TRANSFER_ACL_MAX);
		m->default_acl = wire_get_bytes(w, TRANSFER_ACL_MAX);
	}
	if (m->has & TRANSFER_HAS_IDENTITY)
		m->identity = wire_get_u64(w);
}

void transfer_has_put(const struct transfer_file *m, struct wire *w)
{
	wire_put_u16(w, m->has);
	if (m->has & TRANSFER_HAS_OWNER) {
		wire_put_u32(w, m->uid);
		wire_put_bytes(w, m->user, TRANSFER_ACCOUNT_MAX);
	}
	if (m->has & TRANSFER_HAS_GROUP) {
		wire_put_u32(w, m->gid);
		wire_put_bytes(w, m->group, TRANSFER_ACCOUNT_MAX);
	}
	if (m->has & TRANSFER_HAS_XATTRS)
		wire_put_bytes(w, m->xattrs, TRANSFER_XATTRS_MAX);
	if (m->has & TRANSFER_HAS_ACLS) {
		wire_put_bytes(w, m->acl, TRANSFER_ACL_MAX);
		wire_put_bytes(w, m->default_acl, TRANSFER_ACL_MAX);
	}
	if (m->has & TRANSFER_HAS_IDENTITY)
		wire_put_u64(w, m->identity);
}
