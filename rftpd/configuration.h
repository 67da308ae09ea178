/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/configuration: the settings that the command line and the file it names give together, at
 * the start and whenever the file is read again.
 */
#ifndef RFTPD_CONFIGURATION_H
#define RFTPD_CONFIGURATION_H

#include "rftpd/activation.h"
#include "rftpd/conf.h"
#include "rftpd/daemon_options.h"

#include <stdbool.h>

struct configuration {
	int argc;
	char **argv; /* main's: outlives it */
	struct daemon_options options;
	struct daemon_settings first; /* with which the daemon started, once others are in use */
	bool replaced;                /* they are */
	struct activation activation;
};

/* Reads both; of --help and --version the command line only.  0, or -errno and the reason in `why`.
 * configuration_fini afterwards in any case. */
int configuration_load(struct configuration *, int argc, char **argv, char why[CONF_WHY_MAX]);
void configuration_fini(struct configuration *);

/* What it would be now: in *out, which is the caller's to free after 0.  Else as above, with
 * nothing in *out. */
int configuration_reread(
	const struct configuration *, struct daemon_settings *out, char why[CONF_WHY_MAX]);
/* Those that the daemon started with: what needs a new start is still as they have it. */
const struct daemon_settings *configuration_first(const struct configuration *);
/* Puts `settings` into its place and frees those that were there, but the first. */
void configuration_replace(struct configuration *, struct daemon_settings *settings);

#endif
