/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/select: the one place that knows which fabrics there are.  `loop` is for tests, which open it
 * themselves.
 */
#include "fabric/select.h"

#include "fabric/soft.h"
#ifdef RFTP_VERBS
#include "fabric/verbs.h"
#endif

#include <errno.h>
#include <string.h>

static int open_soft(const struct select_config *config, struct fabric **out)
{
	struct soft_config soft = {
		.threads = config->threads,
		.handshake_ms = config->handshake_ms,
		.crc = config->crc,
	};

	return soft_open(&soft, out);
}

#ifdef RFTP_VERBS
static int open_verbs(const struct select_config *config, struct fabric **out)
{
	(void)config; /* its threads and deadlines are the kernel's */
	return verbs_open(out);
}
#endif

static const struct {
	const char *name;
	int (*open)(const struct select_config *, struct fabric **);
} fabrics[] = {
#ifdef RFTP_VERBS
	{"verbs", open_verbs},
#endif
	{"soft", open_soft},
};

#define FABRICS (sizeof fabrics / sizeof *fabrics)

const char *select_name(unsigned i)
{
	return i < FABRICS ? fabrics[i].name : NULL;
}

int select_open(const char *name, const struct select_config *config, struct fabric **out)
{
	static const struct select_config defaults;

	for (unsigned i = 0; i < FABRICS; i++)
		if (!strcmp(fabrics[i].name, name))
			return fabrics[i].open(config ? config : &defaults, out);
	return -ENOENT;
}
