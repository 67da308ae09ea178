/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_data.c: the commands that move data.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/copy/bench.h"
#include "rftp/feed/feed.h"
#include "rftp/copy/get.h"
#include "rftp/copy/put.h"
#include "rftp/copy/sync.h"
#include "rftp/remote/remote_path.h"
#include "base/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DATA_FLAGS "rnuaogXAHzlpt" /* the last three: as it is anyway, but for --links */
enum {
	DATA_RECURSIVE = 1,
	DATA_DRY_RUN = 2,
	DATA_UPDATE = 4,
	DATA_ARCHIVE = 8,
	DATA_OWNER = 16,
	DATA_GROUP = 32,
	DATA_XATTRS = 64,
	DATA_ACLS = 128,
	DATA_HARD_LINKS = 256,
	DATA_COMPRESS = 512,
	DATA_LINKS = 1024,
};

/* Flags of one command change the settings for as long as it runs. */
static int data_flags(struct client *c, const struct lexer_command *line)
{
	unsigned mask;
	int first = command_flags(c, line, DATA_FLAGS, &mask);

	if (first < 0)
		return first;
	if ((size_t)first == line->count) {
		report_usage(
			&c->report, "usage: %s [-rnuaogXAHzlpt] SRC... [DST]", line->words[0].text);
		return -EINVAL;
	}
	for (size_t i = (size_t)first; i < line->count; i++) {
		if (!*line->words[i].text) {
			report_usage(&c->report, "%s: a name is empty", line->words[0].text);
			return -EINVAL;
		}
	}
	if (mask & DATA_RECURSIVE)
		c->settings.recursive = true;
	if (mask & DATA_DRY_RUN)
		c->settings.dry_run = true;
	if (mask & DATA_UPDATE)
		c->settings.update = true;
	if (mask & DATA_ARCHIVE)
		settings_archive(&c->settings);
	if (mask & DATA_LINKS)
		c->settings.links = WALK_LINKS_KEEP;
	c->settings.owner |= (mask & DATA_OWNER) != 0;
	c->settings.group |= (mask & DATA_GROUP) != 0;
	c->settings.xattrs |= (mask & DATA_XATTRS) != 0;
	if (mask & DATA_COMPRESS && !c->settings.compress)
		c->settings.compress = 1;
	c->settings.hard_links |= (mask & DATA_HARD_LINKS) != 0;
	c->settings.acls |= (mask & DATA_ACLS) != 0;
	return first;
}

/* `many`: all names are sources. */
static int data_get(struct client *c, const struct lexer_command *line, bool many)
{
	const struct settings saved = c->settings;
	struct names patterns = {0}, target = {0};
	int first = data_flags(c, line), err = first < 0 ? first : 0;
	/* one name alone is the source; of several the last is the destination */
	size_t end = first >= 0 && line->count - (size_t)first > 1 && !many ? line->count - 1
									    : line->count;

	for (size_t i = (size_t)first; !err && i < end; i++)
		if (names_add(&patterns, command_remote_pattern(c, &line->words[i])))
			err = -ENOMEM;
	if (!err && end < line->count)
		err = command_expand_local(c, &line->words[end], &target);
	if (!err && target.count > 1) {
		report_usage(&c->report, "%s: the destination is more than one name",
			line->words[end].text);
		err = -EINVAL;
	}
	if (!err)
		err = get_files(c, (const char *const *)patterns.list, patterns.count,
			target.count ? target.list[0] : ".");
	names_fini(&patterns);
	names_fini(&target);
	c->settings = saved;
	return err;
}

int command_get(struct client *c, const struct lexer_command *line)
{
	return data_get(c, line, false);
}

int command_mget(struct client *c, const struct lexer_command *line)
{
	return data_get(c, line, true);
}

int command_mirror(struct client *c, const struct lexer_command *line)
{
	const struct settings saved = c->settings;
	struct sync_params params = {0};
	struct names local = {0};
	char *remote = NULL;
	unsigned mask;
	int first = command_flags(c, line, "Rn", &mask), err = first < 0 ? first : 0;
	size_t here;

	if (!err && line->count - (size_t)first != 2) {
		report_usage(&c->report, "usage: mirror [-Rn] SRC DST");
		err = -EINVAL;
	}
	if (err)
		return err;
	params.to_server = mask & 1;
	if (mask & 2)
		c->settings.dry_run = true;
	here = (size_t)first + !params.to_server;
	err = command_expand_local(c, &line->words[here], &local);
	if (!err && local.count != 1) {
		report_usage(&c->report, "%s: is more than one name", line->words[here].text);
		err = -EINVAL;
	}
	if (!err) {
		remote = command_remote(c, &line->words[(size_t)first + params.to_server]);
		err = remote ? 0 : -ENOMEM;
	}
	if (!err) {
		params.local = local.list[0];
		params.remote = remote;
		err = sync_run(c, &params);
	}
	free(remote);
	names_fini(&local);
	c->settings = saved;
	return err;
}

