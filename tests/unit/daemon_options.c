/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/daemon_options and daemon_settings: every option, every form, which source outweighs which.
 */
#include "rftpd/conf.h"
#include "rftpd/daemon_options.h"
#include "tests/harness.h"
#include "tree/place.h"

static char why[DAEMON_WHY_MAX];

/* Words with blanks between; none has one. */
static int parse(struct daemon_options *o, const char *line)
{
	static char words[4096];
	char *argv[64] = {"rftpd"}, *at;
	int argc = 1;

	snprintf(words, sizeof words, "%s", line);
	for (at = strtok(words, " "); at; at = strtok(NULL, " "))
		argv[argc++] = at;
	return daemon_options_parse(o, argc, argv, why);
}

static void defaults(void)
{
	struct daemon_options o;

	CHECK_EQ(parse(&o, ""), 0);
	CHECK_EQ(o.action, DAEMON_ACTION_SERVE);
	CHECK(!o.settings.audit_log);
	CHECK(!o.config && !o.settings.export_count && !o.settings.listen_count);
	CHECK(!o.settings.insecure && !o.settings.crc);
	CHECK(!o.settings.users && o.settings.anonymous == DAEMON_ANONYMOUS_AUTO);
	CHECK_EQ(o.settings.login_timeout_s, 60);
	CHECK_EQ(o.settings.max_sessions, 4096);
	CHECK_EQ(o.settings.max_per_address, 1024);
	CHECK_EQ(o.settings.max_channels, 64);
	CHECK_EQ(o.settings.max_block_bytes, 16 << 20);
	CHECK_EQ(o.settings.max_window_bytes, 512 << 20);
	CHECK_EQ(o.settings.handshake_timeout_s, 10);
	CHECK_EQ(o.settings.idle_timeout_s, 900);
	CHECK_EQ(o.settings.log_level, LOG_LEVEL_INFO);
	daemon_options_fini(&o);
}

static void every_option(void)
{
	struct daemon_options o;

	CHECK_EQ(
		parse(&o,
			"--listen 127.0.0.1:0 --listen [::1]:5 --export /srv:rw --config /etc/x -t "
			"--foreground --insecure --fabric soft --crc --max-sessions 7 "
			"--max-per-address 6 "
			"--max-channels=3 "
			"--max-block 64K --max-window 2MiB --handshake-timeout 5 --idle-timeout 9 "
			"--memory 1G --open-files 100 --threads 9 --stall-timeout 0 "
			"--log-level debug --audit-log /var/log/x"),
		0);
	CHECK_EQ(o.action, DAEMON_ACTION_TEST);
	CHECK_EQ(o.settings.listen_count, 2);
	CHECK(!strcmp(o.settings.listen[1], "[::1]:5"));
	CHECK_EQ(o.settings.export_count, 1);
	CHECK(!strcmp(o.settings.exports[0]->directory, "/srv"));
	CHECK_EQ(o.settings.exports[0]->rights, PLACE_ALL);
	CHECK(!strcmp(o.config, "/etc/x"));
	CHECK(!strcmp(o.settings.fabric, "soft"));
	CHECK(o.settings.insecure && o.settings.crc);
	CHECK_EQ(o.settings.max_sessions, 7);
	CHECK_EQ(o.settings.max_per_address, 6);
	CHECK(!strcmp(o.settings.audit_log, "/var/log/x"));
	CHECK_EQ(o.settings.max_channels, 3);
	CHECK_EQ(o.settings.max_block_bytes, 65536);
	CHECK_EQ(o.settings.max_window_bytes, 2 << 20);
	CHECK_EQ(o.settings.memory_bytes, 1 << 30);
	CHECK_EQ(o.settings.open_files, 100);
	CHECK_EQ(o.settings.threads, 9);
	CHECK_EQ(o.settings.stall_timeout_s, 0);
	CHECK_EQ(o.settings.handshake_timeout_s, 5);
	CHECK_EQ(o.settings.idle_timeout_s, 9);
	CHECK_EQ(o.settings.log_level, LOG_LEVEL_DEBUG);
	daemon_options_fini(&o);

	CHECK_EQ(parse(&o, "--help -t"), 0);
	CHECK_EQ(o.action, DAEMON_ACTION_HELP);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "--version"), 0);
	CHECK_EQ(o.action, DAEMON_ACTION_VERSION);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "--max-window 64000KB --memory 64000KiB"), 0); /* as rftp takes them */
	CHECK_EQ(o.settings.max_window_bytes, 64000 * 1000);
	CHECK_EQ(o.settings.memory_bytes, 64000 * 1024);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "-V"), 0);
	CHECK_EQ(o.action, DAEMON_ACTION_VERSION);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "-h"), 0);
	CHECK_EQ(o.action, DAEMON_ACTION_HELP);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "--listen 7387 --listen 0"), 0);
	CHECK(!strcmp(o.settings.listen[0], "127.0.0.1:7387"));
	CHECK(!strcmp(o.settings.listen[1], "127.0.0.1:0"));
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "-tc /etc/x --foreground"), 0);
	CHECK_EQ(o.action, DAEMON_ACTION_TEST);
	CHECK(!strcmp(o.config, "/etc/x"));
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "-qq -v --max-sessions 1 --max-sessions 2"), 0);
	CHECK_EQ(o.settings.log_level, LOG_LEVEL_WARNING);
	CHECK_EQ(o.settings.max_sessions, 2);
	daemon_options_fini(&o);
}

