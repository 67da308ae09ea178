/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/attributes: proto/attributes, and what tree/xattrs, tree/acls and tree/owners make of
 * files and of what peers say.
 */
#include "tests/harness.h"

#include "proto/attributes.h"
#include "tests/scratch.h"
#include "tree/acl_names.h"
#include "tree/acls.h"
#include "tree/metadata.h"
#include "tree/owners.h"
#include "tree/xattrs.h"

#include <sys/xattr.h>

static struct attribute attribute(const char *name, const char *value)
{
	return (struct attribute){
		{(const uint8_t *)name, strlen(name)}, {(const uint8_t *)value, strlen(value)}};
}

static void a_list(void)
{
	uint8_t list[64];
	struct attribute a = attribute("user.a", "one"), b = attribute("user.b", ""), got;
	struct wire_bytes rest;
	size_t len = 0;

	CHECK_EQ(attributes_add(list, sizeof list, &len, &a), 0);
	CHECK_EQ(len, 2 + 6 + 2 + 3);
	CHECK_EQ(attributes_add(list, sizeof list, &len, &b), 0);
	rest = (struct wire_bytes){list, len};
	CHECK(attributes_ok(rest));
	CHECK(attributes_next(&rest, &got));
	CHECK(got.name.len == 6 && got.value.len == 3 && !memcmp(got.value.data, "one", 3));
	CHECK(attributes_next(&rest, &got));
	CHECK(got.name.data[5] == 'b' && !got.value.len);
	CHECK(!attributes_next(&rest, &got));
	for (size_t cut = 1; cut < len; cut++) /* a whole first one is a list, too */
		CHECK_EQ(attributes_ok((struct wire_bytes){list, cut}), cut == 13);
	/* no room, no name: nothing is added */
	len = 0;
	CHECK_EQ(attributes_add(list, 12, &len, &a), -EMSGSIZE);
	a.name.len = 0;
	CHECK_EQ(attributes_add(list, sizeof list, &len, &a), -EBADMSG);
	a = (struct attribute){{(const uint8_t *)"a\0b", 3}, {NULL, 0}};
	CHECK_EQ(attributes_add(list, sizeof list, &len, &a), -EBADMSG);
	CHECK_EQ(len, 0);
	CHECK(attributes_ok((struct wire_bytes){NULL, 0}));
}

static int scratch_file(const char **path)
{
	*path = scratch_path(scratch_dir(), "f");
	return open(*path, O_RDWR | O_CREAT, 0644);
}

static void of_users_alone(void)
{
	const char *path;
	int fd = scratch_file(&path);
	uint8_t list[4096];
	struct attribute keep = attribute("user.keep", "k"), bad = attribute("trusted.x", "t");
	char which[64] = "", value[8];
	size_t len = 0, all;

	if (fsetxattr(fd, "user.old", "o", 1, 0)) {
		SKIP("no extended attributes here");
	}
	CHECK_EQ(attributes_add(list, sizeof list, &len, &bad), 0);
	CHECK_EQ(attributes_add(list, sizeof list, &len, &keep), 0);
	/* what is not of users is refused, the rest is set, what is not in the list goes */
	CHECK_EQ(xattrs_write(fd, (struct wire_bytes){list, len}, which), EPERM);
	CHECK(!strcmp(which, "trusted.x"));
	CHECK_EQ(fgetxattr(fd, "user.keep", value, sizeof value), 1);
	CHECK(fgetxattr(fd, "user.old", value, sizeof value) < 0 && errno == ENODATA);
	CHECK(fgetxattr(fd, "trusted.x", value, sizeof value) < 0);
	/* one that does not fit is left out, and that is told */
	CHECK_EQ(fsetxattr(fd, "user.large", list, 1000, 0), 0);
	CHECK_EQ(xattrs_read(fd, list, sizeof list, &all), 0);
	CHECK_EQ(all, (2 + 9 + 2 + 1) + (2 + 10 + 2 + 1000));
	CHECK_EQ(xattrs_read(fd, list, 500, &len), 1);
	CHECK_EQ(len, 2 + 9 + 2 + 1);
	CHECK_EQ(xattrs_write(fd, (struct wire_bytes){NULL, 0}, which), 0);
	CHECK_EQ(xattrs_read(fd, list, sizeof list, &len), 0);
	CHECK_EQ(len, 0);
	close(fd);
}

static void lists_as_text(void)
{
	const char *path;
	int fd = scratch_file(&path);
	char access[64], standard[64];
	const struct acls_text text = {access, standard, sizeof access};

	if (acls_write(fd, false, "u::rw-,u:54321:r--,g::r--,m::r--,o::---", "") == EOPNOTSUPP) {
		SKIP("no access control lists here");
	}
	CHECK_EQ(acls_read(fd, false, true, &text), 0);
	CHECK(!strcmp(access, "u::rw-,u:54321:r--,g::r--,m::r--,o::---"));
	CHECK(!*standard);
	/* room for none: it is left out, and that is told */
	CHECK_EQ(acls_read(fd, false, true, &(struct acls_text){access, standard, 8}), 1);
	CHECK(!*access);
	CHECK_EQ(acls_write(fd, false, "u:nobody-is-called-this:rwx", ""), EINVAL);
	CHECK_EQ(acls_write(fd, false, "what?", ""), EINVAL);
	CHECK_EQ(acls_remove(fd, false), 0);
	CHECK_EQ(acls_remove(fd, false), 0);
	CHECK_EQ(acls_read(fd, false, true, &text), 0);
	CHECK(!*access);
	close(fd);
}

