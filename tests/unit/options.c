/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/options: the command line, the settings' values, sizes and rates as text.
 */
#include "tests/harness.h"

#include "rftp/options.h"
#include "rftp/ui/units.h"

#include "base/number.h"
#include "proto/message.h"

static struct options options;
static struct text why;

/* Splits at blanks and parses; the words live in a buffer of this function. */
static int parse(const char *line)
{
	static char buffer[512];
	char *argv[32] = {(char *)"rftp"}, *rest = buffer, *word;
	static char *kept[32];
	int argc = 1;

	snprintf(buffer, sizeof buffer, "%s", line);
	while ((word = strsep(&rest, " ")))
		if (*word)
			argv[argc++] = word;
	memcpy(kept, argv, sizeof kept);
	text_clear(&why);
	return options_parse(argc, kept, &options, &why);
}

static bool says(const char *what)
{
	if (!strstr(text_str(&why), what))
		printf("# %s\n", text_str(&why));
	return strstr(text_str(&why), what);
}

static void actions(void)
{
	CHECK_EQ(parse(""), 0);
	CHECK_EQ(options.action, OPTIONS_SHELL);
	CHECK_EQ(options.count, 0);
	CHECK_EQ(parse("rftp://h"), 0);
	CHECK_EQ(options.action, OPTIONS_SHELL);
	CHECK_EQ(options.count, 1);
	CHECK_EQ(parse("a rftp://h/ -v b"), 0);
	CHECK_EQ(options.action, OPTIONS_COPY);
	CHECK_EQ(options.count, 3);
	CHECK(!strcmp(options.names[2], "b"));
	CHECK_EQ(parse("- rftp://h/x"), 0);
	CHECK(!strcmp(options.names[0], "-"));
	CHECK_EQ(parse("-- -r rftp://h/x"), 0);
	CHECK(!strcmp(options.names[0], "-r"));
	CHECK_EQ(parse("-c ls rftp://h"), 0);
	CHECK_EQ(options.action, OPTIONS_SHELL);
	CHECK(!strcmp(options.commands, "ls"));
	CHECK_EQ(parse("doctor"), 0);
	CHECK_EQ(options.action, OPTIONS_DOCTOR);
	CHECK_EQ(options.count, 0);
	CHECK_EQ(parse("doctor /tmp rftp://h --json"), 0);
	CHECK_EQ(options.action, OPTIONS_DOCTOR);
	CHECK_EQ(options.count, 2);
	CHECK(!strcmp(options.names[0], "/tmp") && options.settings.json);
	CHECK_EQ(parse("doctor a b"), -EINVAL);
	CHECK(says("./doctor"));
	CHECK_EQ(parse("doctor rftp://h rftp://i"), -EINVAL);
	CHECK_EQ(parse("./doctor rftp://h"), 0);
	CHECK_EQ(options.action, OPTIONS_COPY);
	CHECK_EQ(parse("feed"), 0);
	CHECK_EQ(options.action, OPTIONS_FEED);
	CHECK_EQ(options.count, 0);
	CHECK_EQ(parse("feed a=b rftp://h/"), 0);
	CHECK_EQ(options.action, OPTIONS_FEED);
	CHECK_EQ(options.count, 2);
	CHECK_EQ(parse("./feed rftp://h/"), 0);
	CHECK_EQ(options.action, OPTIONS_COPY);
	CHECK_EQ(parse("sftp://h/"), -EINVAL);
	CHECK(says("only rftp://"));
	CHECK_EQ(parse("-b -"), 0);
	CHECK(!strcmp(options.batch, "-"));
	CHECK_EQ(parse("a b --help --bogus"), 0);
	CHECK_EQ(options.action, OPTIONS_HELP);
	CHECK_EQ(parse("-V"), 0);
	CHECK_EQ(options.action, OPTIONS_VERSION);
}

static void sync_and_dry_run(void)
{
	CHECK_EQ(parse("-n --delete --max-delete=5 --compare=size sync a rftp://h/b"), 0);
	CHECK_EQ(options.action, OPTIONS_SYNC);
	CHECK_EQ(options.count, 2);
	CHECK(options.settings.dry_run &&
		options.settings.delete &&options.settings.max_delete == 5 &&
		options.settings.compare == COMPARE_SIZE);
	CHECK_EQ(parse("--max-delete=x sync a b"), -EINVAL);
	CHECK_EQ(parse("--filter x a b"), -EINVAL);
	CHECK(says("begins with"));
}

