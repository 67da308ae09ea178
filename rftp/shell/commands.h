/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands: the shell's commands, in one table.
 *
 * A command reports its errors itself and gives 0 or -errno.
 */
#ifndef RFTP_COMMANDS_H
#define RFTP_COMMANDS_H

#include "rftp/remote/client.h"
#include "rftp/shell/lexer.h"

/* What may be completed at a place of a command. */
enum command_argument {
	COMMAND_NOTHING,
	COMMAND_REMOTE,
	COMMAND_REMOTE_DIR,
	COMMAND_LOCAL,
	COMMAND_LOCAL_DIR,
	COMMAND_EITHER, /* remote or local */
	COMMAND_SETTING,
	COMMAND_NAME,  /* of a command */
	COMMAND_BENCH, /* put, get, or a local name */
};

struct command {
	const char *name;
	const char *usage; /* what follows the name */
	const char *help;  /* one line */
	enum command_argument first, rest;
	unsigned min, max; /* words after the name, flags among them */
	int (*run)(struct client *, const struct lexer_command *);
};

/* The i-th command, NULL past the last; and by name or alias (exit, bye). */
const struct command *command_at(unsigned i);
const struct command *command_find(const char *name);

/* Runs one command of a line.  0 or -errno, reported. */
int command_run(struct client *, const struct lexer_command *);

/* The log level that the verbosity means. */
void command_apply_settings(const struct client *);

#endif
