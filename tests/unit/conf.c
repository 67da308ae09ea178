/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/conf: lines, comments, headings, and errors with file and line. */
#include "rftpd/conf.h"
#include "tests/harness.h"

#include <unistd.h>

static char seen[8192]; /* "name=value;" for each call */

static int note(void *ctx, const char *name, const char *value, char *why)
{
	(void)ctx;
	if (!strcmp(name, "refuse")) {
		snprintf(why, 256, "no %s", value);
		return -ENOENT;
	}
	snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s=%s;", name, value);
	return 0;
}

static int parse(const char *text, size_t len, char why[CONF_WHY_MAX])
{
	seen[0] = why[0] = '\0';
	return conf_parse(text, len, "test.conf", note, NULL, why);
}

static void what_is_a_setting(void)
{
	static const struct {
		const char *text, *settings;
	} good[] = {
		{"", ""},
		{"\n\n \t\r\n", ""},
		{"a=b", "a=b;"},
		{"a=b\n", "a=b;"},
		{"\xef\xbb\xbf"
		 "a = b",
			"a=b;"},
		{"  a  =  b c  \r\nd=\n", "a=b c;d=;"},
		{"# a = b\n  ; c = d\n", ""},
		{"a = b # c\n", "a=b # c;"},
		{"a = b = c\n", "a=b = c;"},
		{"[rftpd]\na=b", "a=b;"},
		{"  [ rftpd ]  \r\na=b\n[rftpd]\n", "a=b;"},
	};
	char why[CONF_WHY_MAX];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		int r = parse(good[i].text, strlen(good[i].text), why);

		if (r || strcmp(seen, good[i].settings) != 0)
			printf("# %zu: %d %s, %s\n", i, r, why, seen);
		CHECK(!r && !strcmp(seen, good[i].settings));
	}
}

static void what_is_not(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"a", "test.conf:1: "},
		{"a=b\nc\n", "test.conf:2: "},
		{"\n\n=b\n", "test.conf:3: "},
		{"[rftpd\n", "test.conf:1: "},
		{"[rftpd] x\n", "test.conf:1: "},
		{"[other]\n", "[other]"},
		{"[]\n", "test.conf:1: "},
		{"a=b\nrefuse = thing\n", "test.conf:2: no thing"},
	};
	char why[CONF_WHY_MAX];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int r = parse(bad[i].text, strlen(bad[i].text), why);

		if (!r || !strstr(why, bad[i].says))
			printf("# %zu: %d %s\n", i, r, why);
		CHECK(r && strstr(why, bad[i].says));
	}
	CHECK_EQ(parse("a\0=b", 4, why), -EINVAL);
	CHECK_EQ(parse("a=b\0c", 5, why), -EINVAL);
	CHECK(strstr(why, "NUL"));
}

static void how_long_it_may_be(void)
{
	static char text[3 * CONF_VALUE_MAX];
	char why[CONF_WHY_MAX];

	memset(text, 'x', sizeof text);
	text[1] = '=';
	CHECK_EQ(parse(text, 2 + CONF_VALUE_MAX - 1, why), 0);
	CHECK_EQ(strlen(seen), 3 + CONF_VALUE_MAX - 1);
	CHECK_EQ(parse(text, 2 + CONF_VALUE_MAX, why), -EINVAL);
	CHECK(strstr(why, "longer"));
	text[1] = 'x';
	text[CONF_VALUE_MAX] = '=';
	CHECK_EQ(parse(text, CONF_VALUE_MAX + 2, why), -EINVAL);
	CHECK(strstr(why, "longer"));
}

static void from_a_file(void)
{
	const char *top = getenv("TMPDIR");
	char path[256], why[CONF_WHY_MAX] = "";
	FILE *f;
	int fd;

	snprintf(path, sizeof path, "%s/rftp-conf-XXXXXX", top ? top : "/tmp");
	fd = mkstemp(path);
	CHECK(fd >= 0);
	f = fdopen(fd, "w");
	fprintf(f, "[rftpd]\nlisten = 127.0.0.1:0\n");
	fclose(f);
	seen[0] = '\0';
	CHECK_EQ(conf_load(path, note, NULL, why), 0);
	CHECK(!strcmp(seen, "listen=127.0.0.1:0;"));

	f = fopen(path, "w");
	for (unsigned i = 0; i <= CONF_FILE_MAX / 8; i++)
		fprintf(f, "#      \n");
	fclose(f);
	CHECK_EQ(conf_load(path, note, NULL, why), -EFBIG);
	unlink(path);
	CHECK_EQ(conf_load(path, note, NULL, why), -ENOENT);
	CHECK(strstr(why, path));
	CHECK_EQ(conf_load(top ? top : "/tmp", note, NULL, why), -EISDIR);
}

HARNESS_MAIN({"what is a setting", what_is_a_setting}, {"what is not", what_is_not},
	{"how long it may be", how_long_it_may_be}, {"from a file", from_a_file})