static void values(void)
{
	CHECK_EQ(
		parse("--fabric soft --engine credit --channels 7 --block 1M --depth 9 --direct on "
		      "--connect-timeout 3 --crc -rp --no-replace --json a b"),
		0);
	CHECK(!strcmp(options.settings.fabric, "soft"));
	CHECK_EQ(options.settings.engine, MESSAGE_ENGINE_CREDIT);
	CHECK_EQ(options.settings.channels, 7);
	CHECK_EQ(options.settings.block, 1 << 20);
	CHECK_EQ(options.settings.depth, 9);
	CHECK_EQ(options.settings.direct, END_DIRECT_ON);
	CHECK_EQ(options.settings.connect_timeout_ms, 3000);
	CHECK(options.settings.crc && options.settings.recursive && !options.settings.replace &&
		options.settings.json);
	CHECK_EQ(parse("--fabric auto --engine auto --channels auto --block auto --depth auto "
		       "--direct auto a b"),
		0);
	CHECK(!options.settings.fabric[0] && !options.settings.engine &&
		!options.settings.channels && !options.settings.block && !options.settings.depth);
	CHECK_EQ(options.settings.direct, END_DIRECT_AUTO);
	CHECK(options.settings.replace);
	CHECK_EQ(parse("--fabric soft,soft a b"), 0);
	CHECK(!strcmp(options.settings.fabric, "soft,soft"));
	CHECK_EQ(parse("--chan=2 a b"), 0);
	CHECK_EQ(options.settings.channels, 2);
}

static void verbosity(void)
{
	CHECK_EQ(parse("a b"), 0);
	CHECK_EQ(options.settings.verbosity, 0);
	CHECK_EQ(parse("-q a b"), 0);
	CHECK_EQ(options.settings.verbosity, -1);
	CHECK_EQ(parse("-v a b"), 0);
	CHECK_EQ(options.settings.verbosity, 1);
	CHECK_EQ(parse("-vvv a b"), 0);
	CHECK_EQ(options.settings.verbosity, 2);
}

static void refusals(void)
{
	CHECK_EQ(parse("-Z a b"), -EINVAL);
	CHECK(says("-Z is unknown"));
	CHECK_EQ(parse("--bogus=1"), -EINVAL);
	CHECK(says("--bogus is unknown"));
	CHECK_EQ(parse("--block"), -EINVAL);
	CHECK(says("--block needs a value"));
	CHECK_EQ(parse("-c"), -EINVAL);
	CHECK(says("-c needs a value"));
	CHECK_EQ(parse("--json=1"), -EINVAL);
	CHECK(says("--json takes no value"));
	CHECK_EQ(parse("--fabric x a b"), -EINVAL);
	CHECK(says("auto, ") && says("soft"));
	CHECK_EQ(parse("--fabric soft, a b"), -EINVAL);
	CHECK_EQ(parse("--fabric auto,soft a b"), -EINVAL);
	CHECK_EQ(parse("--engine x a b"), -EINVAL);
	CHECK(says("auto, credit"));
	CHECK_EQ(parse("--channels 65 a b"), -EINVAL);
	CHECK_EQ(parse("--channels 0 a b"), -EINVAL);
	CHECK_EQ(parse("--block 32K a b"), -EINVAL);
	CHECK_EQ(parse("--block 17M a b"), -EINVAL);
	CHECK_EQ(parse("--block 65537 a b"), -EINVAL);
	CHECK_EQ(parse("--depth 65537 a b"), -EINVAL);
	CHECK_EQ(parse("--direct maybe a b"), -EINVAL);
	CHECK(says("auto, on or off"));
	CHECK_EQ(parse("--connect-timeout 0 a b"), -EINVAL);
	CHECK_EQ(parse("-c a -c b"), -EINVAL);
	CHECK(says("twice"));
	CHECK_EQ(parse("-c a -b b"), -EINVAL);
	CHECK_EQ(parse("-c ls host"), -EINVAL);
	CHECK_EQ(parse("-c ls rftp://a rftp://b"), -EINVAL);
	CHECK_EQ(parse("file"), -EINVAL);
	CHECK(says("SRC... DST"));
}

