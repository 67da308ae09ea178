/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/copy_rule: the value of `copies-to`: which other servers this one may connect to and send
 * files, as its clients ask.  The text alone.
 *
 *     NETWORK[,NETWORK...] [ports=FIRST[-LAST]]
 *
 * Without ports it is the port that servers listen on by default.
 */
#ifndef RFTPD_COPY_RULE_H
#define RFTPD_COPY_RULE_H

#include "base/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define COPY_RULE_NETWORKS_MAX 64u

struct copy_rule {
	struct network networks[COPY_RULE_NETWORKS_MAX];
	unsigned network_count;
	uint16_t first, last; /* ports */
};

/* -EINVAL: `why` (of `size` bytes) says what is wrong with it; -ENOMEM. */
int copy_rule_parse(const char *text, struct copy_rule **out, char *why, size_t size);
/* Whether it may connect there.  NULL: nowhere. */
bool copy_rule_allows(const struct copy_rule *, const struct sockaddr *);

#endif
