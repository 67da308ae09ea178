/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/lexer: a line of the shell into commands and words.
 *
 *     word word 'as it is' "with \" and \\" $'\n\xff\'' a\ b ; next # comment
 *
 * ';' and the line's end separate commands; so does '&' as a word of its own, which has the command
 * before it run in the background.  A '-' in front of a command ignores its error.  '!' in
 * front takes the rest of the line for the system's shell.  Knows no command.
 */
#ifndef RFTP_LEXER_H
#define RFTP_LEXER_H

#include <stdbool.h>
#include <stddef.h>

struct lexer_word {
	char *text;
	char *pattern; /* for glob(3), fnmatch(3): quoted special characters are escaped */
};

struct lexer_command {
	struct lexer_word *words;
	size_t count;
	bool ignore_error, background;
	char *shell; /* what followed '!'; else NULL */
};

/* The next command from *at on, which moves behind it: 1; 0 (no more); -EINVAL (*why: a quote is
 * not closed, ...; *at is at the end); -ENOMEM.  After 1 the caller frees with lexer_command_fini.
 */
int lexer_next(const char **at, struct lexer_command *out, const char **why);
void lexer_command_fini(struct lexer_command *);

/* For completion: the command in which the line's first `len` bytes end.  Its last word, which may
 * be empty, is the one being written.  A NUL among the bytes ends the text of its word only. */
struct lexer_partial {
	struct lexer_command command; /* at least one word, unless `shell` */
	size_t start;                 /* where the last word begins in the line */
	char quote;                   /* open at the end: 0, '\'', '"', '$' */
};
int lexer_partial(const char *line, size_t len, struct lexer_partial *out);
void lexer_partial_fini(struct lexer_partial *);

#endif