/* What `set` shows is what `set` takes. */
static void shown_is_settable(void)
{
	struct settings s, again;

	CHECK_EQ(parse("--fabric soft --engine credit --channels 7 --block 192K --depth 9 --direct "
		       "off "
		       "--crc -rq --no-replace --json a b"),
		0);
	s = options.settings;
	settings_init(&again);
	for (unsigned i = 0; settings_at(i); i++) {
		struct text value = {0};

		settings_show(&s, i, &value);
		text_clear(&why);
		if (settings_set(&again, settings_at(i)->name, text_str(&value), &why))
			printf("# %s\n", text_str(&why));
		CHECK(!why.len);
		text_fini(&value);
	}
	CHECK(!strcmp(s.fabric, again.fabric));
	CHECK(s.engine == again.engine && s.channels == again.channels && s.block == again.block &&
		s.depth == again.depth && s.direct == again.direct && s.crc == again.crc &&
		s.recursive == again.recursive && s.replace == again.replace &&
		s.json == again.json && s.verbosity == again.verbosity);
	CHECK_EQ(settings_set(&s, "nothing", "1", &why), -ENOENT);
	CHECK(says("connect-timeout"));
}

static void sizes(void)
{
	uint64_t n;

	CHECK(!number_parse_size("0", &n) && n == 0);
	CHECK(!number_parse_size("12b", &n) && n == 12);
	CHECK(!number_parse_size("4k", &n) && n == 4096);
	CHECK(!number_parse_size("4KB", &n) && n == 4000);
	CHECK(!number_parse_size("3MiB", &n) && n == 3 << 20);
	CHECK(!number_parse_size("2T", &n) && n == 2ull << 40);
	CHECK(!number_parse_size("18446744073709551615", &n) && n == UINT64_MAX);
	CHECK_EQ(number_parse_size("18446744073709551616", &n), -ERANGE);
	CHECK_EQ(number_parse_size("99999999999G", &n), -ERANGE);
	CHECK_EQ(number_parse_size("", &n), -EINVAL);
	CHECK_EQ(number_parse_size("-1", &n), -EINVAL);
	CHECK_EQ(number_parse_size("1X", &n), -EINVAL);
	CHECK_EQ(number_parse_size("1Kx", &n), -EINVAL);
	CHECK_EQ(number_parse_size("./1G", &n), -EINVAL);
}

static void formats(void)
{
	char out[UNITS_TEXT_MAX];

	units_format_size(1023, out);
	CHECK(!strcmp(out, "1023 B"));
	units_format_size(1 << 20, out);
	CHECK(!strcmp(out, "1 MiB"));
	units_format_size(1536, out);
	CHECK(!strcmp(out, "1.5 KiB"));
	units_format_size(UINT64_MAX, out);
	CHECK(!strcmp(out, "16.0 EiB"));
	units_format_amount(999, out);
	CHECK(!strcmp(out, "999 B"));
	units_format_amount(UINT64_C(1) << 30, out);
	CHECK(!strcmp(out, "1.07 GB"));
	units_format_short(1023, out);
	CHECK(!strcmp(out, "1023"));
	units_format_short(1536, out);
	CHECK(!strcmp(out, "1.5K"));
	units_format_rate(0, out);
	CHECK(!strcmp(out, "0 B/s"));
	units_format_rate(4.6e9, out);
	CHECK(!strcmp(out, "4.60 GB/s"));
	units_format_rate(812e6, out);
	CHECK(!strcmp(out, "812 MB/s"));
	units_format_duration(7.4, out);
	CHECK(!strcmp(out, "0:07"));
	units_format_duration(3723, out);
	CHECK(!strcmp(out, "1:02:03"));
	units_format_duration(-1, out);
	CHECK(!strcmp(out, "--:--"));
}

HARNESS_MAIN({"actions", actions}, {"values", values}, {"sync_and_dry_run", sync_and_dry_run},
	{"verbosity", verbosity}, {"refusals", refusals}, {"shown_is_settable", shown_is_settable},
	{"sizes", sizes}, {"formats", formats})
