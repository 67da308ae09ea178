/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/limit_rule: one line `limit = ...`: how much of something who may have.
 *
 *     [user=USER] [address=NETWORK] [export=NAME] LIMIT=VALUE ...
 *
 * What a condition names has the limit together: all sessions of a user, of a network, of an
 * export.  `*` is each one for itself.  Of the lines with the same conditions (by their kind) the
 * first that fits and has the limit in question counts; lines with other conditions count beside
 * it.
 *
 * Pure: text to rules, facts to a rule.
 */
#ifndef RFTPD_LIMIT_RULE_H
#define RFTPD_LIMIT_RULE_H

#include "base/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LIMIT_RULES_MAX 64u
#define LIMIT_WHY_MAX 256u
#define LIMIT_KEY_MAX 512u
#define LIMIT_NONE UINT64_MAX /* a value: as much as there is */

enum limit_condition { /* bits */
	LIMIT_USER = 1,
	LIMIT_ADDRESS = 2,
	LIMIT_EXPORT = 4,
	LIMIT_MASKS = 8, /* combinations of them */
};

enum limit_kind {
	LIMIT_SESSIONS,
	LIMIT_MEMORY, /* bytes of blocks */
	LIMIT_OPEN_FILES,
	LIMIT_RATE,  /* bytes a second */
	LIMIT_QUOTA, /* bytes in an export */
	LIMIT_FILES, /* names there */
	LIMIT_KINDS,
};

struct limit_rule {
	char *text;                   /* as it was given */
	unsigned conditions;          /* enum limit_condition */
	char *user, *export_name;     /* "*": each */
	char *network_text;           /* "*": each */
	struct network network;       /* but for "*" */
	uint64_t values[LIMIT_KINDS]; /* 0: it says nothing of that; LIMIT_NONE */
};

struct limit_facts {
	const char *user; /* NULL: anonymous */
	const struct sockaddr *address;
	const char *export_name; /* NULL: of the one at the top */
};

/* Into *out, which is freed with _fini.  0, -EINVAL or -ENOMEM, and `why` says what is wrong. */
int limit_rule_parse(const char *text, struct limit_rule *out, char why[LIMIT_WHY_MAX]);
void limit_rule_fini(struct limit_rule *);

/* The rule that counts, of those with just these conditions, for a limit.  NULL: none. */
const struct limit_rule *limit_rule_choose(const struct limit_rule *rules, unsigned count,
	unsigned conditions, enum limit_kind, const struct limit_facts *);
/* Who has its limits together with these: the same text for the same ones. */
void limit_rule_key(const struct limit_rule *, const struct limit_facts *, char key[LIMIT_KEY_MAX]);

#endif
