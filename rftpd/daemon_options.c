/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_options: see daemon_options.h.
 *
 * Owns the options that are no settings; those that are come from daemon_settings' table.
 */
#include "rftpd/daemon_options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

enum { OPTION_FOREGROUND = 256, OPTION_ONCE, OPTION_SETTING }; /* + row: beyond any letter */

static const struct own {
	const char *name;
	int code;          /* a letter, which is an option too, or OPTION_ */
	const char *value; /* NULL: it takes none */
	const char *help;
} own[] = {
	{"config", 'c', "FILE", "read settings from FILE: `name = value`, names as above"},
	{"test-config", 't', NULL, "check all that can be checked without serving, and end"},
	{"serve-once", OPTION_ONCE, NULL,
		"serve one session to who runs it through ssh, as rftp ssh:// does"},
	{"verbose", 'v', NULL, "log one level more"},
	{"quiet", 'q', NULL, "log one level less"},
	{"foreground", OPTION_FOREGROUND, NULL, "changes nothing: it never leaves the foreground"},
	{"help", 'h', NULL, "show this, and end"},
	{"version", 'V', NULL, "show the version, and end"},
};
#define OWN (sizeof own / sizeof *own)
#define LETTERS ":c:tvqhV"

/* `table` has room for all and the end mark. */
static void make_table(struct option table[DAEMON_SETTINGS_MAX + OWN + 1])
{
	unsigned n = 0;

	for (; daemon_settings_name(n); n++)
		table[n] = (struct option){daemon_settings_name(n),
			daemon_settings_is_switch(n) ? optional_argument : required_argument, NULL,
			OPTION_SETTING + (int)n};
	for (size_t i = 0; i < OWN; i++, n++)
		table[n] = (struct option){own[i].name,
			own[i].value ? required_argument : no_argument, NULL, own[i].code};
	table[n] = (struct option){0};
}

static int change_level(struct daemon_settings *s, int by, char why[DAEMON_WHY_MAX])
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	int level = (int)s->log_level + by;

	if (level < LOG_LEVEL_ERROR || level > LOG_LEVEL_DEBUG)
		return 0;
	return daemon_settings_set(s, DAEMON_ORIGIN_COMMAND, "log-level", names[level], why);
}

static int refuse_option(int argc, char **argv, int c, char why[DAEMON_WHY_MAX])
{
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
	bool is_long = !strncmp(word, "--", 2);

	/* among grouped letters optind is still at the group; optopt then names the letter */
	if (c == ':')
		snprintf(why, DAEMON_WHY_MAX, "%.100s needs a value", word);
	else if (optopt > 0 && optopt < OPTION_FOREGROUND && !is_long)
		snprintf(why, DAEMON_WHY_MAX, "unknown option -%c", optopt);
	else if (optopt)
		snprintf(why, DAEMON_WHY_MAX, "%.100s takes no value", word);
	else
		snprintf(why, DAEMON_WHY_MAX, "unknown or ambiguous option %.100s", word);
	return -EINVAL;
}

static int take(struct daemon_options *o, int c, char why[DAEMON_WHY_MAX])
{
	switch (c) {
	case 'c':
		if (o->config) {
			snprintf(why, DAEMON_WHY_MAX, "--config is given twice");
			return -EINVAL;
		}
		o->config = optarg;
		return 0;
	case OPTION_ONCE:
		if (o->action == DAEMON_ACTION_SERVE)
			o->action = DAEMON_ACTION_ONCE;
		return 0;
	case OPTION_FOREGROUND: /* it never leaves it */
		return 0;
	case 't':
		if (o->action == DAEMON_ACTION_SERVE)
			o->action = DAEMON_ACTION_TEST;
		return 0;
	case 'h':
		o->action = DAEMON_ACTION_HELP;
		return 0;
	case 'V':
		o->action = DAEMON_ACTION_VERSION;
		return 0;
	case 'v':
		return change_level(&o->settings, 1, why);
	case 'q':
		return change_level(&o->settings, -1, why);
	default:
		return daemon_settings_set(&o->settings, DAEMON_ORIGIN_COMMAND,
			daemon_settings_name((unsigned)(c - OPTION_SETTING)),
			optarg ? optarg : "yes", why);
	}
}

int daemon_options_parse(struct daemon_options *o, int argc, char **argv, char why[DAEMON_WHY_MAX])
{
	struct option table[DAEMON_SETTINGS_MAX + OWN + 1];
	int c;

	*o = (struct daemon_options){.action = DAEMON_ACTION_SERVE};
	daemon_settings_init(&o->settings);
	why[0] = '\0';
	make_table(table);
	opterr = 0;
	optind = 0; /* glibc: forget an earlier command line */
	while ((c = getopt_long(argc, argv, LETTERS, table, NULL)) != -1) {
		int err;

		if (c == '?' || c == ':')
			return refuse_option(argc, argv, c, why);
		err = take(o, c, why);
		if (err)
			return err;
	}
	if (optind < argc) {
		snprintf(why, DAEMON_WHY_MAX,
			"unexpected argument \"%.100s\": all is said by options", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

void daemon_options_fini(struct daemon_options *o)
{
	daemon_settings_fini(&o->settings);
}

#define HELP_COLUMN 37

static void show_option(
	FILE *out, int letter, const char *name, const char *value, const char *help)
{
	char left[64];

	snprintf(left, sizeof left, "--%s%s%s", name, value ? " " : "", value ? value : "");
	if (letter)
		fprintf(out, "  -%c, %-*s %s", letter, HELP_COLUMN - 7, left, help);
	else
		fprintf(out, "      %-*s %s", HELP_COLUMN - 7, left, help);
}

void daemon_options_usage(FILE *out)
{
	fputs("usage: rftpd --export DIR[:ro|:rw] [--listen ADDR:PORT]... [OPTION]...\n"
	      "       rftpd --config FILE [-t] [OPTION]...\n"
	      "       rftpd passwd [-d] USER --users FILE\n"
	      "Serves a directory to rftp over RDMA, or TCP where there is none.\n\n",
		out);
	for (unsigned i = 0; daemon_settings_name(i); i++) {
		bool is_switch = daemon_settings_is_switch(i);

		show_option(out, 0, daemon_settings_name(i),
			is_switch ? NULL : daemon_settings_values(i), daemon_settings_help(i));
		if (daemon_settings_default(i) && !is_switch)
			fprintf(out, " (%s)", daemon_settings_default(i));
		fputc('\n', out);
	}
	for (size_t i = 0; i < OWN; i++) {
		show_option(out, own[i].code < OPTION_FOREGROUND ? own[i].code : 0, own[i].name,
			own[i].value, own[i].help);
		fputc('\n', out);
	}
	fputs("\nSee rftpd(8) and rftpd.conf(5).\n", out);
}
