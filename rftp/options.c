/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/options.c: owns the table of options.  Values of data options are rftp/settings'.
 */
#include "rftp/options.h"

#include "rftp/ui/escape.h"
#include "rftp/remote/url.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum {
	OPTION_ACCEPT_NEW = 256,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_INCLUDE_FROM,
	OPTION_EXCLUDE_FROM,
	OPTION_NO_RESUME,
	OPTION_APPEND,
	OPTION_REMOVE,
	OPTION_OLDER,
	OPTION_TAG,
	OPTION_SETTING
}; /* + row: beyond any letter */

/* Those that are no settings. */
static const struct own {
	const char *name;  /* NULL: only a letter */
	char letter;       /* 0: none; then `code` */
	const char *value; /* NULL: it takes none */
	const char *help;  /* NULL: with another's */
	int code;
} own[] = {
	{"command", 'c', "COMMANDS", "run the commands and end", 0},
	{"batch", 'b', "FILE", "run the commands in FILE ('-': stdin) and end", 0},
	{"quiet", 'q', NULL, "no progress, errors only", 0},
	{"verbose", 'v', NULL, "say what was chosen and why; twice: all details", 0},
	{"archive", 'a', NULL, "a tree as it is: -rlptgo", 0},
	{"preserve", 'p', NULL, "keep modes, which always are; so is -t, for times", 0},
	{NULL, 'l', NULL, "keep symbolic links: --links keep", 0},
	{NULL, 't', NULL, NULL, 0},
	{"help", 'h', NULL, "show this", 0},
	{"version", 'V', NULL, "show the version", 0},
	{"accept-new", 0, NULL, "trust a server whose key is not known yet, and remember it",
		OPTION_ACCEPT_NEW},
	{"exclude", 0, "PATTERN", "as --filter='- PATTERN': leave out what matches",
		OPTION_EXCLUDE},
	{"include", 0, "PATTERN", "as --filter='+ PATTERN': copy what matches", OPTION_INCLUDE},
	{"exclude-from", 0, "FILE", "as --exclude with each line of FILE", OPTION_EXCLUDE_FROM},
	{"include-from", 0, "FILE", "as --include with each line of FILE", OPTION_INCLUDE_FROM},
	{"append", 0, NULL, "put: add to the file that is there: --offset=end", OPTION_APPEND},
	{"no-resume", 0, NULL, "begin files that were cut off again, and leave none behind",
		OPTION_NO_RESUME},
};
#define OWN (sizeof own / sizeof *own)

static const char options_text[] =
	"usage: rftp [OPTIONS] SRC... DST       copy files; one side is rftp://HOST[:PORT]/PATH,\n"
	"                                       or ssh://HOST/PATH, which starts rftpd there;\n"
	"                                       '-' is stdin or stdout\n"
	"       rftp [OPTIONS] feed NAME=SOURCE... URL\n"
	"                                       send live streams; SOURCE: FIFO, file or "
	"'|COMMAND'\n"
	"       rftp [OPTIONS] sync SRC DST     make one directory what the other is; one is a "
	"URL\n"
	"       rftp [OPTIONS] [URL]            open the shell\n"
	"       rftp [OPTIONS] -c 'CMD; CMD' [URL]\n"
	"       rftp [OPTIONS] -b FILE [URL]    run commands, stop at the first error\n"
	"       rftp [OPTIONS] login URL        try to log in, and say what that gives\n"
	"       rftp [OPTIONS] sum [-r] [--tag] [-a xxh128|sha256|crc32|md5] FILE|URL|-...\n"
	"       rftp [OPTIONS] sum [-a ...] -c LIST [DIRECTORY|URL]\n"
	"                                       sums of files, computed where they lie; check a "
	"list\n"
	"       rftp [OPTIONS] cmp FILE|URL FILE|URL\n"
	"                                       compare two files by their sums\n"
	"       rftp [OPTIONS] leftovers [--remove [--older TIME]] [DIRECTORY|URL]...\n"
	"                                       what transfers that were cut off have left\n"
	"       rftp [OPTIONS] doctor [URL] [DIRECTORY]\n"
	"                                       what keeps rftp from working well, and how to mend "
	"it\n\n";

