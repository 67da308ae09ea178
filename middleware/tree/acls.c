/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/acls: see acls.h.
 */
#include "tree/acls.h"

#include "base/opener.h"

#include <acl/libacl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/acl.h>
#include <sys/xattr.h>

#define ACLS_ACCESS "system.posix_acl_access"
#define ACLS_DEFAULT "system.posix_acl_default"
#define ACLS_PATH_BYTES 32

/* libacl asks for names by getpwnam and its like, whose answers stand in memory that all threads
 * share; so one at a time makes text of a list, or a list of text. */
static pthread_mutex_t acls_names = PTHREAD_MUTEX_INITIALIZER;

static char *acls_text(acl_t acl, bool numeric)
{
	char *text;

	pthread_mutex_lock(&acls_names);
	text = acl_to_any_text(acl, NULL, ',', TEXT_ABBREVIATE | (numeric ? TEXT_NUMERIC_IDS : 0));
	pthread_mutex_unlock(&acls_names);
	return text;
}

static acl_t acls_parse(const char *text)
{
	acl_t acl;

	pthread_mutex_lock(&acls_names);
	acl = acl_from_text(text);
	pthread_mutex_unlock(&acls_names);
	return acl;
}

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
	int lost = 1;

	if (!acl)
		return !acls_is_none(errno);
	if (!acl_entries(acl) || (bits && !acl_equiv_mode(acl, NULL))) {
		acl_free(acl);
		return 0;
	}
	made = acls_text(acl, numeric);
	if (made && strlen(made) < text->size) {
		strcpy(out, made);
		lost = 0;
	}
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

int acls_write(int fd, bool directory, const char *access, const char *standard)
{
	char path[ACLS_PATH_BYTES];
	acl_t acl;
	int err = 0;

	if (*access) {
		acl = acls_parse(access);
		if (!acl || acl_set_fd(fd, acl))
			err = errno ? errno : EINVAL;
		if (acl)
			acl_free(acl);
	}
	if (!err && directory && *standard) {
		acls_path(fd, path);
		acl = acls_parse(standard);
		if (!acl || acl_set_file(path, ACL_TYPE_DEFAULT, acl))
			err = errno ? errno : EINVAL;
		if (acl)
			acl_free(acl);
	}
	return err;
}