static bool startups_are(const char *value, unsigned begin, unsigned percent, unsigned full)
{
	char line[64];
	struct daemon_options o;
	bool good;

	snprintf(line, sizeof line, "--max-startups %s", value);
	good = !parse(&o, line) && o.settings.startups.begin == begin &&
	       o.settings.startups.percent == percent && o.settings.startups.full == full;
	daemon_options_fini(&o);
	return good;
}

static void startups(void)
{
	static const char *const wrong[] = {"", "0", ":", "1:", "1:2", "1:2:3:", "1:2:3:4", "1::3",
		"5:30:4", "5:0:9", "5:101:9", "5 :30:9", "x", "5:30:1000001",
		"99999999999999999999", "0000000000000000000000000000000000007"};
	struct daemon_options o;

	CHECK(startups_are("10:30:100", 10, 30, 100));
	CHECK(startups_are("5:100:5", 5, 100, 5));
	CHECK(startups_are("7", 7, 100, 7));
	CHECK(startups_are("0000000000000001234", 1234, 100, 1234)); /* not cut to another */
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char value[40], *argv[] = {"rftpd", "--max-startups", value, NULL};

		snprintf(value, sizeof value, "%s", wrong[i]);
		CHECK_EQ(daemon_options_parse(&o, 3, argv, why), -EINVAL);
		CHECK(strstr(why, "max-startups"));
		daemon_options_fini(&o);
	}
	CHECK_EQ(parse(&o, "--penalties all"), 0);
	CHECK(o.settings.penalties == DAEMON_PENALTIES_ALL);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "--penalties"), -EINVAL);
	daemon_options_fini(&o);
	CHECK_EQ(parse(&o, "--penalties some"), -EINVAL);
	daemon_options_fini(&o);
}

static int add(struct daemon_settings *s, const char *name, const char *value)
{
	return daemon_settings_set(s, DAEMON_ORIGIN_COMMAND, name, value, why);
}

