/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/options.c: owns the table of options.  Values of data options are rftp/settings'.
 */
#include "rftp/options.h"

#include "rftp/ui/escape.h"
#include "rftp/remote/url.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

enum { OPTION_SETTING = 256, OPTION_JSON, OPTION_CRC };

static const struct option options_long[] = {
	{"fabric", required_argument, NULL, OPTION_SETTING},
	{"engine", required_argument, NULL, OPTION_SETTING},
	{"channels", required_argument, NULL, OPTION_SETTING},
	{"block", required_argument, NULL, OPTION_SETTING},
	{"depth", required_argument, NULL, OPTION_SETTING},
	{"direct", required_argument, NULL, OPTION_SETTING},
	{"connect-timeout", required_argument, NULL, OPTION_SETTING},
	{"timeout", required_argument, NULL, OPTION_SETTING},
	{"segment", required_argument, NULL, OPTION_SETTING},
	{"drop", required_argument, NULL, OPTION_SETTING},
	{"crc", no_argument, NULL, OPTION_CRC},
	{"recursive", no_argument, NULL, 'r'},
	{"no-replace", no_argument, NULL, 'n'},
	{"preserve", no_argument, NULL, 'p'},
	{"command", required_argument, NULL, 'c'},
	{"batch", required_argument, NULL, 'b'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const char options_text[] =
	"usage: rftp [OPTIONS] SRC... DST       copy files; one side is rftp://HOST[:PORT]/PATH,\n"
	"                                       '-' is stdin or stdout\n"
	"       rftp [OPTIONS] feed NAME=SOURCE... URL\n"
	"                                       send live streams; SOURCE: FIFO, file or "
	"'|COMMAND'\n"
	"       rftp [OPTIONS] [URL]            open the shell\n"
	"       rftp [OPTIONS] -c 'CMD; CMD' [URL]\n"
	"       rftp [OPTIONS] -b FILE [URL]    run commands, stop at the first error\n"
	"       rftp [OPTIONS] doctor [URL] [DIRECTORY]\n"
	"                                       what keeps rftp from working well, and how to mend "
	"it\n"
	"\n"
	"  -r, --recursive           copy directories and what is in them\n"
	"  -n, --no-replace          an existing file is an error\n"
	"  -p, --preserve            taken for compatibility: times and modes are always kept\n"
	"  -c, --command COMMANDS    run the commands and end\n"
	"  -b, --batch FILE          run the commands in FILE ('-': stdin) and end\n"
	"  -q, --quiet               no progress, errors only\n"
	"  -v, --verbose             say what was chosen and why; twice: all details\n"
	"      --json                one JSON object a line on stdout\n"
	"      --connect-timeout S   seconds to try to connect (10)\n"
	"      --timeout S           seconds that a server may be silent (60)\n"
	"      --fabric NAME         transport: verbs (RDMA), soft (TCP) (auto)\n"
	"      --engine NAME         how blocks cross: credit, status, window (auto)\n"
	"      --channels N          connections that carry data: 1 to 64 (auto)\n"
	"      --block SIZE          64K to 16M (auto)\n"
	"      --depth N             blocks at the receiving side (auto)\n"
	"      --direct auto|on|off  O_DIRECT (auto)\n"
	"      --crc                 fabric soft: CRC32C on the wire\n"
	"      --segment SIZE|SECs   feed: begin another file at this size or age (64M)\n"
	"      --drop none|oldest    feed: without room, wait, or drop packets (none)\n"
	"  -V, --version  -h, --help\n"
	"\n"
	"See rftp(1) for examples, exit codes and the JSON fields.\n";

void options_help(struct text *out)
{
	text_puts(out, options_text);
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
		text_puts(why, "-c and -b can not be given together");
		return -EINVAL;
	}
	if (!script && o->count && !strcmp(o->names[0], "doctor")) {
		o->action = OPTIONS_DOCTOR;
		o->names++;
		o->count--;
		return options_doctor(o, why);
	}
	o->action = script || o->count < 2 ? OPTIONS_SHELL : OPTIONS_COPY;
	if (!script && o->count && !strcmp(o->names[0], "feed")) {
		o->action = OPTIONS_FEED;
		o->names++;
		o->count--;
	}
	if (o->action == OPTIONS_SHELL && o->count > 1) {
		text_puts(why, "-c and -b take one name: the URL to open");
		return -EINVAL;
	}
	if (o->action == OPTIONS_SHELL && o->count == 1 && !url_is(o->names[0])) {
		escape_display(why, o->names[0], strlen(o->names[0]));
		text_puts(why, url_is_foreign(o->names[0]) ? ": only rftp:// is supported"
			       : script ? ": not a URL (rftp://HOST[:PORT][/PATH])"
					: ": one name alone must be a URL to open "
					  "(rftp://HOST[:PORT][/PATH]); to copy, give SRC... DST");
		return -EINVAL;
	}
	return 0;
}

int options_parse(int argc, char **argv, struct options *o, struct text *why)
{
	int c, index, err = 0;

	*o = (struct options){.action = OPTIONS_SHELL};
	settings_init(&o->settings);
	if (argc < 1)
		return 0;
	optind = 0; /* glibc: start over, whatever was parsed before */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":rnpc:b:qvhV", options_long, &index)) >= 0) {
		switch (c) {
		case OPTION_SETTING:
			text_puts(why, "--");
			err = settings_set(&o->settings, options_long[index].name, optarg, why);
			if (err)
				return err;
			text_clear(why);
			break;
		case OPTION_CRC:
			o->settings.crc = true;
			break;
		case OPTION_JSON:
			o->settings.json = true;
			break;
		case 'r':
			o->settings.recursive = true;
			break;
		case 'n':
			o->settings.replace = false;
			break;
		case 'p':
			break;
		case 'c':
		case 'b': {
			const char **script = c == 'c' ? &o->commands : &o->batch;

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
			return 0;
		case 'V':
			o->action = OPTIONS_VERSION;
			return 0;
		default:
			options_bad(argv, c, why);
			return -EINVAL;
		}
	}
	o->names = argv + optind;
	o->count = argc - optind;
	return options_names(o, why);
}
