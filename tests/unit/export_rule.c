/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/export_rule: both forms of a line, and who may do what by them. */
#include "tests/harness.h"

#include "base/addr.h"
#include "rftpd/export_rule.h"
#include "tree/place.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static char why[256];

/* What a user may do from an address by a line. */
static unsigned rights(const char *text, const char *user, const char *from, bool open)
{
	struct export_rule *e;
	struct addr addr;
	size_t count;
	unsigned found;
	int r = export_rule_parse(text, &e, why, sizeof why);

	if (r || addr_resolve(from, 1, true, &addr, 1, &count)) {
		printf("# %s: %s\n", text, why);
		return UINT_MAX;
	}
	found = export_rule_rights(e, user, (struct sockaddr *)&addr.ss, open);
	export_rule_free(e);
	return found;
}

static void the_one_at_the_top(void)
{
	static const struct {
		const char *text, *directory;
		unsigned rights;
	} forms[] = {
		{"/srv", "/srv", PLACE_READ_ONLY},
		{"/srv:ro", "/srv", PLACE_READ_ONLY},
		{"/srv:rw", "/srv", PLACE_ALL},
		{"a:b:rw", "a:b", PLACE_ALL},
		{"/srv:rwx", "/srv:rwx", PLACE_READ_ONLY},
		{"x:ro:rw", "x:ro", PLACE_ALL},
		{"x:wr:ro", "x:wr", PLACE_READ_ONLY},
		{"/with a blank:rw", "/with a blank", PLACE_ALL},
		{"with a blank", "with a blank", PLACE_READ_ONLY},
		{"./a /b", "./a /b", PLACE_READ_ONLY},
	};
	struct export_rule *e;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		CHECK_EQ(export_rule_parse(forms[i].text, &e, why, sizeof why), 0);
		CHECK(!e->name && !strcmp(e->directory, forms[i].directory));
		CHECK(!strcmp(e->text, forms[i].text));
		CHECK_EQ(e->rights, forms[i].rights);
		export_rule_free(e);
	}
	CHECK_EQ(export_rule_parse("", &e, why, sizeof why), -EINVAL);
	CHECK_EQ(export_rule_parse(":rw", &e, why, sizeof why), -EINVAL);
	/* nearly rights are no part of a name, unless it is said that they are */
	CHECK_EQ(export_rule_parse("/srv:wr", &e, why, sizeof why), -EINVAL);
	CHECK(strstr(why, "neither :ro nor :rw"));
	CHECK_EQ(export_rule_parse("/srv:RW", &e, why, sizeof why), -EINVAL);
}

static void named(void)
{
	struct export_rule *e;

	CHECK_EQ(export_rule_parse(
			 "data \t/srv/my\\ data\\\\x  rights=read,append users=a,@anonymous,b "
			 "addresses=192.0.2.0/24,::1",
			 &e, why, sizeof why),
		0);
	CHECK(!strcmp(e->name, "data") && !strcmp(e->directory, "/srv/my data\\x"));
	CHECK_EQ(e->rights, PLACE_READ | PLACE_APPEND);
	CHECK_EQ(e->user_count, 3);
	CHECK_EQ(e->network_count, 2);
	export_rule_free(e);
	CHECK_EQ(export_rule_parse("data /srv", &e, why, sizeof why), 0);
	CHECK_EQ(e->rights, PLACE_READ_ONLY);
	export_rule_free(e);
}

static void what_is_wrong_is_named(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{".data /srv", ".data"},
		{"@data /srv", "@data"},
		{"a:b /srv", "a:b"},
		{"data /srv read", "\"read\""},
		{"data /srv rights=", "none of the rights"},
		{"data /srv rights=read,,list", "none of the rights"},
		{"data /srv rights=Read", "Read"},
		{"data /srv users=", "is no user"},
		{"data /srv users=a,,b", "is no user"},
		{"data /srv users=@all", "@all"},
		{"data /srv users=a,\n", "is no user"},
		{"data /srv users=a:b", "is no user"},
		{"data /srv users=a users=b", "given twice"},
		{"data /srv addresses=", "is no address"},
		{"data /srv addresses=192.0.2.1/24", "192.0.2.1/24"},
		{"data /srv right=read", "right"},
		{"data /srv =", "none of rights"},
	};
	char many[1024] = "data /srv users=a";
	struct export_rule *e;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int r = export_rule_parse(bad[i].text, &e, why, sizeof why);

		if (!r || !strstr(why, bad[i].says))
			printf("# %s: %d %s\n", bad[i].text, r, why);
		CHECK(r == -EINVAL && strstr(why, bad[i].says));
	}
	for (unsigned i = 0; i < EXPORT_RULE_LIST_MAX; i++)
		strcat(many, ",b");
	CHECK_EQ(export_rule_parse(many, &e, why, sizeof why), -EINVAL);
	memset(many, 'x', 70);
	strcpy(many + 70, " /srv");
	CHECK_EQ(export_rule_parse(many, &e, why, sizeof why), -EINVAL);
}

static void who_may_do_what(void)
{
	const char *here = "192.0.2.7", *there = "203.0.113.1";

	/* without users everybody is everybody; with them anonymous reads, unless more is said */
	CHECK_EQ(rights("/srv:rw", NULL, here, true), PLACE_ALL);
	CHECK_EQ(rights("/srv:rw", NULL, here, false), PLACE_READ_ONLY);
	CHECK_EQ(rights("/srv:rw", "alice", here, false), PLACE_ALL);
	CHECK_EQ(rights("d /srv rights=write", NULL, here, false), 0);
	CHECK_EQ(rights("d /srv rights=write,read", NULL, here, false), PLACE_READ);
	CHECK_EQ(rights("d /srv rights=write users=@anonymous", NULL, here, false), PLACE_WRITE);
	CHECK_EQ(rights("d /srv rights=write users=@anonymous", "alice", here, false), 0);
	CHECK_EQ(rights("d /srv users=alice", "alice", here, false), PLACE_READ_ONLY);
	CHECK_EQ(rights("d /srv users=alice", "alic", here, false), 0);
	CHECK_EQ(rights("d /srv users=alice", "bob", here, false), 0);
	CHECK_EQ(rights("d /srv users=alice", NULL, here, true), 0);
	CHECK_EQ(rights("d /srv users=@users", "bob", here, false), PLACE_READ_ONLY);
	CHECK_EQ(rights("d /srv users=@users", NULL, here, false), 0);
	/* a user cannot be called what stands for others */
	CHECK_EQ(rights("d /srv addresses=192.0.2.0/24", "bob", here, false), PLACE_READ_ONLY);
	CHECK_EQ(rights("d /srv addresses=192.0.2.0/24", "bob", there, false), 0);
	CHECK_EQ(rights("d /srv addresses=192.0.2.0/24 users=bob", "alice", here, false), 0);
}

HARNESS_MAIN({"the one at the top", the_one_at_the_top}, {"named", named},
	{"what is wrong is named", what_is_wrong_is_named}, {"who may do what", who_may_do_what})