#define HELP_COLUMN 36

static void help_line(struct text *out, char letter, const char *name, const char *value,
	const char *help, const char *standard)
{
	size_t start = out->len;
	int left;

	if (letter)
		text_printf(out, "  -%c, ", letter);
	else
		text_puts(out, "      ");
	if (name)
		text_printf(out, "--%s%s%s", name, value ? " " : "", value ? value : "");
	else
		text_cut(out, out->len - strlen(", "));
	left = HELP_COLUMN - (int)(out->len - start);
	text_printf(out, "%*s%s", left > 2 ? left : 2, "", help);
	if (standard)
		text_printf(out, " (%s)", standard);
	text_putc(out, '\n');
}

void options_help(struct text *out)
{
	struct settings standard;

	settings_init(&standard);
	text_puts(out, options_text);
	for (size_t i = 0; i < OWN; i++)
		if (own[i].help)
			help_line(out, own[i].letter, own[i].name, own[i].value, own[i].help, NULL);
	for (unsigned i = 0; settings_at(i); i++) {
		const struct setting *s = settings_at(i);
		struct text values = {0}, value = {0};

		settings_values(i, &values);
		settings_show(&standard, i, &value);
		if (s->option)
			help_line(out, s->letter, s->option, s->given ? NULL : text_str(&values),
				s->option_help ? s->option_help : s->help,
				s->given ? NULL : text_str(&value));
		text_fini(&value);
		text_fini(&values);
	}
	text_puts(out, "\nSee rftp(1) for examples, exit codes and the JSON fields.\n");
}

/* What getopt_long asks for, from both tables. */
struct known {
	struct option names[OWN + SETTINGS_MAX + 5];
	char letters[3 * (OWN + SETTINGS_MAX + 2) + 3];
};

/* `value`: getopt_long's. */
static void know(struct known *k, const char *name, int letter, int value, int code)
{
	size_t n = 0, len = strlen(k->letters);

	while (k->names[n].name)
		n++;
	if (name)
		k->names[n] = (struct option){name, value, NULL, letter ? letter : code};
	if (letter)
		snprintf(k->letters + len, sizeof k->letters - len, "%c%s", letter,
			value == required_argument   ? ":"
			: value == optional_argument ? "::"
						     : "");
}

static int settings_value_of(const struct setting *s)
{
	return !s->given ? required_argument : s->optional ? optional_argument : no_argument;
}

/* `order`: "+" to stop at the first name.  A command's own letters come before those of the table.
 */
static void know_all(struct known *k, const char *order, enum options_action action)
{
	const bool sum = action == OPTIONS_SUM;

	*k = (struct known){0};
	snprintf(k->letters, sizeof k->letters, "%s:", order);
	if (sum) {
		know(k, "algorithm", 'a', required_argument, 0);
		know(k, "check", 'c', required_argument, 0);
		know(k, "tag", 0, no_argument, OPTION_TAG);
	} else if (action == OPTIONS_LEFTOVERS) {
		know(k, "remove", 0, no_argument, OPTION_REMOVE);
		know(k, "older", 0, required_argument, OPTION_OLDER);
	}
	for (size_t i = 0; i < OWN; i++)
		if (!sum || !own[i].letter || !strchr("abc", own[i].letter))
			know(k, own[i].name, own[i].letter,
				own[i].value ? required_argument : no_argument, own[i].code);
	for (unsigned i = 0; settings_at(i); i++)
		if (settings_at(i)->option)
			know(k, settings_at(i)->option, settings_at(i)->letter,
				settings_value_of(settings_at(i)), OPTION_SETTING + (int)i);
}

/* The setting that getopt's `c` stands for; NULL: none. */
static const struct setting *setting_of(int c)
{
	for (unsigned i = 0; settings_at(i); i++)
		if (settings_at(i)->option &&
			(c == OPTION_SETTING + (int)i || (c && c == settings_at(i)->letter)))
			return settings_at(i);
	return NULL;
}

static int options_setting(
	struct options *o, const struct setting *s, const char *value, struct text *why)
{
	int err;

