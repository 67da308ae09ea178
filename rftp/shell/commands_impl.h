/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_impl: what the files of the commands share; for commands*.c only.
 */
#ifndef RFTP_COMMANDS_IMPL_H
#define RFTP_COMMANDS_IMPL_H

#include "rftp/shell/commands.h"

/* Words of a list of names. */
struct names {
	char **list;
	size_t count;
};
void names_fini(struct names *);
/* Takes over `name`; NULL is -ENOMEM. */
int names_add(struct names *, char *name);

/*
 * Flags in front, each letter one of `known`: bit i of *mask is known[i].  The index of the first
 * other word ("--" is skipped, "-" is none), or -EINVAL, reported.
 */
int command_flags(struct client *, const struct lexer_command *, const char *known, unsigned *mask);
/* Absolute remote path of a word; NULL: no memory (reported). */
char *command_remote(struct client *, const struct lexer_word *);
char *command_remote_pattern(struct client *, const struct lexer_word *);
/* The same of the remote directory that one is in. */
char *command_directory(struct client *);
/* Remote names from word `first` on, patterns expanded.  0 or -errno, reported. */
int command_expand_remote(
	struct client *, const struct lexer_command *, size_t first, struct names *);
/* The same here: patterns and "~". */
int command_expand_local(struct client *, const struct lexer_word *, struct names *);

/* commands_session.c */
int command_open(struct client *, const struct lexer_command *);
int command_close(struct client *, const struct lexer_command *);
int command_cd(struct client *, const struct lexer_command *);
int command_status(struct client *, const struct lexer_command *);
int command_pwd(struct client *, const struct lexer_command *);
int command_set(struct client *, const struct lexer_command *);
int command_doctor(struct client *, const struct lexer_command *);
int command_quit(struct client *, const struct lexer_command *);
/* commands_ls.c */
int command_ls(struct client *, const struct lexer_command *);
/* commands_remote.c */
int command_mkdir(struct client *, const struct lexer_command *);
int command_rmdir(struct client *, const struct lexer_command *);
int command_rm(struct client *, const struct lexer_command *);
int command_mv(struct client *, const struct lexer_command *);
int command_stat(struct client *, const struct lexer_command *);
int command_df(struct client *, const struct lexer_command *);
/* commands_tree.c */
int command_du(struct client *, const struct lexer_command *);
int command_find_names(struct client *, const struct lexer_command *);
int command_leftovers(struct client *, const struct lexer_command *);
/* commands_change.c */
int command_chmod(struct client *, const struct lexer_command *);
int command_chown(struct client *, const struct lexer_command *);
int command_touch(struct client *, const struct lexer_command *);
int command_ln(struct client *, const struct lexer_command *);
/* commands_data.c */
int command_cat(struct client *, const struct lexer_command *);
int command_get(struct client *, const struct lexer_command *);
int command_put(struct client *, const struct lexer_command *);
int command_mget(struct client *, const struct lexer_command *);
int command_mput(struct client *, const struct lexer_command *);
int command_append(struct client *, const struct lexer_command *);
int command_mirror(struct client *, const struct lexer_command *);
int command_feed(struct client *, const struct lexer_command *);
int command_bench(struct client *, const struct lexer_command *);
/* commands_jobs.c */
int command_jobs(struct client *, const struct lexer_command *);
int command_wait(struct client *, const struct lexer_command *);
int command_kill(struct client *, const struct lexer_command *);
/* commands_sum.c */
int command_sum(struct client *, const struct lexer_command *);
int command_cmp(struct client *, const struct lexer_command *);
/* commands_local.c */
int command_lcd(struct client *, const struct lexer_command *);
int command_lls(struct client *, const struct lexer_command *);
int command_lpwd(struct client *, const struct lexer_command *);
int command_system(struct client *, const char *text); /* behind '!' */

#endif
