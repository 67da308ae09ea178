/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/askpass: see askpass.h.
 */
#include "rftp/remote/askpass.h"

#include "base/secret.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PROGRAM_DEFAULT "ssh-askpass"

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* When a program asks: never, where there is no terminal, before the terminal, in its place. */
enum program_use { PROGRAM_NEVER, PROGRAM_LAST, PROGRAM_FIRST, PROGRAM_ALONE };

static enum program_use program_use(void)
{
	const char *require = getenv("SSH_ASKPASS_REQUIRE");

	if (require && !strcasecmp(require, "force"))
		return PROGRAM_ALONE;
	if ((require && !strcasecmp(require, "never")) ||
		!(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")))
		return PROGRAM_NEVER;
	return require && !strcasecmp(require, "prefer") ? PROGRAM_FIRST : PROGRAM_LAST;
}

static int ask_by_program(
	const char *prompt, int cancel_fd, char answer[PASSWORD_MAX], char why[PASSWORD_WHY_MAX])
{
	const char *program = is_set("SSH_ASKPASS") ? getenv("SSH_ASKPASS") : PROGRAM_DEFAULT;
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)prompt, NULL};
	int err = password_read_program(argv, program, cancel_fd, answer, why);

	if (err == -ENOENT && !is_set("SSH_ASKPASS"))
		return -ENOTTY; /* nobody asked for one */
	return err == -ECHILD ? -ENODATA : err;
}

int askpass_ask(
	const char *prompt, int cancel_fd, char answer[PASSWORD_MAX], char why[PASSWORD_WHY_MAX])
{
	const enum program_use use = program_use();
	int err = -ENOTTY;

	*why = '\0';
	if (use >= PROGRAM_FIRST)
		err = ask_by_program(prompt, cancel_fd, answer, why);
	if (err == -ENOTTY && use != PROGRAM_ALONE)
		err = secret_ask(prompt, cancel_fd, answer, PASSWORD_MAX);
	if (err == -ENOTTY && use == PROGRAM_LAST)
		err = ask_by_program(prompt, cancel_fd, answer, why);
	if (!err)
		return 0;
	if (err == -ENOTTY)
		snprintf(why, PASSWORD_WHY_MAX, "there is no terminal to ask on, nor SSH_ASKPASS");
	else if (err == -ECANCELED)
		snprintf(why, PASSWORD_WHY_MAX, "interrupted");
	else if (!*why)
		snprintf(why, PASSWORD_WHY_MAX, "%s",
			err == -ENODATA ? "nothing was typed" : strerror(-err));
	return err;
}