/* 0, or how many bytes of room; then what comes of it, or "" */
static const struct {
	const char *text, *out;
	size_t room;
	int put, get;
} named[] = {
	{"u::rw-,u:0:r--,g::r--,m::r--,o::---", "u::rw-,u:root:r--,g::r--,m::r--,o::---", 100, 0,
		0},
	{"user::rwx,group:0:x,mask::rwx,other::r", "user::rwx,group:root:x,mask::rwx,other::r", 100,
		0, 0},
	{"u:4000000000:rwx", "u:4000000000:rwx", 100, 0, 0},
	{"u:0:r--", "u:root:r--", 11, 0, 0},
	{"u:0:r--", "", 10, ENOSPC, 0},
	{"u:4294967296:r--", "", 100, EINVAL, EINVAL},
	{"u:nobody-is-called-this:r--", "", 100, EINVAL, EINVAL},
	{"u:00:r--", "u:root:r--", 100, 0, 0},
	{"u:no\\body:r--", "", 100, EINVAL, EINVAL},
	{"u:\\000:r--", "", 100, EINVAL, EINVAL},
	{"u:\\1:r--", "", 100, EINVAL, EINVAL},
	{"u:99999999999:r--", "", 100, EINVAL, EINVAL},
	{" u:0:r--", "", 100, EINVAL, EINVAL},
	{"d:u:0:r--", "", 100, EINVAL, EINVAL},
	{"u:0:r--#root", "", 100, EINVAL, EINVAL},
	{"u:0:r--\nu:root:r--", "", 100, EINVAL, EINVAL},
	{"u:0:rwxr", "", 100, EINVAL, EINVAL},
	{"m:0:r--", "", 100, EINVAL, EINVAL},
	{"x:0:r--", "", 100, EINVAL, EINVAL},
	{"u:0", "", 100, EINVAL, EINVAL},
	{"u", "", 100, EINVAL, EINVAL},
	{",", "", 100, EINVAL, EINVAL},
	{"", "", 100, 0, 0},
};

static void names_in_lists(void)
{
	char out[128], back[128];

	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		printf("# %s\n", named[i].text);
		CHECK_EQ(acl_names_put(named[i].text, out, named[i].room), named[i].put);
		CHECK(named[i].put || !strcmp(out, named[i].out));
		CHECK_EQ(acl_names_get(named[i].text, back, sizeof back), named[i].get);
		if (!named[i].put) {
			CHECK_EQ(acl_names_get(out, back, sizeof back), 0);
			CHECK(!strcmp(back, named[i].text) || strstr(named[i].text, ":00"));
		}
	}
	CHECK_EQ(acl_names_get("u:r\\157ot:r--", back, sizeof back), 0);
	CHECK(!strcmp(back, "u:0:r--"));
}

static void names_of_users(void)
{
	struct owners *o;

	CHECK_EQ(owners_new(&o), 0);
	CHECK(!strcmp(owners_name(o, OWNERS_USER, 0), "")); /* root is root everywhere */
	for (int i = 0; i < 100; i++) /* more than are remembered, twice each */
		CHECK(!strcmp(owners_name(o, OWNERS_GROUP, 900000u + (uint32_t)i / 2), ""));
	CHECK_EQ(owners_id(o, OWNERS_USER, "", 7), 7);
	CHECK_EQ(owners_id(o, OWNERS_USER, "nobody-is-called-this", 8), 8);
	CHECK_EQ(owners_id(o, OWNERS_USER, "nobody-is-called-this", 9), 9);
	CHECK_EQ(owners_id(o, OWNERS_USER, "root", 9), 0);
	CHECK_EQ(owners_id(o, OWNERS_GROUP, "root", 9), 0);
	if (*owners_name(o, OWNERS_USER, 1)) {
		char name[OWNERS_NAME_MAX + 1];

		strcpy(name, owners_name(o, OWNERS_USER, 1));
		CHECK_EQ(owners_id(o, OWNERS_USER, name, 4), 1);
	}
	owners_free(o);
}

/* What may not be set is noted, and costs nothing else. */
static void notes(void)
{
	const char *path;
	int fd = scratch_file(&path);
	struct metadata m = {.mode = 0640,
		.mtime_s = 5,
		.has_acls = true,
		.acl = "what?",
		.default_acl = "",
		.has_owner = true,
		.uid = geteuid(),
		.lost = true};
	char note[512];
	struct stat st;

	CHECK_EQ(metadata_set(fd, &m, note), 0);
	CHECK(strstr(note, "its access control list is not kept") ||
		strstr(note, "access control list is still there"));
	CHECK(strstr(note, "too large"));
	CHECK(!strstr(note, "owner"));
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0640);
	CHECK_EQ(st.st_mtim.tv_sec, 5);
	close(fd);
}

HARNESS_MAIN({"a list, whole and cut", a_list}, {"attributes of users alone", of_users_alone},
	{"access control lists as text", lists_as_text}, {"names in their text", names_in_lists},
	{"names of users and groups", names_of_users}, {"what is not kept is noted", notes})