static void exports(void)
{
	struct daemon_settings s;

	daemon_settings_init(&s);
	CHECK_EQ(add(&s, "export", "a /srv/a"), 0);
	CHECK_EQ(add(&s, "export", "a /srv/b"), 0);
	CHECK_EQ(add(&s, "export", "/srv"), -EEXIST);
	CHECK_EQ(s.export_count, 2);
	daemon_settings_fini(&s);
	daemon_settings_init(&s);
	CHECK_EQ(add(&s, "export", ""), -EINVAL);
	CHECK_EQ(add(&s, "export", "/srv"), 0);
	CHECK_EQ(add(&s, "export", "a /srv/a"), -EEXIST);
	daemon_settings_fini(&s);
	daemon_settings_init(&s);
	for (unsigned i = 0; i < DAEMON_EXPORTS_MAX; i++)
		CHECK_EQ(add(&s, "export", "a /srv/a"), 0);
	CHECK_EQ(add(&s, "export", "a /srv/a"), -ENOSPC);
	daemon_settings_fini(&s);
}

/* Whether anybody may come in, and beyond loopback without a word more. */
static void who_comes_in(void)
{
	static const struct {
		const char *export, *users, *anonymous;
		bool lets, open;
	} rows[] = {
		{"/srv", NULL, NULL, true, true},
		{"/srv:rw", NULL, "auto", true, true},
		{"/srv:rw", NULL, "no", false, false},
		{"/srv", NULL, "yes", true, false},
		{"/srv:rw", NULL, "yes", true, true},
		{"/srv:rw", "/users", NULL, false, false},
		{"/srv:rw", "/users", "auto", false, false},
		{"/srv:rw", "/users", "yes", true, false}, /* for reading */
		{"a /srv rights=write users=@anonymous", "/users", "yes", true, true},
		{"a /srv rights=write users=@users", "/users", "yes", true, false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct daemon_settings s;

		daemon_settings_init(&s);
		CHECK_EQ(add(&s, "export", rows[i].export), 0);
		CHECK(!rows[i].users || !add(&s, "users", rows[i].users));
		CHECK(!rows[i].anonymous || !add(&s, "anonymous", rows[i].anonymous));
		CHECK_EQ(daemon_settings_lets_anonymous(&s), rows[i].lets);
		CHECK_EQ(daemon_settings_is_open(&s), rows[i].open);
		daemon_settings_fini(&s);
	}
}

static void what_is_wrong_is_named(void)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{"--nonsense", "--nonsense"},
		{"-x", "-x"},
		{"-tx", "-x"},
		{"--listen", "--listen"},
		{"--config", "--config"},
		{"--max", "--max"},
		{"--help=1", "--help=1 takes no value"},
		{"-c", "-c needs a value"},
		{"extra", "extra"},
		{"--listen ::1", "::1"},
		{"--listen 1.2.3.4:99999", "99999"},
		{"--listen 1.2.3.4:x", "x"},
		{"--fabric loop", "loop"},
		{"--fabric soft,", "fabric"},
		{"--fabric auto,soft", "auto"},
		{"--max-sessions 0", "max-sessions"},
		{"--max-sessions -1", "-1"},
		{"--max-sessions 4x", "4x"},
		{"--max-sessions 99999999999999999999", "max-sessions"},
		{"--max-channels 65", "65"},
		{"--max-block 65537", "65537"},
		{"--max-block 32M", "32M"},
		{"--max-window 1X", "1X"},
		{"--max-window 99999999T", "max-window"},
		{"--memory 1M", "memory"},
		{"--open-files 7", "open-files"},
		{"--threads 7", "threads"},
		{"--handshake-timeout 0", "handshake-timeout"},
		{"--log-level loud", "loud"},
		{"--crc=maybe", "maybe"},
		{"--config a --config b", "--config"},
		{"--export /a --export /b:rw", "export is given twice"},
		{"--anonymous maybe", "maybe"},
		{"--login-timeout 0", "login-timeout"},
		{"--listen 65536", "65536 is no port"},
		{"--listen 99999999999999999999", "is no port"},
	};
	struct daemon_options o;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int r = parse(&o, bad[i].line);

		daemon_options_fini(&o);
		if (!r || !strstr(why, bad[i].says))
			printf("# %s: %d, %s\n", bad[i].line, r, why);
		CHECK(r && strstr(why, bad[i].says));
	}
}

