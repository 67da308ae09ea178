/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/export_rule: one line `export = ...`: which directory, under which name, for whom, and what
 * they may do there.  The text alone: no directory is looked at.
 *
 *     DIR[:ro|:rw]                  the one export, at the top
 *     NAME DIR [rights=RIGHT,...] [users=USER,...] [addresses=NETWORK,...]
 *
 * A blank in DIR has a backslash before it.  A NAME may stand in several lines: the first one that
 * is for the session's user and address counts.
 */
#ifndef RFTPD_EXPORT_RULE_H
#define RFTPD_EXPORT_RULE_H

#include "base/network.h"

#include <stdbool.h>
#include <sys/socket.h>

#define EXPORT_RULE_ANONYMOUS "@anonymous" /* in users: who has not logged in as anybody */
#define EXPORT_RULE_USERS "@users"         /* and everybody else */
#define EXPORT_RULE_LIST_MAX 64u           /* users, and networks, of one */

struct export_rule {
	char *text; /* as it was given */
	char *name; /* NULL: of the one at the top */
	char *directory;
	unsigned rights; /* enum place_right */
	char **users;    /* none: everybody who may log in, and anonymous for reading */
	unsigned user_count;
	struct network *networks; /* none: from everywhere */
	unsigned network_count;
};

/* -EINVAL: `why` (of `size` bytes) says what is wrong with it; -ENOMEM. */
int export_rule_parse(const char *text, struct export_rule **out, char *why, size_t size);
void export_rule_free(struct export_rule *);

/*
 * What a user (NULL: anonymous) from this address may do there: enum place_right; 0: it is not for
 * him.  `open`: there are no logins at all, so that anonymous is everybody.
 */
unsigned export_rule_rights(
	const struct export_rule *, const char *user, const struct sockaddr *from, bool open);
/* Whether anybody may change anything there. */
bool export_rule_writes(const struct export_rule *);
/* Whether anonymous may do more there than read and list, from anywhere. */
bool export_rule_changes(const struct export_rule *, bool open);

#endif
