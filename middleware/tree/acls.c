/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/acls: see acls.h.
 */
#include "tree/acls.h"

#include "base/opener.h"
#include "tree/acl_names.h"

#include <acl/libacl.h>
#include <endian.h>
#include <errno.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acl.h>
#include <sys/xattr.h>

#define ACLS_ACCESS "system.posix_acl_access"
#define ACLS_DEFAULT "system.posix_acl_default"
#define ACLS_PATH_BYTES 32
#define ACLS_NUMBERS_MAX 16384u /* of a list of TRANSFER_ACL_MAX with numbers instead of names */

/* libacl takes a descriptor for the access list alone. */
static void acls_path(int fd, char path[ACLS_PATH_BYTES])
{
	snprintf(path, ACLS_PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* Whether this error says that there is none. */
static bool acls_is_none(int error)
{
	return error == ENODATA || error == EOPNOTSUPP || error == ENOSYS;
}

/* 0; 1: it is left out.  Frees the list.  `bits`: one that says no more than permission bits do is
 * none. */
static int acls_to_text(acl_t acl, bool bits, bool numeric, const struct acls_text *text, char *out)
{
	char *made;
	int lost;

	if (!acl)
		return !acls_is_none(errno);
	if (!acl_entries(acl) || (bits && !acl_equiv_mode(acl, NULL))) {
		acl_free(acl);
		return 0;
	}
	made = acl_to_any_text(acl, NULL, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS);
	lost = !made ||
	       (numeric ? strlen(made) >= text->size : acl_names_put(made, out, text->size) != 0);
	if (lost)
		*out = '\0';
	else if (numeric)
		strcpy(out, made);
	if (made)
		acl_free(made);
	acl_free(acl);
	return lost;
}

int acls_read(int fd, bool directory, bool numeric, const struct acls_text *text)
{
	char path[ACLS_PATH_BYTES];
	int lost;

	text->access[0] = text->standard[0] = '\0';
	lost = acls_to_text(acl_get_fd(fd), true, numeric, text, text->access);
	if (!directory)
		return lost;
	acls_path(fd, path);
	return lost | acls_to_text(acl_get_file(path, ACL_TYPE_DEFAULT), false, numeric, text,
			      text->standard);
}

int acls_remove(int fd, bool directory)
{
	if (opener_fremovexattr(fd, ACLS_ACCESS) && !acls_is_none(errno))
		return errno;
	if (directory && opener_fremovexattr(fd, ACLS_DEFAULT) && !acls_is_none(errno))
		return errno;
	return 0;
}

/* ---- writing: as the kernel has lists, since libacl would make the call itself, and a user of the
 * host has another process for that (base/opener) ---- */

static int acls_put_entry(acl_entry_t entry, struct posix_acl_xattr_entry *out)
{
	acl_permset_t set;
	acl_tag_t tag;
	uint16_t bits;
	id_t *id = NULL;

	if (acl_get_tag_type(entry, &tag) || acl_get_permset(entry, &set))
		return errno;
	bits = (uint16_t)((acl_get_perm(set, ACL_READ) > 0 ? 4 : 0) |
			  (acl_get_perm(set, ACL_WRITE) > 0 ? 2 : 0) |
			  (acl_get_perm(set, ACL_EXECUTE) > 0 ? 1 : 0));
	if (tag == ACL_USER || tag == ACL_GROUP) {
		id = acl_get_qualifier(entry);
		if (!id)
			return errno;
	}
	*out = (struct posix_acl_xattr_entry){.e_tag = htole16((uint16_t)tag),
		.e_perm = htole16(bits),
		.e_id = htole32(id ? *id : (uint32_t)ACL_UNDEFINED_ID)};
	if (id)
		acl_free(id);
	return 0;
}

/* As the kernel wants them: by tag, then by id. */
static int acls_order(const void *a, const void *b)
{
	const struct posix_acl_xattr_entry *x = a, *y = b;
	uint32_t tags[] = {le16toh(x->e_tag), le16toh(y->e_tag)};
	uint32_t ids[] = {le32toh(x->e_id), le32toh(y->e_id)};

	if (tags[0] != tags[1])
		return tags[0] < tags[1] ? -1 : 1;
	return ids[0] < ids[1] ? -1 : ids[0] > ids[1];
}

/* Of a list's own: 0 or an errno. */
static int acls_set(int fd, const char *name, acl_t acl)
{
	int count = acl_entries(acl), n = 0, more, err = 0;
	size_t size = sizeof(struct posix_acl_xattr_header) +
		      (size_t)(count > 0 ? count : 0) * sizeof(struct posix_acl_xattr_entry);
	struct posix_acl_xattr_header *value = calloc(1, size);
	struct posix_acl_xattr_entry *entries;
	acl_entry_t entry;

	if (!value)
		return ENOMEM;
	entries = (void *)(value + 1);
	value->a_version = htole32(POSIX_ACL_XATTR_VERSION);
	for (more = acl_get_entry(acl, ACL_FIRST_ENTRY, &entry); more == 1 && n < count && !err;
		more = acl_get_entry(acl, ACL_NEXT_ENTRY, &entry))
		err = acls_put_entry(entry, &entries[n++]);
	if (!err) {
		qsort(entries, (size_t)n, sizeof(*entries), acls_order);
		err = opener_fsetxattr(fd, name, value, size, 0) ? errno : 0;
	}
	free(value);
	return err;
}

static int acls_write_one(int fd, const char *name, const char *text)
{
	char numbers[ACLS_NUMBERS_MAX];
	int err = acl_names_get(text, numbers, sizeof numbers);
	acl_t acl;

	if (err)
		return EINVAL;
	acl = acl_from_text(numbers);
	if (!acl)
		return errno ? errno : EINVAL;
	err = acl_valid(acl) ? EINVAL : acls_set(fd, name, acl);
	acl_free(acl);
	return err;
}

int acls_write(int fd, bool directory, const char *access, const char *standard)
{
	int err = *access ? acls_write_one(fd, ACLS_ACCESS, access) : 0;

	return !err && directory && *standard ? acls_write_one(fd, ACLS_DEFAULT, standard) : err;
}
