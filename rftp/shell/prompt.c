/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/prompt.c: owns readline's state and the history file.
 */
#include "rftp/shell/prompt.h"

#include "rftp/shell/completion.h"
#include "rftp/ui/escape.h"
#include "rftp/shell/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#define PROMPT_HISTORY_LINES 2000

/* readline hands a line over without a context */
static char *prompt_line;
static bool prompt_done;

static int prompt_new_lines; /* of the history, that no file has yet */

static void prompt_got(char *line)
{
	prompt_line = line;
	prompt_done = true;
	rl_callback_handler_remove(); /* the terminal as it was, while the command runs */
}

/* ---- history ---- */

/* $XDG_STATE_HOME/rftp/history or ~/.local/state/rftp/history; false: no place for it. */
static bool prompt_history_path(struct text *path)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && state[0] == '/')
		text_puts(path, state);
	else if (home && home[0] == '/')
		text_printf(path, "%s/.local/state", home);
	else
		return false;
	text_puts(path, "/rftp/history");
	return !path->failed;
}

void prompt_start(struct client *c)
{
	struct text path = {0};

	rl_readline_name = "rftp";
	rl_outstream = isatty(STDOUT_FILENO) ? stdout : stderr;
	rl_catch_signals = 0; /* interrupt's handlers stay; SIGWINCH is readline's */
	completion_start(c);
	using_history();
	stifle_history(PROMPT_HISTORY_LINES);
	if (prompt_history_path(&path))
		read_history(text_str(&path)); /* none yet: none */
	text_fini(&path);
}

/* Other shells may have saved theirs since this one began: what is new goes behind it.  0 or an
 * errno. */
static int prompt_history_save(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return errno;
	/* two that end at once do not cut each other's lines off */
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	err = fchmod(fd, 0600) ? errno : 0;
	if (!err && prompt_new_lines)
		err = append_history(prompt_new_lines, path);
	if (!err)
		err = history_truncate_file(path, PROMPT_HISTORY_LINES);
	close(fd);
	return err;
}

void prompt_stop(struct client *c)
{
	struct text path = {0};
	int err;

	if (prompt_history_path(&path)) {
		for (size_t i = 1; i < path.len; i++) {
			if (path.data[i] != '/')
				continue;
			path.data[i] = '\0';
			mkdir(path.data, 0700); /* there already, or prompt_history_save says so */
			path.data[i] = '/';
		}
		err = prompt_history_save(text_str(&path));
		if (err)
			report_verbose(&c->report, "%s: the history is not saved: %s",
				text_str(&path), strerror(err));
	}
	text_fini(&path);
	clear_history();
	completion_stop();
}

/* ---- signals of job control ---- */

/* Ctrl-Z, Ctrl-\ and fg, while the terminal is as readline wants it */
static const int prompt_signals[] = {SIGTSTP, SIGCONT, SIGQUIT};
#define PROMPT_SIGNALS (sizeof prompt_signals / sizeof *prompt_signals)

static atomic_bool prompt_stopped, prompt_continued;
static int prompt_event = -1; /* eventfd: one of these came, in whatever thread */

static void prompt_caught(int sig)
{
	static const uint64_t one = 1;
	int saved = errno;

	if (sig == SIGTSTP)
		prompt_stopped = true;
	else if (sig == SIGCONT)
		prompt_continued = true;
	/* SIGQUIT would leave the terminal as it is: at the prompt it does nothing */
	if (write(prompt_event, &one, sizeof one) < 0) {
		/* the counter is full: it is readable all the same */
	}
	errno = saved;
}

static void prompt_catch(struct sigaction old[PROMPT_SIGNALS])
{
	struct sigaction ours = {.sa_handler = prompt_caught};

	if (prompt_event < 0)
		prompt_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (size_t i = 0; i < PROMPT_SIGNALS; i++) {
		sigaction(prompt_signals[i], NULL, &old[i]);
		if (old[i].sa_handler != SIG_IGN) /* a shell without job control: stays so */
			sigaction(prompt_signals[i], &ours, NULL);
	}
}

