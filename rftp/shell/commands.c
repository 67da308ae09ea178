/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands.c: owns the table, and what all commands do alike: flags, counts, names.
 */
#include "rftp/shell/commands_impl.h"

#include "base/log.h"
#include "rftp/remote/remote_path.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SHELL_HELP "run COMMAND, or a shell, here"

static int command_help(struct client *, const struct lexer_command *);

static const struct command command_table[] = {
	{"open", "URL|[USER@]HOST[:PORT]", "connect to a server", COMMAND_NOTHING, COMMAND_NOTHING,
		1, 1, command_open},
	{"close", "", "end the connection", COMMAND_NOTHING, COMMAND_NOTHING, 0, 0, command_close},
	{"ls", "[-1alhRtS] [PATH...]", "list remote names", COMMAND_REMOTE, COMMAND_REMOTE, 0,
		UINT_MAX, command_ls},
	{"cd", "[DIR|-]", "change the remote directory; without DIR to the top", COMMAND_REMOTE_DIR,
		COMMAND_NOTHING, 0, 1, command_cd},
	{"status", "", "show the connection, and what protects it", COMMAND_NOTHING,
		COMMAND_NOTHING, 0, 0, command_status},
	{"pwd", "", "print the remote directory", COMMAND_NOTHING, COMMAND_NOTHING, 0, 0,
		command_pwd},
	{"lcd", "[DIR|-]", "change the local directory; without DIR to $HOME", COMMAND_LOCAL_DIR,
		COMMAND_NOTHING, 0, 1, command_lcd},
	{"lls", "[ARG...]", "list local names with ls(1)", COMMAND_LOCAL, COMMAND_LOCAL, 0,
		UINT_MAX, command_lls},
	{"lpwd", "", "print the local directory", COMMAND_NOTHING, COMMAND_NOTHING, 0, 0,
		command_lpwd},
	{"get", "[-rnuaogXAHz] SRC... [DST]",
		"copy from the server; the last of several names is local", COMMAND_REMOTE,
		COMMAND_EITHER, 1, UINT_MAX, command_get},
	{"put", "[-rnuaogXAHz] SRC... [DST]",
		"copy to the server; the last of several names is remote", COMMAND_LOCAL,
		COMMAND_EITHER, 1, UINT_MAX, command_put},
	{"mget", "[-rnuaogXAHz] SRC...", "copy all these from the server to the local directory",
		COMMAND_REMOTE, COMMAND_REMOTE, 1, UINT_MAX, command_mget},
	{"mput", "[-rnuaogXAHz] SRC...", "copy all these to the remote directory", COMMAND_LOCAL,
		COMMAND_LOCAL, 1, UINT_MAX, command_mput},
	{"append", "[-o OFFSET] LOCAL [REMOTE]",
		"add LOCAL, or - for standard input, to the end of a remote file; -o: write it "
		"there",
		COMMAND_LOCAL, COMMAND_REMOTE, 1, 5, command_append},
	{"mirror", "[-Rn] SRC DST",
		"make DST what SRC is: from the server to here; -R: from here to the server",
		COMMAND_EITHER, COMMAND_EITHER, 2, 5, command_mirror},
	{"cat", "FILE...", "write remote files to standard output", COMMAND_REMOTE, COMMAND_REMOTE,
		1, UINT_MAX, command_cat},
	{"sum", "[-r] [--tag] [-a ALGORITHM] FILE...|-c LIST",
		"sums of remote files, computed there; or check a list", COMMAND_REMOTE,
		COMMAND_REMOTE, 1, UINT_MAX, command_sum},
	{"cmp", "REMOTE [LOCAL]", "compare a remote file with one here, by their sums",
		COMMAND_REMOTE, COMMAND_LOCAL, 1, 2, command_cmp},
	{"du", "[-sh] [PATH...]", "sum up the sizes of remote files, for each directory",
		COMMAND_REMOTE, COMMAND_REMOTE, 0, UINT_MAX, command_du},
	{"find", "[PATH...] [-name PATTERN] [-type f|d|l]", "list all that is beneath remote names",
		COMMAND_REMOTE, COMMAND_REMOTE, 0, UINT_MAX, command_find_names},
	{"mkdir", "[-p] DIR...", "make remote directories; -p: with parents", COMMAND_REMOTE_DIR,
		COMMAND_REMOTE_DIR, 1, UINT_MAX, command_mkdir},
	{"rmdir", "DIR...", "remove empty remote directories", COMMAND_REMOTE_DIR,
		COMMAND_REMOTE_DIR, 1, UINT_MAX, command_rmdir},
	{"rm", "[-r] FILE...", "remove remote files; -r: directories with all that is in them",
		COMMAND_REMOTE, COMMAND_REMOTE, 1, UINT_MAX, command_rm},
	{"mv", "[-n] FROM... TO", "rename remote names, or move them into a directory",
		COMMAND_REMOTE, COMMAND_REMOTE, 2, UINT_MAX, command_mv},
	{"chmod", "[-R] MODE PATH...", "change permissions of remote names: 644 or u+x,go-w",
		COMMAND_NOTHING, COMMAND_REMOTE, 2, UINT_MAX, command_chmod},
	{"chown", "[-hR] [USER][:GROUP] PATH...",
		"change owner and group of remote names, by name or number", COMMAND_NOTHING,
		COMMAND_REMOTE, 2, UINT_MAX, command_chown},
	{"touch", "[-ch] [-d TIME|-t STAMP] PATH...",
		"change modification times of remote names, to now or TIME", COMMAND_REMOTE,
		COMMAND_REMOTE, 1, UINT_MAX, command_touch},
	{"ln", "-s TARGET PATH", "make a remote symbolic link PATH that says TARGET",
		COMMAND_REMOTE, COMMAND_REMOTE, 2, 4, command_ln},
	{"stat", "PATH...", "show all attributes of remote names", COMMAND_REMOTE, COMMAND_REMOTE,
		1, UINT_MAX, command_stat},
	{"df", "[-h] [PATH]", "show the space of a remote file system", COMMAND_REMOTE,
		COMMAND_NOTHING, 0, 3, command_df},
	{"feed", "NAME=SOURCE... DIR", "send live streams; SOURCE: FIFO, file or '|COMMAND'",
		COMMAND_LOCAL, COMMAND_EITHER, 2, UINT_MAX, command_feed},
	{"leftovers", "[--remove] [--older TIME] [DIR...]",
		"what transfers that were cut off have left at the server", COMMAND_REMOTE_DIR,
		COMMAND_REMOTE_DIR, 0, UINT_MAX, command_leftovers},
	{"bench", "[BYTES|FILE] [put|get]", "measure from memory, or FILE, to memory",
		COMMAND_BENCH, COMMAND_BENCH, 0, 2, command_bench},
	{"jobs", "", "list what runs in the background: commands that ended in '&'",
		COMMAND_NOTHING, COMMAND_NOTHING, 0, 0, command_jobs},
	{"wait", "[JOB]", "wait for what runs in the background, or for one job", COMMAND_NOTHING,
		COMMAND_NOTHING, 0, 1, command_wait},
	{"kill", "JOB", "end what runs in the background", COMMAND_NOTHING, COMMAND_NOTHING, 1, 1,
		command_kill},
	{"doctor", "[URL] [DIRECTORY]",
		"what keeps rftp from working well, here and on the way to URL", COMMAND_LOCAL_DIR,
		COMMAND_LOCAL_DIR, 0, 2, command_doctor},
	{"set", "[NAME [VALUE]]", "show or change settings", COMMAND_SETTING, COMMAND_SETTING, 0, 2,
		command_set},
	{"help", "[COMMAND]", "list commands, or show one (also: ?)", COMMAND_NAME, COMMAND_NOTHING,
		0, 1, command_help},
	{"quit", "", "end (also: exit, bye)", COMMAND_NOTHING, COMMAND_NOTHING, 0, 0, command_quit},
};