static int from_file(void *ctx, const char *name, const char *value, char *reason)
{
	return daemon_settings_set(ctx, DAEMON_ORIGIN_FILE, name, value, reason);
}

static void the_command_line_outweighs_the_file(void)
{
	static const char text[] = "listen = 127.0.0.1:1\nlisten = 127.0.0.1:2\nexport = /file:rw\n"
				   "max-sessions = 5\ncrc = yes\n";
	char reason[CONF_WHY_MAX];
	struct daemon_options o;

	CHECK_EQ(parse(&o, "--listen 127.0.0.1:9 --export /command --crc=no"), 0);
	CHECK_EQ(conf_parse(text, sizeof text - 1, "f", from_file, &o.settings, reason), 0);
	CHECK_EQ(o.settings.listen_count, 1);
	CHECK(!strcmp(o.settings.listen[0], "127.0.0.1:9"));
	CHECK_EQ(o.settings.export_count, 1);
	CHECK(!strcmp(o.settings.exports[0]->directory, "/command") && !o.settings.crc);
	CHECK_EQ(o.settings.exports[0]->rights, PLACE_READ_ONLY);
	CHECK_EQ(o.settings.max_sessions, 5);
	daemon_options_fini(&o);

	/* in the other order too */
	daemon_settings_init(&o.settings);
	CHECK_EQ(conf_parse(text, sizeof text - 1, "f", from_file, &o.settings, reason), 0);
	CHECK_EQ(o.settings.listen_count, 2);
	CHECK_EQ(daemon_settings_set(
			 &o.settings, DAEMON_ORIGIN_COMMAND, "listen", "127.0.0.1:9", why),
		0);
	CHECK_EQ(o.settings.listen_count, 1);
	daemon_settings_fini(&o.settings);
}

static void a_file_says_each_thing_once(void)
{
	static const char twice[] = "crc = yes\n\ncrc = yes\n", unknown[] = "[rftpd]\nconfig = x\n",
			  wrong[] = "max-block = 1\n";
	char reason[CONF_WHY_MAX];
	struct daemon_options o;

	CHECK_EQ(parse(&o, "--max-block 64K"), 0);
	CHECK_EQ(conf_parse(twice, sizeof twice - 1, "f", from_file, &o.settings, reason), -EEXIST);
	CHECK(strstr(reason, "f:3: ") && strstr(reason, "twice"));
	CHECK_EQ(conf_parse(unknown, sizeof unknown - 1, "f", from_file, &o.settings, reason),
		-ENOENT);
	CHECK(strstr(reason, "f:2: ") && strstr(reason, "config"));
	/* also where it does not count */
	CHECK_EQ(conf_parse(wrong, sizeof wrong - 1, "f", from_file, &o.settings, reason), -EINVAL);
	CHECK(strstr(reason, "f:1: ") && strstr(reason, "max-block"));
	CHECK_EQ(o.settings.max_block_bytes, 65536);
	daemon_options_fini(&o);
}

static void not_more_addresses_than_there_is_room_for(void)
{
	struct daemon_settings s;

	daemon_settings_init(&s);
	for (unsigned i = 0; i < DAEMON_LISTEN_MAX; i++)
		CHECK_EQ(daemon_settings_set(&s, DAEMON_ORIGIN_FILE, "listen", ":0", why), 0);
	CHECK_EQ(daemon_settings_set(&s, DAEMON_ORIGIN_FILE, "listen", ":0", why), -ENOSPC);
	daemon_settings_fini(&s);
}

HARNESS_MAIN({"startups and penalties", startups}, {"defaults", defaults},
	{"every option", every_option}, {"exports", exports}, {"who comes in", who_comes_in},
	{"what is wrong is named", what_is_wrong_is_named},
	{"the command line outweighs the file", the_command_line_outweighs_the_file},
	{"a file says each thing once", a_file_says_each_thing_once},
	{"not more addresses than there is room for", not_more_addresses_than_there_is_room_for})
