/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/completion.c: owns the names found last.  readline is given whole lines as matches, so
 * that quoting is rftp/shell/lexer's alone: what Tab writes is what the lexer reads.
 */
#include "rftp/shell/completion.h"

#include "base/clock.h"
#include "rftp/shell/commands.h"
#include "rftp/ui/escape.h"
#include "rftp/remote/remote_path.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/readline.h>

#define COMPLETION_FRESH_NS (5 * NS_PER_S) /* a remote listing is asked for again after this */

static struct client *completion_client;
static struct {
	char *path;
	struct calls_list list;
	uint64_t taken_ns;
} completion_cache;

/* ---- finding names ---- */

void completions_fini(struct completions *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->names[i]);
	free(found->names);
	*found = (struct completions){0};
}

/* `head`, then name, then "/" for a directory; when it begins with `word`. */
static void completion_add(struct completions *found, const char *word, const char *head,
	const char *name, bool directory)
{
	struct text text = {0};
	char **names;
	char *whole;

	text_puts(&text, head);
	text_puts(&text, name);
	if (directory)
		text_putc(&text, '/');
	whole = text_take(&text);
	names = whole && !strncmp(whole, word, strlen(word))
			? realloc(found->names, (found->count + 1) * sizeof *names)
			: NULL;
	if (!names) {
		free(whole);
		return; /* without memory there is one name less to offer */
	}
	found->names = names;
	names[found->count++] = whole;
}

static int completion_cmp(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "a/b/c" -> "a/b/", to be freed */
static char *completion_head(const char *word)
{
	const char *slash = strrchr(word, '/');

	return strndup(word, slash ? (size_t)(slash - word) + 1 : 0);
}

static const struct calls_list *completion_list(struct client *c, const char *path)
{
	uint64_t now = clock_now_ns();

	if (completion_cache.path && !strcmp(completion_cache.path, path) &&
		now - completion_cache.taken_ns < COMPLETION_FRESH_NS)
		return &completion_cache.list;
	completion_stop();
	completion_client = c;
	/* without a connection there is nothing to offer; Tab does not make one, nor complain */
	if (!c->session || calls_check(c->session) ||
		calls_list(c->session, path, &completion_cache.list))
		return NULL;
	completion_cache.path = strdup(path);
	completion_cache.taken_ns = now;
	return &completion_cache.list;
}

static void completion_remote(
	struct client *c, struct completions *found, const char *word, bool directories)
{
	char *head = completion_head(word);
	char *path = head ? remote_join(c->cwd, head) : NULL;
	const struct calls_list *list = path ? completion_list(c, path) : NULL;

	for (size_t i = 0; list && i < list->count; i++) {
		const struct calls_entry *e = &list->entries[i];
		bool directory = e->attr.type == MESSAGE_DIRECTORY;

		if (directories && !directory && e->attr.type != MESSAGE_SYMLINK)
			continue;
		if (e->name[0] == '.' && word[strlen(head)] != '.')
			continue;
		completion_add(found, word, head, e->name, directory);
	}
	free(path);
	free(head);
}

/* Where the names of `head` are: "~/" and "~user/" in front of it stand for a home directory. */
static DIR *completion_open(const char *head, bool home)
{
	size_t user = home ? strcspn(head, "/") : 0;
	char *tilde = strndup(head, user);
	struct text path = {0};
	glob_t found = {0};
	DIR *dir = NULL;

	if (tilde && (!home || !glob(tilde, GLOB_TILDE_CHECK, NULL, &found))) {
		text_puts(&path, home ? found.gl_pathv[0] : "");
		text_puts(&path, *head ? head + user : ".");
		dir = path.failed ? NULL : opendir(text_str(&path));
	}
	text_fini(&path);
	globfree(&found);
	free(tilde);
	return dir;
}

static void completion_local(
	struct completions *found, const char *word, bool home, bool directories)
{
	char *head = completion_head(word);
	DIR *dir = head ? completion_open(head, home) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct stat st;
		bool directory = !fstatat(dirfd(dir), entry->d_name, &st, 0) && S_ISDIR(st.st_mode);

		if ((directories && !directory) || !strcmp(entry->d_name, ".") ||
			!strcmp(entry->d_name, ".."))
			continue;
		if (entry->d_name[0] == '.' && word[strlen(head)] != '.')
			continue;
		completion_add(found, word, head, entry->d_name, directory);
	}
	if (dir)
		closedir(dir);
	free(head);
}