const struct command *command_at(unsigned i)
{
	return i < sizeof command_table / sizeof *command_table ? &command_table[i] : NULL;
}

const struct command *command_find(const char *name)
{
	if (!strcmp(name, "exit") || !strcmp(name, "bye"))
		name = "quit";
	if (!strcmp(name, "?"))
		name = "help";
	for (unsigned i = 0; command_at(i); i++)
		if (!strcmp(command_at(i)->name, name))
			return command_at(i);
	return NULL;
}

static int command_run_counted(
	struct client *c, const struct command *command, const struct lexer_command *line)
{
	size_t arguments = line->count - 1;

	if (arguments >= command->min && arguments <= command->max)
		return command->run(c, line);
	report_usage(&c->report, "usage: %s%s%s", command->name, *command->usage ? " " : "",
		command->usage);
	return -EINVAL;
}

/* Whether all words of a command are names; a "--" in front of them is left out, as others do. */
static bool command_has_no_flags(const struct command *command)
{
	static const char *const names[] = {"cat", "cd", "cmp", "lcd", "stat"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], command->name))
			return true;
	return false;
}

/* Of a line whose second word is "--": without it. */
static int command_run_names(
	struct client *c, const struct command *command, const struct lexer_command *line)
{
	struct lexer_command names = {.count = line->count - 1};
	int err;

