/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/completion: what Tab offers: commands, remote and local names, settings, by the kinds
 * of arguments in the table of commands.
 */
#ifndef RFTP_COMPLETION_H
#define RFTP_COMPLETION_H

#include "rftp/remote/client.h"

/* Sets readline up; the client must live until completion_stop. */
void completion_start(struct client *);
void completion_stop(void);

struct completions {
	char **names; /* sorted; a directory ends in '/' */
	size_t count;
};
/* Names for the word at the end of `line`; for readline and for tests. */
int completion_find(struct client *, const char *line, size_t len, struct completions *);
void completions_fini(struct completions *);

#endif