	text_puts(why, "--");
	err = settings_set(&o->settings, s->name, value || !s->given ? value : s->given, why);
	if (!err)
		text_clear(why);
	return err;
}

/* A rule that has an option of its own. */
static int options_rule(struct options *o, const char *action, const char *value, struct text *why)
{
	static const struct setting filter = {.name = "filter"};
	struct text rule = {0};
	int err;

	text_printf(&rule, "%s %s", action, value);
	err = options_setting(o, &filter, text_str(&rule), why);
	text_fini(&rule);
	return err;
}

static void options_bad(char *const *argv, int letter, struct text *why)
{
	const char *word = argv[optind - 1];

	/* getopt tells a short option by its letter, a long one by the word */
	if (optopt > 0 && optopt < OPTION_SETTING && strncmp(word, "--", 2)) {
		char name[2] = {(char)optopt, '\0'};

		text_puts(why, "option -");
		escape_display(why, name, 1);
	} else {
		text_puts(why, "option ");
		escape_display(why, word, strcspn(word, "="));
	}
	text_puts(why, letter == ':' ? " needs a value"
		       : optopt      ? " takes no value"
				     : " is unknown or ambiguous");
	if (letter != ':' && optopt && strncmp(word, "--", 2)) {
		text_cut(why, why->len - strlen(" takes no value"));
		text_puts(why, " is unknown");
	}
}

/* A local file of this name is given as ./doctor. */
static int options_doctor(const struct options *o, struct text *why)
{
	int urls = 0;

	for (int i = 0; i < o->count; i++)
		urls += url_is(o->names[i]);
	if (urls <= 1 && o->count - urls <= 1)
		return 0;
	text_puts(why, "doctor takes one URL and one directory; a file called doctor is given as "
		       "./doctor");
	return -EINVAL;
}

/* What the names mean. */
static int options_names(struct options *o, struct text *why)
{
	bool script = o->commands || o->batch;

	if (o->commands && o->batch) {
		text_puts(why, "-c and -b cannot be given together");
		return -EINVAL;
	}
	if (!script && o->count && !strcmp(o->names[0], "doctor")) {
		o->action = OPTIONS_DOCTOR;
		o->names++;
		o->count--;
		return options_doctor(o, why);
	}
	if (!script && o->count && !strcmp(o->names[0], "login")) {
		o->action = OPTIONS_LOGIN;
		o->names++;
		if (--o->count == 1 && url_is(o->names[0]))
			return 0;
		text_puts(why, "login takes one URL; a file called login is given as ./login");
		return -EINVAL;
	}
	o->action = script || o->count < 2 ? OPTIONS_SHELL : OPTIONS_COPY;
	if (!script && o->count && !strcmp(o->names[0], "feed")) {
		o->action = OPTIONS_FEED;
		o->names++;
		o->count--;
	} else if (!script && o->count && !strcmp(o->names[0], "sync")) {
		o->action = OPTIONS_SYNC;
		o->names++;
		o->count--;
	}
	if (o->action == OPTIONS_SHELL && o->count > 1) {
		text_puts(why, "-c and -b take one name: the URL to open");
		return -EINVAL;
	}
	if (o->action == OPTIONS_SHELL && o->count == 1 && !url_is(o->names[0])) {
		escape_display(why, o->names[0], strlen(o->names[0]));
		text_puts(why, url_is_foreign(o->names[0])
				       ? ": only rftp:// and ssh:// are supported"
			       : script ? ": not a URL (rftp://HOST[:PORT][/PATH])"
					: ": one name alone must be a URL to open "
					  "(rftp://HOST[:PORT][/PATH]); to copy, give SRC... DST");
		return -EINVAL;
	}
	return 0;
}

/* Takes in the options of these words, up to where `known` has it; optind says where that is.  1:
 * no more need be looked at; 0; -EINVAL. */
static int options_read(
	struct options *o, const struct known *known, int argc, char **argv, struct text *why)
{
	int c, err;

