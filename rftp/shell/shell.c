/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/shell.c: owns nothing.  Decides what an error or an interrupt means for the commands
 * that follow.
 */
#include "rftp/shell/shell.h"

#include "rftp/shell/commands.h"
#include "rftp/shell/interrupt.h"
#include "rftp/shell/jobs.h"
#include "rftp/shell/prompt.h"
#include "rftp/ui/escape.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shell_execute(struct client *c, struct lexer_command *line)
{
	int err = line->background ? jobs_start(c->jobs, c, line) : command_run(c, line);
	int flushed = report_flush(&c->report);

	return err ? err : flushed;
}

/* An error drops what follows it: that must not go unnoticed. */
static void shell_say_dropped(struct client *c, const char *rest)
{
	const char *at = rest, *why;
	struct lexer_command line;
	struct text text = {0};
	int err = lexer_next(&at, &line, &why);

	if (err == 1)
		lexer_command_fini(&line);
	if (err != 1 && err != -EINVAL)
		return;
	rest += strspn(rest, " \t\r\n;");
	escape_display(&text, rest, strcspn(rest, "\r\n"));
	report_note(&c->report, "not run after the error: %s", text_str(&text));
	text_fini(&text);
}

/* One line or more.  Stops at the first error. */
static int shell_lines(struct client *c, const char *text)
{
	struct lexer_command line;
	const char *why;
	int err = 0, found;

	while (!err && !c->quit && (found = lexer_next(&text, &line, &why)) != 0) {
		if (found == -ENOMEM)
			return client_no_memory(c);
		if (found < 0) {
			report_usage(&c->report, "%s", why);
			return found;
		}
		err = shell_execute(c, &line);
		if (interrupt_signal())
			err = -ECANCELED;
		else if (err && line.ignore_error) {
			report_forget(&c->report);
			err = 0;
		} else if (err && !c->quit) {
			shell_say_dropped(c, text);
		}
		lexer_command_fini(&line);
	}
	return err;
}

/* Of a script, what runs in the background belongs to it: its first error. */
static int shell_end(struct client *c, int err)
{
	int failed = jobs_wait(c->jobs, c, 0);

	return err ? err : failed;
}

int shell_run_text(struct client *c, const char *text)
{
	return shell_end(c, shell_lines(c, text));
}

bool shell_lists_first(const char *text)
{
	struct lexer_command line;
	const char *why;
	bool lists;

	if (lexer_next(&text, &line, &why) != 1)
		return false;
	lists = line.count && !strcmp(line.words[0].text, "ls") && !line.background;
	for (size_t i = 1; i < line.count; i++)
		lists = lists && line.words[i].text[0] == '-';
	lexer_command_fini(&line);
	return lists;
}

int shell_run_file(struct client *c, const char *path)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "re");
	unsigned long number = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t len = 0;
	int err = 0, read_error;

	if (!file) {
		err = -errno;
		report_error(&c->report, EXIT_CODE_OK, status_from_errno(err), path, NULL);
		return err;
	}
	if (standard)
		path = "standard input";
	c->stdin_taken |= standard;
	while (!err && !c->quit && !interrupt_signal() &&
		(errno = 0, len = getline(&line, &size, file)) >= 0) {
		number++;
		if (strlen(line) != (size_t)len) {
			report_usage(&c->report, "line %lu has a NUL byte", number);
			err = -EINVAL;
		} else {
			err = shell_lines(c, line);
		}
		if (err)
			report_note(&c->report, "stopped at line %lu of %s", number, path);
	}
	read_error = errno;
	if (!err && ferror(file) && !interrupt_signal()) {
		err = read_error ? -read_error : -EIO;
		report_error(
			&c->report, EXIT_CODE_OK, status_from_errno(err), path, strerror(-err));
	}
	free(line);
	if (!standard)
		fclose(file);
	return shell_end(c, err);
}

void shell_run_terminal(struct client *c)
{
	char *line;

	prompt_start(c);
	while (!c->quit && prompt_read(c, &line)) {
		report_forget(&c->report);
		shell_lines(c, line);
		free(line);
		if (interrupt_signal() == SIGINT) /* it ended the command; the shell goes on */
			interrupt_clear();
		else if (interrupt_signal())
			break;
		jobs_collect(c->jobs, c);
		report_flush(&c->report);
	}
	report_forget(&c->report);
	prompt_stop(c);
}