static void prompt_release(const struct sigaction old[PROMPT_SIGNALS])
{
	for (size_t i = 0; i < PROMPT_SIGNALS; i++)
		sigaction(prompt_signals[i], &old[i], NULL);
}

/* Stops, with the terminal as it was found; and takes it again, as whoever started us has set it
 * since. */
static void prompt_job_control(void)
{
	uint64_t count;

	if (read(prompt_event, &count, sizeof count) < 0) {
		/* nothing had come */
	}
	if (atomic_exchange(&prompt_stopped, false)) {
		rl_deprep_terminal();
		rl_crlf();
		fflush(rl_outstream);
		raise(SIGSTOP);
		prompt_continued = true;
	}
	if (!atomic_exchange(&prompt_continued, false))
		return;
	rl_deprep_terminal();
	rl_prep_terminal(1);
	rl_on_new_line();
	rl_redisplay();
}

/* ---- the line ---- */

static void prompt_text(const struct client *c, struct text *out)
{
	struct text server = {0};

	text_puts(out, "rftp");
	if (c->host) {
		client_server(c, &server);
		text_putc(out, ' ');
		escape_display(out, text_str(&server), server.len);
		text_putc(out, ':');
		escape_display(out, c->cwd, strlen(c->cwd));
		text_fini(&server);
		if (!c->session)
			text_puts(out, " (lost)");
	}
	text_puts(out, "> ");
}

/* Ctrl-C at the prompt: the line is given up, a new one begins. */
static bool prompt_interrupted(void)
{
	int sig = interrupt_signal();

	if (!sig)
		return false;
	if (sig != SIGINT) {
		rl_callback_handler_remove();
		fputc('\n', rl_outstream);
		fflush(rl_outstream);
		prompt_done = true;
		return true;
	}
	interrupt_clear();
	rl_free_line_state();
	rl_callback_sigcleanup();
	fputs("^C", rl_outstream);
	rl_replace_line("", 1);
	rl_crlf();
	rl_on_new_line();
	rl_redisplay();
	return true;
}

static void prompt_lost(struct client *c)
{
	struct text text = {0};

	rl_clear_visible_line();
	fflush(rl_outstream);
	client_check(c);
	prompt_text(c, &text);
	rl_set_prompt(text_str(&text));
	text_fini(&text);
	rl_on_new_line();
	rl_redisplay();
}

static void prompt_remember(const char *line)
{
	add_history(line);
	if (prompt_new_lines < PROMPT_HISTORY_LINES)
		prompt_new_lines++;
}

int prompt_read(struct client *c, char **line)
{
	struct sigaction old[PROMPT_SIGNALS];
	struct text text = {0};

	prompt_text(c, &text);
	prompt_line = NULL;
	prompt_done = false;
	prompt_catch(old);
	rl_callback_handler_install(text_str(&text), prompt_got);
	while (!prompt_done) {
		struct pollfd fds[] = {
			{STDIN_FILENO, POLLIN, 0},
			{interrupt_fd(), POLLIN, 0},
			{c->session ? calls_event_fd(c->session) : -1, POLLIN, 0},
			{prompt_event, POLLIN, 0},
		};
		int n;

		client_unlock(c); /* jobs have something to say meanwhile */
		n = poll(fds, 4, -1);
		client_lock(c);

		if (n < 0 && errno == EINTR)
			rl_check_signals(); /* the window's size */
		prompt_job_control();
		if (prompt_interrupted() || n < 0)
			continue;
		if (fds[2].revents)
			prompt_lost(c);
		if (fds[0].revents)
			rl_callback_read_char();
	}
	prompt_release(old);
	text_fini(&text);
	*line = prompt_line;
	if (!prompt_line) {
		if (!interrupt_signal()) {
			fputc('\n', rl_outstream);
			fflush(rl_outstream);
		}
		return 0;
	}
	if (prompt_line[strspn(prompt_line, " \t")]) {
		HIST_ENTRY *last =
			history_length ? history_get(history_base + history_length - 1) : NULL;

		if (prompt_line[0] != ' ' && (!last || strcmp(last->line, prompt_line)))
			prompt_remember(prompt_line);
	}
	return 1;
}
