/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/exports: the directories that are served, opened, and what of them a session sees.
 *
 * All exports of one configuration live together, until the last session that sees one of them has
 * ended.  Except where it is said, all belongs to the thread of the loop.
 */
#ifndef RFTPD_EXPORTS_H
#define RFTPD_EXPORTS_H

#include "rftpd/daemon_settings.h"
#include "rftpd/jobs/task_pool.h"
#include "rftpd/sweeper.h"
#include "tree/place.h"
#include "tree/space.h"

#include <stdbool.h>
#include <sys/queue.h>

struct export_rule;
struct sandbox;

struct daemon_export {
	struct place place; /* with all rights that anybody has there */
	char *label;        /* its name; of the one at the top its directory: for people */
	struct sweeper sweeper;
};

struct exports {
	struct export_rule **rules; /* a copy of the settings' */
	struct daemon_export *all;  /* one for each */
	unsigned count;
	bool named;                 /* the top lists them; else there is one, and it is the top */
	unsigned references;        /* the daemon's and the sessions' */
	SLIST_ENTRY(exports) entry; /* in daemon->replaced */
	struct task closing;
};

/* Opens those that the settings name.  0 or -EINVAL, logged. */
int exports_open(const struct daemon_settings *, struct exports **out);
/* Tells a sandbox, before it is entered, what is to be reached from within.  0 or -errno. */
int exports_confine(const struct exports *, struct sandbox *);
/* Whether all of them can be reached from within. */
bool exports_are_within(const struct exports *, const struct sandbox *);
/* Starts to look for what was left behind in them. */
void exports_sweep(struct exports *, uint64_t keep_s);
/* In any thread: nobody sees them any more.  May take as long as their file systems. */
void exports_close(struct exports *);
/* What is left of them after that. */
void exports_free(struct exports *);
/* Whether the settings name the same ones. */
bool exports_are(const struct exports *, const struct daemon_settings *);

/* ---- what a session sees ---- */

struct view_entry {
	const struct daemon_export *export;
	const char *name;         /* NULL: the top itself */
	struct place place;       /* the export's, with the session's rights */
	struct space_share share; /* rftpd/serve/quotas: what it may fill */
	bool is_used;             /* by rftpd/serve/session_limits: the session counts for it */
};
struct view {
	struct exports *exports; /* a reference */
	unsigned count;
	struct view_entry entries[]; /* in the order of the configuration */
};

/* For a user (NULL: anonymous) from an address.  NULL with -EACCES in *err: there is nothing that
 * he may use; or -ENOMEM.  `open` as in export_rule_rights. */
struct view *view_new(
	struct exports *, const char *user, const struct sockaddr *from, bool open, int *err);
void view_free(struct view *);

/*
 * In any thread: where a path leads: 0 and the export, with *beneath the rest of the path; -ENOENT:
 * it names none that there is for this session; -EXDEV: out of the top; VIEW_TOP: the directory
 * that lists the exports.
 */
#define VIEW_TOP 1
int view_find(
	const struct view *, const char *path, const struct view_entry **out, const char **beneath);
/* What may be done at least somewhere. */
unsigned view_rights(const struct view *);
/* Directories in the top; 0: the top is the export. */
unsigned view_listed(const struct view *);

#endif
