/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_sum.c: the commands that compare by sums.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/remote/remote_path.h"
#include "rftp/sum/sum_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "-r", "--tag", "-a X" and "-c X" in front.  The first other word, or -EINVAL (reported). */
static int sum_flags(struct client *c, const struct lexer_command *line, struct sum_params *params)
{
	size_t i = 1;

	for (; i < line->count && line->words[i].text[0] == '-' && line->words[i].text[1]; i++) {
		const char *word = line->words[i].text;

		if (!strcmp(word, "--"))
			return (int)i + 1;
		if (!strcmp(word, "-r") || !strcmp(word, "--tag")) {
			*(word[1] == 'r' ? &params->recursive : &params->tag) = true;
			continue;
		}
		if ((strcmp(word, "-a") && strcmp(word, "-c")) || i + 1 == line->count) {
			report_usage(&c->report,
				"usage: sum [-r] [--tag] [-a xxh128|sha256|crc32|md5] FILE..., or "
				"sum -c LIST [DIRECTORY]");
			return -EINVAL;
		}
		*(word[1] == 'a' ? &params->algorithm : &params->list) = line->words[++i].text;
	}
	return (int)i;
}

int command_sum(struct client *c, const struct lexer_command *line)
{
	struct sum_params params = {.shell = true};
	struct names names = {0};
	int first = sum_flags(c, line, &params), err = first < 0 ? first : 0;

	for (size_t i = (size_t)first; !err && i < line->count; i++)
		err = names_add(&names, params.list ? command_remote(c, &line->words[i])
						    : command_remote_pattern(c, &line->words[i]));
	if (!err && params.list && !names.count)
		err = names_add(&names, command_directory(c));
	if (!err)
		err = sum_command(c, &params, (const char *const *)names.list, names.count);
	names_fini(&names);
	return err;
}

int command_cmp(struct client *c, const struct lexer_command *line)
{
	char *remote = command_remote(c, &line->words[1]);
	struct names local = {0};
	size_t len;
	int err = remote ? 0 : -ENOMEM;

	if (!err && line->count > 2)
		err = command_expand_local(c, &line->words[2], &local);
	else if (!err)
		err = names_add(&local, strdup(remote_last(remote, &len)));
	if (!err && local.count != 1) {
		report_usage(&c->report, "cmp: %s is more than one name", line->words[2].text);
		err = -EINVAL;
	}
	if (!err)
		err = sum_compare(
			c, (const struct cmp_file[2]){
				   {.shown = line->words[1].text, .path = remote, .remote = true},
				   {.shown = local.list[0], .path = local.list[0]}});
	free(remote);
	names_fini(&local);
	return err;
}