int command_cat(struct client *c, const struct lexer_command *line)
{
	const struct settings saved = c->settings;
	struct names patterns = {0};
	int err = 0;

	for (size_t i = 1; !err && i < line->count; i++) {
		if (!*line->words[i].text) {
			report_usage(&c->report, "cat: a name is empty");
			err = -EINVAL;
		} else if (names_add(&patterns, command_remote_pattern(c, &line->words[i]))) {
			err = -ENOMEM;
		}
	}
	/* what was printed before it comes before it */
	if (!err)
		err = report_flush(&c->report);
	c->settings.recursive = false;
	if (!c->settings.json)
		c->settings.verbosity = -1; /* nothing but the files, and what went wrong */
	if (!err)
		err = get_files(c, (const char *const *)patterns.list, patterns.count, "-");
	c->settings = saved;
	names_fini(&patterns);
	return err;
}

static int data_put(struct client *c, const struct lexer_command *line, bool many)
{
	const struct settings saved = c->settings;
	struct names sources = {0};
	char *target = NULL;
	int first = data_flags(c, line), err = first < 0 ? first : 0;
	size_t end = first >= 0 && line->count - (size_t)first > 1 && !many ? line->count - 1
									    : line->count;

	for (size_t i = (size_t)first; !err && i < end; i++)
		err = command_expand_local(c, &line->words[i], &sources);
	if (!err) {
		target = end < line->count ? command_remote(c, &line->words[end])
					   : command_directory(c);
		err = target ? put_files(
				       c, (const char *const *)sources.list, sources.count, target)
			     : -ENOMEM;
	}
	free(target);
	names_fini(&sources);
	c->settings = saved;
	return err;
}

int command_put(struct client *c, const struct lexer_command *line)
{
	return data_put(c, line, false);
}

int command_mput(struct client *c, const struct lexer_command *line)
{
	return data_put(c, line, true);
}

int command_append(struct client *c, const struct lexer_command *line)
{
	const bool at = !strcmp(line->words[1].text, "-o");
	const size_t count = line->count;
	size_t first = at ? 3 : 1;
	const struct settings saved = c->settings;
	struct names local = {0};
	struct text why = {0};
	char *target = NULL;
	size_t len;
	int err = 0;

	first += first < count && !strcmp(line->words[first].text, "--");
	if (first >= count || count - first > 2) {
		report_usage(&c->report, "usage: append [-o OFFSET] LOCAL [REMOTE]");
		return -EINVAL;
	}
	if (settings_set(&c->settings, "offset", at ? line->words[2].text : "end", &why)) {
		report_usage(&c->report, "%s", text_str(&why));
		err = -EINVAL;
	}
	c->settings.recursive = false;
	if (!err)
		err = command_expand_local(c, &line->words[first], &local);
	if (!err && local.count != 1) {
		report_usage(&c->report, "%s: is more than one name", line->words[first].text);
		err = -EINVAL;
	}
	if (!err) {
		const struct lexer_word same = {
			.text = (char *)(uintptr_t)remote_last(local.list[0], &len)};

		target = command_remote(c, first + 1 < count ? &line->words[first + 1] : &same);
		err = target ? put_files(c, (const char *const *)local.list, 1, target) : -ENOMEM;
	}
	free(target);
	names_fini(&local);
	text_fini(&why);
	c->settings = saved;
	return err;
}

int command_feed(struct client *c, const struct lexer_command *line)
{
	size_t count = line->count - 2; /* the last word is the directory */
	const char **words = calloc(count, sizeof *words);
	char *target = command_remote(c, &line->words[line->count - 1]);
	int err = -ENOMEM;

	for (size_t i = 0; words && i < count; i++)
		words[i] = line->words[i + 1].text;
	if (words && target)
		err = feed_run(c, words, count, target);
	else if (!words)
		client_no_memory(c);
	free(words);
	free(target);
	return err;
}

int command_bench(struct client *c, const struct lexer_command *line)
{
	struct bench_params params = {.bytes = BENCH_BYTES};
	const struct lexer_word *file = NULL;
	struct names names = {0};
	char *path = NULL;
	bool way = false;
	int err = 0;

	for (size_t i = 1; i < line->count; i++) {
		const char *word = line->words[i].text;

		if (!way && (!strcmp(word, "put") || !strcmp(word, "get"))) {
			params.get = !strcmp(word, "get");
			way = true;
		} else if (file || i > 2 || (i == 2 && !way)) {
			report_usage(&c->report, "usage: bench [BYTES|FILE] [put|get]");
			return -EINVAL;
		} else if (number_parse_size(word, &params.bytes)) {
			file = &line->words[i];
		}
	}
	if (file && params.get) {
		params.file = path = command_remote(c, file);
		err = path ? 0 : -ENOMEM;
	} else if (file) {
		err = command_expand_local(c, file, &names);
		params.file = err ? NULL : names.list[0];
	}
	if (!err)
		err = bench_run(c, &params);
	free(path);
	names_fini(&names);
	return err;
}
