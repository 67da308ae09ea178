/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/penalties: see penalties.h.
 */
#include "rftpd/serve/penalties.h"

#include "base/addr.h"
#include "base/clock.h"

#include <string.h>

static const uint64_t seconds[] = {
	[PENALTY_LEFT] = 1,
	[PENALTY_LOGIN] = 5,
	[PENALTY_SILENT] = 10,
	[PENALTY_PROTOCOL] = 10,
};

void penalties_init(struct penalties *p, uint64_t seed)
{
	memset(p, 0, sizeof *p);
	p->seed = seed;
}

static unsigned set_of(const struct penalties *p, const uint8_t key[16])
{
	return (unsigned)(addr_host_hash(key, p->seed) % PENALTIES_SETS);
}

/* The address's place; `make`: one is made where there is none. */
static struct penalty_source *find(
	struct penalties *p, const struct sockaddr *sa, uint64_t now_ns, bool make)
{
	struct penalty_source *set, *soonest;
	uint8_t key[16];

	if (!addr_host(sa, key))
		return NULL;
	set = soonest = p->sources[set_of(p, key)];
	for (unsigned i = 0; i < PENALTIES_WAYS; i++) {
		if (set[i].until_ns > now_ns && !memcmp(set[i].address, key, sizeof key))
			return &set[i];
		if (set[i].until_ns < soonest->until_ns)
			soonest = &set[i];
	}
	if (!make)
		return NULL;
	*soonest = (struct penalty_source){.until_ns = now_ns};
	memcpy(soonest->address, key, sizeof key);
	return soonest;
}

unsigned penalties_add(
	struct penalties *p, const struct sockaddr *sa, enum penalty what, uint64_t now_ns)
{
	struct penalty_source *s = find(p, sa, now_ns, true);

	if (!s)
		return 0;
	s->until_ns += seconds[what] * NS_PER_S;
	if (s->until_ns > now_ns + PENALTIES_MOST_S * NS_PER_S)
		s->until_ns = now_ns + PENALTIES_MOST_S * NS_PER_S;
	if (s->refused || s->until_ns < now_ns + PENALTIES_LEAST_S * NS_PER_S)
		return 0;
	s->refused = true;
	return (unsigned)((s->until_ns - now_ns) / NS_PER_S);
}

bool penalties_refuses(struct penalties *p, const struct sockaddr *sa, uint64_t now_ns)
{
	const struct penalty_source *s = find(p, sa, now_ns, false);

	return s && s->refused;
}