static void completion_values(struct completions *found, const char *word, const char *setting)
{
	for (unsigned i = 0; settings_at(i); i++) {
		struct text values = {0};
		char *rest, *value;

		if (strcmp(settings_at(i)->name, setting))
			continue;
		settings_values(i, &values);
		rest = values.data;
		while (rest && (value = strsep(&rest, "|")))
			if (!strpbrk(value, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
				completion_add(found, word, "", value, false);
		text_fini(&values);
	}
}

/* Whether a word begins with a home directory: an unquoted "~" or "~user", and more behind it. */
static bool completion_is_home(const struct lexer_word *word)
{
	size_t user = strcspn(word->pattern, "/");

	return *word->pattern == '~' && word->pattern[user] && !memchr(word->pattern, '\\', user);
}

static void completion_argument(struct client *c, struct completions *found,
	const struct lexer_command *line, enum command_argument kind)
{
	const char *word = line->words[line->count - 1].text;
	const bool home = completion_is_home(&line->words[line->count - 1]);

	switch (kind) {
	case COMMAND_NOTHING:
		break;
	case COMMAND_REMOTE:
	case COMMAND_REMOTE_DIR:
		completion_remote(c, found, word, kind == COMMAND_REMOTE_DIR);
		break;
	case COMMAND_LOCAL:
	case COMMAND_LOCAL_DIR:
		completion_local(found, word, home, kind == COMMAND_LOCAL_DIR);
		break;
	case COMMAND_EITHER:
		completion_remote(c, found, word, false);
		completion_local(found, word, home, false);
		break;
	case COMMAND_SETTING:
		if (line->count > 2)
			completion_values(found, word, line->words[1].text);
		else
			for (unsigned i = 0; settings_at(i); i++)
				completion_add(found, word, "", settings_at(i)->name, false);
		break;
	case COMMAND_NAME:
		for (unsigned i = 0; command_at(i); i++)
			completion_add(found, word, "", command_at(i)->name, false);
		break;
	case COMMAND_BENCH:
		completion_add(found, word, "", "put", false);
		completion_add(found, word, "", "get", false);
		completion_local(found, word, home, false);
		break;
	}
}

int completion_find(struct client *c, const char *line, size_t len, struct completions *found)
{
	struct lexer_partial partial;
	const struct lexer_command *words = &partial.command;
	int err = lexer_partial(line, len, &partial);
	size_t kept = 0;

	*found = (struct completions){0};
	if (err)
		return err;
	if (words->count == 1) {
		completion_argument(c, found, words, COMMAND_NAME);
	} else if (words->count > 1) {
		const struct command *command = command_find(words->words[0].text);
		size_t place = 1; /* flags do not count */

		while (command && place < words->count - 1 && words->words[place].text[0] == '-')
			place++;
		if (command)
			completion_argument(c, found, words,
				place == words->count - 1 ? command->first : command->rest);
	}
	lexer_partial_fini(&partial);
	if (!found->count)
		return 0;
	qsort(found->names, found->count, sizeof *found->names, completion_cmp);
	for (size_t i = 1; i < found->count; i++) { /* the same name on both sides */
		if (strcmp(found->names[kept], found->names[i]))
			found->names[++kept] = found->names[i];
		else
			free(found->names[i]);
	}
	found->count = kept + 1;
	return 0;
}

/* ---- readline ---- */

/* A word as it stands in a line: `whole` words are closed.  The quote that was begun is kept. */
static void completion_quote(struct text *out, const char *word, size_t len, char quote, bool whole)
{
	static const char special[] = " \t\"'\\;&#*?[]$!~";

	if (!escape_printable(word, len) || quote == '$') {
		text_puts(out, "$'");
		escape_dollar(out, word, len);
		text_puts(out, whole ? "'" : "");
	} else if (quote == '\'' && !memchr(word, '\'', len)) {
		text_putc(out, '\'');
		text_add(out, word, len);
		text_puts(out, whole ? "'" : "");
	} else if (quote == '"') {
		text_putc(out, '"');
		for (size_t i = 0; i < len; i++) {
			if (strchr("\"\\", word[i]))
				text_putc(out, '\\');
			text_putc(out, word[i]);
		}
		text_puts(out, whole ? "\"" : "");
	} else {
		for (size_t i = 0; i < len; i++) {
			if (strchr(special, word[i]) || (!i && word[i] == '-'))
				text_putc(out, '\\');
			text_putc(out, word[i]);
		}
	}
}

/* What the line becomes: as it is in front of the word, which has `len` bytes now. */
static char *completion_line(const char *line, const struct lexer_partial *partial,
	const char *word, size_t len, bool whole)
{
	const struct lexer_command *words = &partial->command;
	size_t home = completion_is_home(&words->words[words->count - 1]) ? strcspn(word, "/") : 0;
	struct text out = {0};

	text_add(&out, line, partial->start);
	text_add(&out, word, home); /* in quotes it would be none */
	completion_quote(&out, word + home, len - home, partial->quote, whole);
	return text_take(&out);
}

static size_t completion_common(const struct completions *found)
{
	const char *first = found->names[0], *last = found->names[found->count - 1];
	size_t n = 0;

	while (first[n] && first[n] == last[n]) /* they are sorted */
		n++;
	return n;
}

static char **completion_matches(const char *text, int start, int end)
{
	struct lexer_partial partial;
	struct completions found;
	size_t len = (size_t)rl_point, common;
	char **matches = NULL;
	bool one;

	(void)text;
	(void)start;
	(void)end;
	rl_attempted_completion_over = 1; /* never readline's own file names */
	if (completion_find(completion_client, rl_line_buffer, len, &found) || !found.count)
		return NULL;
	if (lexer_partial(rl_line_buffer, len, &partial))
		goto done;
	one = found.count == 1;
	matches = calloc(found.count + 2, sizeof *matches);
	if (matches) {
		const char *name = found.names[0];
		size_t n;

		common = completion_common(&found);
		/* a directory is gone on with */
		one = one && (!common || name[common - 1] != '/');
		rl_completion_append_character = one ? ' ' : '\0';
		matches[0] = completion_line(rl_line_buffer, &partial, name, common, one);
		for (n = 0; found.count > 1 && n < found.count; n++)
			matches[n + 1] = strdup(found.names[n]);
	}
	lexer_partial_fini(&partial);
done:
	completions_fini(&found);
	return matches;
}

/* Matches are listed by their last component. */
static void completion_display(char **matches, int count, int longest)
{
	char **shown = calloc((size_t)count + 2, sizeof *shown);

	longest = 0;
	for (int i = 0; shown && i <= count; i++) {
		struct text text = {0};
		size_t len;
		const char *last = i ? remote_last(matches[i], &len) : "";
		int width;

		if (i)
			escape_display(&text, last, strlen(last));
		width = (int)escape_columns(text_str(&text), text.len);
		longest = width > longest ? width : longest;
		shown[i] = text_take(&text);
		if (!shown[i])
			count = i - 1;
	}
	if (shown && count > 0) {
		rl_crlf();
		rl_display_match_list(shown, count, longest);
		rl_on_new_line();
	}
	for (int i = 0; shown && shown[i]; i++)
		free(shown[i]);
	free(shown);
}

void completion_start(struct client *c)
{
	completion_client = c;
	rl_attempted_completion_function = completion_matches;
	rl_completion_display_matches_hook = completion_display;
	/* the whole line is the word that readline replaces */
	rl_completer_word_break_characters = "";
	rl_basic_word_break_characters = "";
	rl_completer_quote_characters = "";
	rl_basic_quote_characters = "";
	rl_filename_completion_desired = 0;
	rl_sort_completion_matches = 0;
}

void completion_stop(void)
{
	calls_list_free(&completion_cache.list);
	free(completion_cache.path);
	completion_cache.path = NULL;
	completion_client = NULL;
}