	names.words = calloc(names.count, sizeof *names.words);
	if (!names.words)
		return client_no_memory(c);
	names.words[0] = line->words[0];
	memcpy(names.words + 1, line->words + 2, (names.count - 1) * sizeof *names.words);
	err = command_run_counted(c, command, &names);
	free(names.words); /* the texts are the line's */
	return err;
}

int command_run(struct client *c, const struct lexer_command *line)
{
	const struct command *command;

	if (line->shell)
		return command_system(c, line->shell);
	command = command_find(line->words[0].text);
	if (!command) {
		report_usage(&c->report, "%s: no such command (try help)", line->words[0].text);
		return -EINVAL;
	}
	if (line->count > 1 && !strcmp(line->words[1].text, "--") && command_has_no_flags(command))
		return command_run_names(c, command, line);
	return command_run_counted(c, command, line);
}

void command_apply_settings(const struct client *c)
{
	static const enum log_level levels[] = {
		LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG};

	log_setup("rftp", levels[c->settings.verbosity + 1]);
}

/* ---- help ---- */

/* Of each command that takes some. */
#define COMMAND_KEEP                                                                               \
	"    -a  -rlptgo: a tree as it is\n"                                                       \
	"    -o  keep owners, as far as the receiving side may; -g: groups\n"                      \
	"    -X  keep extended attributes of users; -A: access control lists\n"                    \
	"    -H  keep hard links between files of one transfer\n"                                  \
	"    -z  compress blocks, where the link is slower than that\n"                            \
	"    -l  keep symbolic links; -p, -t: modes and times, which always are\n"

