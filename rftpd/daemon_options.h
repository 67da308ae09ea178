/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_options: the command line into settings, and nothing else: no output, no files.
 */
#ifndef RFTPD_DAEMON_OPTIONS_H
#define RFTPD_DAEMON_OPTIONS_H

#include "rftpd/daemon_settings.h"

#include <stdio.h>

enum daemon_action {
	DAEMON_ACTION_SERVE,
	DAEMON_ACTION_TEST,
	DAEMON_ACTION_ONCE, /* check the configuration and end */
	DAEMON_ACTION_HELP,
	DAEMON_ACTION_VERSION,
};

struct daemon_options {
	enum daemon_action action;
	struct daemon_settings settings;
	const char *config; /* points into argv; NULL: no file */
};

/* Initialises and fills *out; daemon_options_fini afterwards, also on error.  -EINVAL, -ENOMEM:
 * `why` says what is wrong.  Uses getopt's globals: one thread at a time. */
int daemon_options_parse(
	struct daemon_options *out, int argc, char **argv, char why[DAEMON_WHY_MAX]);
void daemon_options_fini(struct daemon_options *);

/* What --help shows. */
void daemon_options_usage(FILE *);

#endif
