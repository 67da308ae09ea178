/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_local.c: the commands about this side.
 */
#include "rftp/shell/commands_impl.h"

#include "rftp/ui/escape.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* `lcd -` goes back to $OLDPWD, as in a shell; commands behind '!' see it, too. */
int command_lcd(struct client *c, const struct lexer_command *line)
{
	const char *home = getenv("HOME"), *before = getenv("OLDPWD");
	bool back = line->count > 1 && !strcmp(line->words[1].text, "-");
	char *here = getcwd(NULL, 0);
	struct names names = {0};
	int err;

	if (back && !before) {
		report_usage(&c->report, "lcd -: there was no other local directory yet");
		err = -EINVAL;
	} else if (back)
		err = names_add(&names, strdup(before)) ? client_no_memory(c) : 0;
	else if (line->count > 1)
		err = command_expand_local(c, &line->words[1], &names);
	else
		err = names_add(&names, strdup(home ? home : "/")) ? client_no_memory(c) : 0;
	if (!err && names.count > 1) {
		report_usage(&c->report, "%s: more than one name", line->words[1].text);
		err = -EINVAL;
	}
	if (!err && chdir(names.list[0])) {
		err = -errno;
		report_error(&c->report, EXIT_CODE_OK, status_from_errno(err), names.list[0], NULL);
	}
	if (!err && here)
		setenv("OLDPWD", here, 1);
	free(here);
	names_fini(&names);
	return err;
}

int command_lpwd(struct client *c, const struct lexer_command *line)
{
	char *here = getcwd(NULL, 0);
	struct text out = {0};

	(void)line;
	if (!here) {
		report_error(&c->report, EXIT_CODE_OK, status_from_errno(errno), "local directory",
			NULL);
		return -errno;
	}
	if (report_json(&c->report)) {
		report_json_begin(&out, "lpwd");
		report_json_string(&out, "path", here);
		report_json_end(&c->report, &out);
	} else {
		if (isatty(STDOUT_FILENO))
			escape_display(&out, here, strlen(here));
		else
			text_puts(&out, here);
		text_putc(&out, '\n');
		report_write(&c->report, text_str(&out), out.len);
		text_fini(&out);
	}
	free(here);
	return 0;
}

/* Runs a program and waits; Ctrl-C is meant for it, as in a shell. */
static int local_spawn(struct client *c, char *const argv[])
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
	posix_spawnattr_t attr;
	sigset_t defaults;
	int err, status = 0;
	pid_t pid;

	report_flush(&c->report);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE); /* ignored here, and that would be handed down */
	sigaddset(&defaults, SIGXFSZ);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGQUIT);
	err = posix_spawnattr_init(&attr);
	if (err)
		return client_no_memory(c);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	err = posix_spawnp(&pid, argv[0], NULL, &attr, argv, environ);
	while (!err && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			err = errno;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	posix_spawnattr_destroy(&attr);
	if (err) {
		report_error(
			&c->report, EXIT_CODE_OK, status_from_errno(err), argv[0], strerror(err));
		return -err;
	}
	if (!status)
		return 0;
	if (WIFSIGNALED(status))
		report_error(&c->report, EXIT_CODE_OTHER, STATUS_OTHER, argv[0],
			strsignal(WTERMSIG(status)));
	else
		report_errorf(&c->report, EREMOTEIO, argv[0], "ended with %d", WEXITSTATUS(status));
	return -EREMOTEIO;
}

int command_lls(struct client *c, const struct lexer_command *line)
{
	struct names names = {0};
	int err = names_add(&names, strdup("ls")) ? client_no_memory(c) : 0;

	for (size_t i = 1; i < line->count && !err; i++)
		err = command_expand_local(c, &line->words[i], &names);
	if (!err && names_add(&names, strdup(""))) /* room for the end of the list */
		err = client_no_memory(c);
	if (!err) {
		free(names.list[--names.count]);
		names.list[names.count] = NULL;
		err = local_spawn(c, names.list);
	}
	names_fini(&names);
	return err;
}

int command_system(struct client *c, const char *text)
{
	const char *shell = getenv("SHELL");
	char *run[] = {"/bin/sh", "-c", (char *)text, NULL};
	char *interactive[] = {(char *)(shell && *shell ? shell : "/bin/sh"), NULL};

	text += strspn(text, " \t\r");
	run[2] = (char *)text;
	return local_spawn(c, *text ? run : interactive);
}