	optind = 0; /* glibc: start over, whatever was parsed before */
	opterr = 0;
	while ((c = getopt_long(argc, argv, known->letters, known->names, NULL)) >= 0) {
		if (setting_of(c)) {
			err = options_setting(o, setting_of(c), optarg, why);
			if (err)
				return err;
			continue;
		}
		switch (c) {
		case 'p':
		case 't':
			break;
		case 'a':
			if (o->action == OPTIONS_SUM)
				o->algorithm = optarg;
			else
				settings_archive(&o->settings);
			break;
		case 'l':
			o->settings.links = WALK_LINKS_KEEP;
			break;
		case OPTION_ACCEPT_NEW:
			o->settings.host_keys = TRUST_ACCEPT_NEW;
			break;
		case OPTION_INCLUDE:
		case OPTION_EXCLUDE:
		case OPTION_INCLUDE_FROM:
		case OPTION_EXCLUDE_FROM:
			err = options_rule(o,
				c == OPTION_INCLUDE        ? "+"
				: c == OPTION_EXCLUDE      ? "-"
				: c == OPTION_INCLUDE_FROM ? ".+"
							   : ".-",
				optarg, why);
			if (err)
				return err;
			break;
		case OPTION_APPEND:
			o->settings.in_place = true;
			o->settings.offset = MESSAGE_UNKNOWN;
			break;
		case OPTION_REMOVE:
			o->remove = true;
			break;
		case OPTION_OLDER:
			o->older = optarg;
			break;
		case OPTION_TAG:
			o->tag = true;
			break;
		case OPTION_NO_RESUME:
			o->settings.resume_bytes = 0;
			break;
		case 'c':
		case 'b': {
			const char **script = o->action == OPTIONS_SUM ? &o->list
					      : c == 'c'               ? &o->commands
								       : &o->batch;

			if (*script) {
				text_printf(why, "-%c is given twice", c);
				return -EINVAL;
			}
			*script = optarg;
			break;
		}
		case 'q':
			o->settings.verbosity = -1;
			break;
		case 'v':
			if (o->settings.verbosity < 2)
				o->settings.verbosity =
					o->settings.verbosity < 0 ? 1 : o->settings.verbosity + 1;
			break;
		case 'h':
			o->action = OPTIONS_HELP;
			return 1;
		case 'V':
			o->action = OPTIONS_VERSION;
			return 1;
		default:
			options_bad(argv, c, why);
			return -EINVAL;
		}
	}
	return 0;
}

/* A local file of this name is given as ./sum. */
static enum options_action options_word(const struct options *o, const char *word)
{
	if (o->commands || o->batch || !word)
		return OPTIONS_SHELL;
	return !strcmp(word, "sum")         ? OPTIONS_SUM
	       : !strcmp(word, "cmp")       ? OPTIONS_CMP
	       : !strcmp(word, "leftovers") ? OPTIONS_LEFTOVERS
					    : OPTIONS_SHELL;
}

int options_parse(int argc, char **argv, struct options *o, struct text *why)
{
	struct known known;
	bool ended;
	int err;

	*o = (struct options){.action = OPTIONS_SHELL};
	settings_init(&o->settings);
	if (argc < 1)
		return 0;
	/* up to the first name: it may be a command with letters of its own */
	know_all(&known, "+", OPTIONS_SHELL);
	err = options_read(o, &known, argc, argv, why);
	if (err)
		return err < 0 ? err : 0;
	ended = optind > 1 && !strcmp(argv[optind - 1], "--");
	o->action = options_word(o, argv[optind]);
	if (o->action ==
		OPTIONS_SHELL) { /* the word before the rest is in the place of a program's name */
		argc -= optind - 1;
		argv += optind - 1;
	} else {
		argc -= optind;
		argv += optind;
	}
	optind = 1;
	if (!ended || o->action != OPTIONS_SHELL) {
		know_all(&known, "", o->action);
		err = options_read(o, &known, argc, argv, why);
		if (err)
			return err < 0 ? err : 0;
	}
	o->names = argv + optind;
	o->count = argc - optind;
	if (o->action == OPTIONS_CMP && o->count != 2) {
		text_puts(why, "cmp takes two names; a file called cmp is given as ./cmp");
		return -EINVAL;
	}
	return o->action == OPTIONS_SHELL ? options_names(o, why) : 0;
}