static const char *command_flags_text(const char *name)
{
	static const struct {
		const char *name, *text;
	} texts[] = {
		{"ls", "    -1  one name a line\n"
		       "    -a  all, also names that begin with a dot\n"
		       "    -l  with type, mode, owner, size and time\n"
		       "    -h  sizes as 1.5G instead of bytes\n"
		       "    -R  what is in directories, too\n"
		       "    -t  the newest first\n"
		       "    -S  the largest first\n"},
		{"du", "    -s  one sum for each PATH\n"
		       "    -h  sizes as 1.5G instead of bytes\n"},
		{"find", "    -name PATTERN  only names like that, as in '*.dat'\n"
			 "    -type f|d|l    only files, directories, symbolic links\n"},
		{"get", "    -r  copy directories and what is in them\n"
			"    -n  an existing file is an error\n"
			"    -u  a file that is not newer than what is there is left "
			"out\n" COMMAND_KEEP},
		{"put", "    -r  copy directories and what is in them\n"
			"    -n  an existing file is an error\n"
			"    -u  a file that is not newer than what is there is left "
			"out\n" COMMAND_KEEP},
		{"append", "    -o OFFSET  from that byte of it on, over what is there\n"},
		{"mkdir",
			"    -p  with the parents that are missing; one that exists is no error\n"},
		{"rm", "    -r  directories, too, with all that is in them\n"},
		{"sum", "    -r            of a directory all files in it\n"
			"    --tag         lines as BSD has them, which say which sum it is\n"
			"    -a ALGORITHM  xxh128, sha256, crc32 or md5\n"
			"    -c LIST       check what a list says\n"},
		{"mv", "    -n  an existing target is an error\n"},
		{"chmod", "    -R  with all that is beneath PATH, but for symbolic links\n"},
		{"chown", "    -h  a symbolic link itself, not what it leads to\n"
			  "    -R  with all that is beneath PATH, of links themselves\n"},
		{"touch", "    -c  a name that is not there is not made\n"
			  "    -h  a symbolic link itself, not what it leads to\n"
			  "    -d TIME   '2026-11-24 03:18:00.5', 2026-11-24T03:18Z, @SECONDS\n"
			  "    -t STAMP  [[CC]YY]MMDDhhmm[.ss]\n"},
		{"df", "    -h  sizes as 1.5G instead of bytes\n"},
		{"leftovers",
			"    --remove      remove what nobody uses\n"
			"    --older TIME  of that, what was not written to for so long: 7d\n"},
	};

	if (!strcmp(name, "mget") || !strcmp(name, "mput"))
		name++;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!strcmp(texts[i].name, name))
			return texts[i].text;
	return "";
}

static int command_help(struct client *c, const struct lexer_command *line)
{
	struct text out = {0};

	if (line->count > 1) {
		const struct command *command = command_find(line->words[1].text);

		if (!command && strcmp(line->words[1].text, "!") != 0) {
			report_usage(&c->report, "%s: no such command", line->words[1].text);
			return -EINVAL;
		}
		if (command)
			text_printf(&out, "%s%s%s\n    %s\n%s", command->name,
				*command->usage ? " " : "", command->usage, command->help,
				command_flags_text(command->name));
		else
			text_puts(&out, "![COMMAND]\n    " SHELL_HELP "\n");
	} else {
		for (unsigned i = 0; command_at(i); i++)
			text_printf(&out, "  %-6s %-24s %s\n", command_at(i)->name,
				command_at(i)->usage, command_at(i)->help);
		text_puts(&out, "  !      [COMMAND]                " SHELL_HELP "\n"
				"\nWords: 'as it is', \"with \\\" and \\\\\", $'\\n', a\\ b; "
				"patterns * ? [a-z]; # comment.\n"
				"';' separates commands; '-' in front of one ignores its error.\n");
	}
	report_write(&c->report, text_str(&out), out.len);
	text_fini(&out);
	return 0;
}

/* ---- what commands share ---- */

int command_flags(
	struct client *c, const struct lexer_command *line, const char *known, unsigned *mask)
{
	const struct command *command = command_find(line->words[0].text);
	size_t i;

	*mask = 0;
	for (i = 1; i < line->count; i++) {
		const char *word = line->words[i].text;

		if (word[0] != '-' || !word[1])
			break;
		if (!strcmp(word, "--")) {
			i++;
			break;
		}
		for (const char *letter = word + 1; *letter; letter++) {
			const char *at = strchr(known, *letter);

			if (!at) {
				report_usage(&c->report, "no such flag: -%c; usage: %s %s", *letter,
					command->name, command->usage);
				return -EINVAL;
			}
			*mask |= 1u << (at - known);
		}
	}
	return (int)i;
}

void names_fini(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct names){0};
}

int names_add(struct names *names, char *name)
{
	char **list = name ? realloc(names->list, (names->count + 1) * sizeof *list) : NULL;

	if (!list) {
		free(name);
		return -ENOMEM;
	}
	names->list = list;
	list[names->count++] = name;
	return 0;
}

/* ".." as `cd` takes it: of the path as it is written, and at the top it is the top.  Takes over
 * `path`. */
