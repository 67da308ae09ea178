/* SPDX-License-Identifier: Apache-2.0 */
/* rftp/remote/credentials: which entry counts, and what is no such file. */
#include "tests/harness.h"

#include "rftp/remote/credentials.h"
#include "tests/scratch.h"

static struct credentials got;

static int find(const char *text, const char *host, unsigned port, const char *user)
{
	unsigned line;

	return credentials_find(text, strlen(text), host, (uint16_t)port, user, &got, &line);
}

static bool is(const char *user, const char *password)
{
	return !strcmp(got.user, user) && !strcmp(got.password, password);
}

static void entries(void)
{
	static const char text[] =
		"# first\nmachine a login u1 password p1 # behind\n"
		"machine b:99 login u2\n\tpassword \"p \\\"2\\\\\"\n"
		"machine A login u3 password p3 machine [::1]:8 login u4 password p4\n"
		"default login u5 password p5";
	static const char comments[] = "#c\nmachine a #c\nlogin #u password #p# #c d\n"
				       "machine b login u password \"#p b\"";

	CHECK_EQ(find(text, "a", 7387, ""), 0);
	CHECK(is("u1", "p1"));
	CHECK_EQ(find(text, "a", 7387, "u3"), 0);
	CHECK(is("u3", "p3"));
	CHECK_EQ(find(text, "b", 99, ""), 0);
	CHECK(is("u2", "p \"2\\"));
	CHECK_EQ(find(text, "::1", 8, "u4"), 0);
	CHECK(is("u4", "p4"));
	CHECK_EQ(find(text, "b", 7387, ""), 0);
	CHECK(is("u5", "p5"));
	CHECK_EQ(find(text, "a", 7387, "u5"), 0);
	CHECK(is("u5", "p5"));
	CHECK_EQ(find(text, "a", 7387, "u2"), -ENOENT);
	CHECK(is("", ""));
	CHECK_EQ(find("machine a password p login u", "a", 7387, "u"), 0);
	CHECK(is("u", "p"));
	CHECK_EQ(find("machine a login u", "a", 7387, ""), 0); /* a user alone */
	CHECK(is("u", ""));
	CHECK_EQ(find("", "a", 7387, ""), -ENOENT);
	/* a value may begin as a comment does */
	CHECK_EQ(find(comments, "a", 7387, ""), 0);
	CHECK(is("#u", "#p#"));
	CHECK_EQ(find(comments, "b", 7387, ""), 0);
	CHECK(is("u", "#p b"));
	CHECK_EQ(find("machine a password p", "a", 7387, ""), -ENOENT);
}

static void wrong_forms(void)
{
	static const char *const bad[] = {"login u", "machine", "machine a login",
		"machine a nonsense x", "machine a login \"u", "machine a login \"\"", "x",
		"machine a login \"u\nv\""};
	char longest[2000];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (find(bad[i], "a", 7387, "") != -EINVAL)
			printf("# %s\n", bad[i]);
		CHECK_EQ(find(bad[i], "a", 7387, ""), -EINVAL);
		CHECK(is("", ""));
	}
	memset(longest, 'x', sizeof longest);
	memcpy(longest, "machine a login ", 16);
	longest[16 + 300] = '\0'; /* too long for a user */
	CHECK_EQ(find(longest, "a", 7387, ""), -EINVAL);
	longest[16 + 300] = 'x';
	longest[sizeof longest - 1] = '\0';
	CHECK_EQ(find(longest, "a", 7387, ""), -EINVAL);
}

static void files(void)
{
	const char *path = scratch_path(scratch_dir(), "credentials");
	char why[PASSWORD_WHY_MAX], copy[300];

	snprintf(copy, sizeof copy, "%s", path);
	CHECK_EQ(credentials_load(copy, "a", 7387, "", &got, why), -ENOENT);
	CHECK(scratch_write(copy, "machine x login u\nmachine x y z"));
	CHECK(!chmod(copy, 0600));
	CHECK_EQ(credentials_load(copy, "a", 7387, "", &got, why), -EINVAL);
	CHECK(strstr(why, ":2: "));
	CHECK(scratch_write(copy, "machine a login u password p\n"));
	CHECK_EQ(credentials_load(copy, "a", 7387, "", &got, why), 0);
	CHECK(is("u", "p"));
	for (unsigned bit = 1; bit <= 040; bit *= 2) {
		CHECK(!chmod(copy, 0600 | bit));
		CHECK_EQ(credentials_load(copy, "a", 7387, "", &got, why), -EPERM);
		CHECK(strstr(why, "chmod 600"));
	}
}

HARNESS_MAIN({"entries", entries}, {"wrong forms", wrong_forms}, {"files", files})
