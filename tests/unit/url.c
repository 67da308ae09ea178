/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/url: what rftp://HOST[:PORT]/PATH means, and what is refused.
 */
#include "tests/harness.h"

#include "rftp/remote/url.h"

/* Whether `text` is read as these. */
static bool reads(
	const char *text, const char *host, unsigned port, const char *path, const char *pattern)
{
	struct url url;
	const char *why;
	bool same;

	if (url_parse(text, &url, &why)) {
		printf("# %s: %s\n", text, why);
		return false;
	}
	same = !strcmp(url.host, host) && url.port == port && !strcmp(url.path, path) &&
	       !strcmp(url.pattern, pattern);
	if (!same)
		printf("# %s: host %s port %u path %s pattern %s\n", text, url.host, url.port,
			url.path, url.pattern);
	url_fini(&url);
	return same;
}

/* Whether it is refused with a reason. */
static bool refused(const char *text)
{
	struct url url;
	const char *why;
	int err = url_parse(text, &url, &why);

	if (!err)
		url_fini(&url);
	return err == -EINVAL && *why;
}

static void hosts(void)
{
	CHECK(reads("rftp://host", "host", 7387, "/", "/"));
	CHECK(reads("RFTP://host/", "host", 7387, "/", "/"));
	CHECK(reads("rftp://10.0.0.1:99/a/b", "10.0.0.1", 99, "/a/b", "/a/b"));
	CHECK(reads("rftp://[::1]/a", "::1", 7387, "/a", "/a"));
	CHECK(reads("rftp://[fe80::1%eth0]:7000/a:b", "fe80::1%eth0", 7000, "/a:b", "/a:b"));
	CHECK(reads("rftp://[fe80::1%25eth0]:7000/%25", "fe80::1%eth0", 7000, "/%", "/%"));
	CHECK(reads("rftp://u@[fe80::1%25]/", "fe80::1%25", 7387, "/", "/")); /* a zone called 25 */
}

static void users(void)
{
	struct url url;
	const char *why;

	CHECK(reads("rftp://alice@host/a", "host", 7387, "/a", "/a"));
	CHECK(reads("rftp://alice@[::1]:8/a", "::1", 8, "/a", "/a"));
	CHECK(reads("rftp://h/alice@x", "h", 7387, "/alice@x", "/alice@x"));
	CHECK_EQ(url_parse("rftp://a%40b%3ac@h", &url, &why), 0);
	CHECK(!strcmp(url.user, "a@b:c"));
	url_fini(&url);
	CHECK_EQ(url_parse("rftp://a@b@h", &url, &why), 0);
	CHECK(!strcmp(url.user, "a@b"));
	url_fini(&url);
	CHECK(reads("ssh://h", "h", 0, "/", "/") && reads("SSH://h:22//a", "h", 22, "//a", "//a"));
	CHECK(reads("ssh://[::1]/a", "::1", 0, "/a", "/a"));
	CHECK_EQ(url_parse("ssh://u@h", &url, &why), 0);
	CHECK(url.ssh && !strcmp(url.user, "u"));
	url_fini(&url);
	CHECK_EQ(url_parse("rftp://h", &url, &why), 0);
	CHECK(!*url.user && !url.ssh);
	url_fini(&url);
}

static void paths(void)
{
	CHECK(reads("rftp://h//a//", "h", 7387, "//a//", "//a//"));
	CHECK(reads("rftp://h/a%20b%2Fc", "h", 7387, "/a b/c", "/a b/c"));
	CHECK(reads("rftp://h/%ff%0a%C3%A9", "h", 7387, "/\xff\n\xc3\xa9", "/\xff\n\xc3\xa9"));
	CHECK(reads("rftp://h/a?b#c", "h", 7387, "/a?b#c", "/a?b#c"));
	CHECK(reads("rftp://h/../x", "h", 7387, "/../x", "/../x"));
}

static void patterns(void)
{
	CHECK(reads("rftp://h/*.[ch]", "h", 7387, "/*.[ch]", "/*.[ch]"));
	CHECK(reads("rftp://h/%2a%5B", "h", 7387, "/*[", "/\\*\\["));
	CHECK(reads("rftp://h/a\\b%5c", "h", 7387, "/a\\b\\", "/a\\\\b\\\\"));
}

/* Whether it is refused with these words. */
static bool says(const char *text, const char *words)
{
	struct url url;
	const char *why;

	if (!url_parse(text, &url, &why)) {
		url_fini(&url);
		return false;
	}
	if (!strstr(why, words))
		printf("# %s: %s\n", text, why);
	return strstr(why, words);
}

static void reasons(void)
{
	CHECK(says("sftp://h/", "only rftp:// and ssh://"));
	CHECK(says("ssh://h:0/", "port must be"));
	CHECK(says("ssh:///a", "host is missing"));
	CHECK(says("h/a", "begins with rftp://"));
	CHECK(says("rftp://h:99999/", "port must be a number from 1 to 65535"));
	CHECK(says("rftp://u:secret@h/", "a password does not belong into a URL"));
	CHECK(says("rftp://h:0/", "port must be"));
	CHECK(says("rftp://h:/", "port must be"));
	CHECK(says("rftp://h:x/", "port must be"));
	CHECK(says("rftp://[::1]:99999/", "port must be"));
	CHECK(says("rftp://::1/", "stands in brackets"));
	CHECK(says("rftp://[::1/", "[ADDRESS]"));
	CHECK(says("rftp://[::1]7/", "[ADDRESS]"));
	CHECK(says("rftp://[h]/", "no IPv6 address within"));
	CHECK(says("rftp:///a", "host is missing"));
	CHECK(says("rftp://:7/a", "host is missing"));
	CHECK(url_is_foreign("sftp://h") && url_is_foreign("svn+ssh://h"));
	CHECK(!url_is_foreign("rftp://h") && !url_is_foreign("h:7") && !url_is_foreign("://h"));
}

static void refusals(void)
{
	static const char *const bad[] = {"", "host/a", "http://h/", "rftp:/h/a", "rftp://",
		"rftp:///a", "rftp://h:0/a", "rftp://h:65536/", "rftp://h:/a", "rftp://h:12x/a",
		"rftp://::1/a", "rftp://[::1/a", "rftp://[::1]x/a", "rftp://@h/a",
		"rftp://u:secret@h/a", "rftp://u%4@h/a", "rftp://u%00@h/a", "rftp://h/%",
		"rftp://h/%4", "rftp://h/%zz", "rftp://h/%00", "rftp://h/a%0g"};
	char *longest = malloc(5000);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (!refused(bad[i]))
			printf("# not refused: %s\n", bad[i]);
		CHECK(refused(bad[i]));
	}
	CHECK(longest);
	memset(longest, 'a', 5000);
	memcpy(longest, "rftp://", 7);
	longest[4999] = '\0';
	CHECK(refused(longest));
	free(longest);
}

static void which_side(void)
{
	CHECK(url_is("rftp://h/a"));
	CHECK(url_is("rFtP://"));
	CHECK(!url_is("rftp:/h"));
	CHECK(!url_is("./rftp://h"));
	CHECK(!url_is(""));
}

HARNESS_MAIN({"hosts", hosts}, {"users", users}, {"paths", paths}, {"patterns", patterns},
	{"refusals", refusals}, {"reasons", reasons}, {"which_side", which_side})