static char *command_plain(struct client *c, char *path)
{
	size_t len = path ? strlen(path) : 0;
	bool slash = len > 1 && path[len - 1] == '/';

	if (!path) {
		client_no_memory(c);
	} else if (strstr(path, "/../") || (len >= 3 && !strcmp(path + len - 3, "/.."))) {
		remote_normalize(path);
		if (slash && path[1])
			strcat(path, "/"); /* it has become shorter by more */
	}
	return path;
}

char *command_remote(struct client *c, const struct lexer_word *word)
{
	return command_plain(c, remote_join(c->cwd, word->text));
}

char *command_directory(struct client *c)
{
	char *path = strdup(c->cwd);

	if (!path)
		client_no_memory(c);
	return path;
}

char *command_remote_pattern(struct client *c, const struct lexer_word *word)
{
	return command_plain(c, remote_join_pattern(c->cwd, word->pattern));
}

int command_expand_remote(
	struct client *c, const struct lexer_command *line, size_t first, struct names *names)
{
	struct calls *s = client_session(c);
	int err = s ? 0 : -ENOTCONN;

	for (size_t i = first; i < line->count && !err; i++) {
		char *pattern = command_remote_pattern(c, &line->words[i]), **found;
		size_t n;

		if (!pattern)
			return -ENOMEM;
		err = remote_glob(s, pattern, &found, &n);
		if (err == -ENOENT && !calls_lost(s)) {
			report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_FOUND, pattern,
				"nothing matches");
		} else if (err) {
			client_report(c, pattern, err);
		} else {
			for (size_t k = 0; k < n; k++)
				if (names_add(names, found[k]))
					err = client_no_memory(c);
			free(found);
		}
		free(pattern);
	}
	return err;
}

/* What "~" or "~user" in front of a word means; "" for one without.  NULL is reported. */
static char *command_home(struct client *c, const struct lexer_word *word)
{
	char *user = strndup(word->pattern, strcspn(word->pattern, "/")), *home = NULL;
	glob_t found = {0};

	if (*word->pattern != '~' || (user && remote_has_magic(user))) {
		home = strdup("");
	} else if (user && glob(user, GLOB_TILDE_CHECK, NULL, &found)) {
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_FOUND, word->text,
			"no such home directory");
		goto done;
	} else if (user) {
		home = strdup(found.gl_pathv[0]);
	}
	if (!home)
		client_no_memory(c);
done:
	globfree(&found);
	free(user);
	return home;
}

static int command_glob(
	struct client *c, const char *pattern, const char *text, struct names *names)
{
	glob_t found = {0};
	int err = 0;

	switch (glob(pattern, 0, NULL, &found)) {
	case 0:
		for (size_t i = 0; i < found.gl_pathc && !err; i++)
			if (names_add(names, strdup(found.gl_pathv[i])))
				err = client_no_memory(c);
		break;
	case GLOB_NOMATCH:
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_FOUND, text, "nothing matches");
		err = -ENOENT;
		break;
	default:
		report_error(&c->report, EXIT_CODE_OK, STATUS_IO, text, "cannot be looked up");
		err = -EIO;
	}
	globfree(&found);
	return err;
}

int command_expand_local(struct client *c, const struct lexer_word *word, struct names *names)
{
	char *home = command_home(c, word), *pattern;
	struct text name = {0};
	int err;

	if (!home)
		return -ENOENT;
	if (remote_has_magic(word->pattern)) {
		/* what is special in the home directory's name is not a pattern */
		pattern = *home ? remote_join_pattern(home, strchrnul(word->pattern, '/') + 1)
				: strdup(word->pattern);
		err = pattern ? command_glob(c, pattern, word->text, names) : client_no_memory(c);
		free(pattern);
	} else {
		text_puts(&name, home);
		text_puts(&name, *home ? strchrnul(word->text, '/') : word->text);
		err = names_add(names, text_take(&name)) ? client_no_memory(c) : 0;
	}
	free(home);
	return err;
}
