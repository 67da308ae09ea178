/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/main.c: the client program: what the command line asks for, and the exit code.
 */
#include "base/limit.h"
#include "base/standard.h"
#include "session/tls.h"
#include "rftp/remote/client.h"
#include "rftp/shell/commands.h"
#include "rftp/copy/copy.h"
#include "rftp/copy/leftovers.h"
#include "rftp/copy/sync.h"
#include "rftp/doctor/doctor.h"
#include "rftp/feed/feed.h"
#include "rftp/shell/interrupt.h"
#include "rftp/shell/jobs.h"
#include "rftp/shell/lexer.h"
#include "rftp/options.h"
#include "rftp/shell/shell.h"
#include "rftp/remote/try_login.h"
#include "rftp/sum/sum_command.h"
#include "rftp/remote/url.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int main_open(struct client *c, char *url)
{
	struct lexer_word words[] = {{"open", "open"}, {url, url}};
	struct lexer_command line = {.words = words, .count = 2};

	return command_run(c, &line);
}

static int main_doctor(struct client *c, const struct options *o)
{
	struct doctor_params params = {.url = NULL};

	for (int i = 0; i < o->count; i++)
		*(url_is(o->names[i]) ? &params.url : &params.directory) = o->names[i];
	return doctor_run(c, &params);
}

/* A URL alone opens a shell, whose commands come from standard input where nobody sits at a
 * terminal.  Someone who forgot the destination of a copy must hear of it.  0 or -EINVAL. */
static int main_check_forgotten(struct client *c, const struct options *o)
{
	const char *path = o->count ? strstr(o->names[0], "://") : NULL;
	int ch;

	if (!path || o->commands || o->batch)
		return 0;
	path = strchrnul(path + 3, '/');
	if (!o->settings.recursive) {
		if (!path[strspn(path, "/")])
			return 0; /* nothing is named that could be meant to be copied */
		ch = getc(stdin);
		if (ch != EOF)
			return ungetc(ch, stdin) == EOF ? -EIO : 0;
		if (interrupt_signal())
			return 0;
	}
	report_usage(&c->report,
		"%s: the destination is missing, and there are no commands: name where it should "
		"go (. is here)",
		o->names[0]);
	return -EINVAL;
}

/* The first error; an interactive shell ends well whatever happened in it. */
static int main_shell(struct client *c, const struct options *o)
{
	bool script = o->commands || o->batch || !isatty(STDIN_FILENO);
	int err = 0;

	c->interactive = !script;
	if (script)
		err = main_check_forgotten(c, o);
	c->lists_first = o->commands && shell_lists_first(o->commands);
	if (o->count && !err)
		err = main_open(c, o->names[0]);
	if (err && script)
		return err;
	if (interrupt_signal() == SIGINT && !script)
		interrupt_clear();
	if (o->commands)
		return shell_run_text(c, o->commands);
	if (script)
		return shell_run_file(c, o->batch ? o->batch : "-");
	shell_run_terminal(c);
	return 0;
}

static int main_run(struct client *c, const struct options *o)
{
	struct text help = {0};
	int err = 0;

	switch (o->action) {
	case OPTIONS_HELP:
		options_help(&help);
		report_write(&c->report, text_str(&help), help.len);
		text_fini(&help);
		break;
	case OPTIONS_VERSION:
		report_write(
			&c->report, "rftp " RFTP_VERSION "\n", strlen("rftp " RFTP_VERSION "\n"));
		break;
	case OPTIONS_COPY:
		err = copy_run(c, o->names, o->count);
		break;
	case OPTIONS_FEED:
		err = feed_main(c, o->names, o->count);
		break;
	case OPTIONS_LOGIN:
		err = try_login(c, o->names[0]);
		break;
	case OPTIONS_SYNC:
		err = sync_main(c, o->names, o->count);
		break;
	case OPTIONS_SUM:
		err = sum_command(c,
			&(struct sum_params){.algorithm = o->algorithm,
				.list = o->list,
				.tag = o->tag,
				.recursive = c->settings.recursive},
			(const char *const *)o->names, (size_t)o->count);
		break;
	case OPTIONS_LEFTOVERS:
		err = leftovers_command(c,
			&(struct leftovers_command){.remove = o->remove, .older = o->older},
			(const char *const *)o->names, (size_t)o->count);
		break;
	case OPTIONS_CMP:
		err = sum_compare(
			c, (const struct cmp_file[2]){{.shown = o->names[0], .path = o->names[0]},
				   {.shown = o->names[1], .path = o->names[1]}});
		break;
	case OPTIONS_DOCTOR:
		err = main_doctor(c, o);
		break;
	case OPTIONS_SHELL:
		c->jobs = jobs_new();
		err = c->jobs ? main_shell(c, o) : client_no_memory(c);
		jobs_free(c->jobs, c);
		c->jobs = NULL;
		break;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct options options;
	struct client client;
	struct text why = {0};
	int err, code, sig;

	if (standard_fill())
		exit(EXIT_CODE_IO);
	tls_outlive_exit();
	limit_raise_files();     /* without it, a tree of small files may run into the soft limit */
	setlocale(LC_CTYPE, ""); /* widths of characters; numbers stay as they are */
	err = options_parse(argc, argv, &options, &why);
	if (client_init(&client, &options.settings) || interrupt_init()) {
		fprintf(stderr, "rftp: %s\n", strerror(errno));
		text_fini(&why);
		client_fini(&client);
		exit(EXIT_CODE_IO);
	}
	command_apply_settings(&client);
	if (err) {
		report_usage(&client.report, "%s", text_str(&why));
		fputs("rftp: try rftp --help\n", stderr);
	} else {
		err = main_run(&client, &options);
	}
	text_fini(&why);
	if (report_flush(&client.report) && !err)
		err = -EIO;
	code = err && !client.report.code ? EXIT_CODE_OTHER : client.report.code;
	client_fini(&client);

	sig = interrupt_signal();
	if (sig == SIGINT)
		code = EXIT_CODE_INTERRUPTED;
	else if (sig)
		code = 128 + sig;
	exit(code);
}
