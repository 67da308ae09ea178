/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/admission_rule: which class a transfer belongs to: the rules of the setting `class`.
 *
 * Pure: text to rules, facts to a rule.
 */
#ifndef RFTPD_ADMISSION_RULE_H
#define RFTPD_ADMISSION_RULE_H

#include "rftpd/jobs/admission.h"

#include <stddef.h>
#include <sys/socket.h>

#define ADMISSION_RULES_MAX 64u
#define ADMISSION_RANK_MAX                                                                         \
	(ADMISSION_RANKS - 2)       /* of a rule: the last is of those that none fits */
#define ADMISSION_DEFAULT "default" /* their class */

enum admission_operation { ADMISSION_PUT = 1, ADMISSION_GET = 2, ADMISSION_FEED = 4 };

/* What is not said (NULL, 0, no bits) fits everything. */
struct admission_rule {
	char name[ADMISSION_NAME_MAX + 1];
	unsigned rank;
	uint64_t deadline_ns; /* from the request on; ADMISSION_NEVER: none */
	uint64_t share;       /* bytes a second; 0: as all */
	char *user, *export_name, *path;
	sa_family_t family; /* of the network: AF_INET, AF_INET6; AF_UNSPEC: any address */
	uint8_t network[16];
	unsigned network_bits;
	unsigned operations; /* enum admission_operation */
	bool ask;            /* who fits may ask for it, and gets it for asking only */
};

/* What is known of a transfer.  Strings may be NULL: then no rule that names one fits. */
struct admission_facts {
	const struct sockaddr *address;
	const char *user, *export_name;
	const char *path; /* as the client names it; a leading '/' does not count */
	enum admission_operation operation;
};

/* "NAME RANK [deadline=TIME] [share=RATE] [address=CIDR] ..." into *out, which is freed with _fini.
 * 0, -EINVAL or -ENOMEM, and `why` (256 bytes) says what is wrong. */
int admission_rule_parse(const char *text, struct admission_rule *out, char *why);
void admission_rule_fini(struct admission_rule *);

/*
 * The rule whose class a transfer gets that asks for the class `asked` ("": for none): the first
 * that fits; or the asked one, if it is no higher, or one that the transfer may ask for.  NULL: the
 * default class.
 */
const struct admission_rule *admission_rule_choose(const struct admission_rule *rules,
	unsigned count, const struct admission_facts *, const char *asked);
/* Whether there is a class of that name; the default one, too. */
bool admission_rule_exists(const struct admission_rule *rules, unsigned count, const char *name);
/* The names there are, with commas between. */
void admission_rule_names(
	const struct admission_rule *rules, unsigned count, char *out, size_t size);

#endif
