/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/options: the command line into a struct, and nothing else: no output, no files, no network.
 */
#ifndef RFTP_OPTIONS_H
#define RFTP_OPTIONS_H

#include "rftp/settings.h"

enum options_action {
	OPTIONS_SHELL,     /* names: none, or a URL to open */
	OPTIONS_COPY,      /* names: SRC... DST */
	OPTIONS_DOCTOR,    /* names: a URL and a directory, or one of them, or none */
	OPTIONS_FEED,      /* names: NAME=SOURCE... DST */
	OPTIONS_LOGIN,     /* names: a URL */
	OPTIONS_SYNC,      /* names: SRC DST */
	OPTIONS_SUM,       /* names: files and URLs; with a list none or one */
	OPTIONS_CMP,       /* names: two files or URLs */
	OPTIONS_LEFTOVERS, /* names: directories and URLs, or none */
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

struct options {
	enum options_action action;
	struct settings settings;
	const char *commands;  /* -c; NULL: none */
	const char *batch;     /* -b; "-" is stdin; NULL: none */
	const char *algorithm; /* sum -a; NULL: not given */
	const char *list;      /* sum -c; NULL: none */
	bool tag;              /* sum --tag */
	bool remove;           /* leftovers --remove */
	const char *older;     /* leftovers --older; NULL: none */
	char **names;          /* point into argv */
	int count;
};

/*
 * May reorder argv.  0; -EINVAL: `why` says what is wrong.  Uses getopt_long's global state: one
 * thread at a time.
 */
int options_parse(int argc, char **argv, struct options *, struct text *why);
/* The text of --help. */
void options_help(struct text *out);

#endif
