/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/penalties: see penalties.h.
 */
#include "rftpd/serve/penalties.h"

#include "base/clock.h"

#include <netinet/in.h>
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

/* What counts of an address: all of IPv4, as IPv6 has it; of IPv6 what a host does not choose. */
static bool key_of(const struct sockaddr *sa, uint8_t key[16])
{
	struct in6_addr in6;

	memset(key, 0, 16);
	if (sa->sa_family == AF_INET) {
		key[10] = key[11] = 0xff;
		memcpy(key + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	in6 = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	memcpy(key, &in6, IN6_IS_ADDR_V4MAPPED(&in6) ? 16 : 8);
	return true;
}

static unsigned set_of(const struct penalties *p, const uint8_t key[16])
{
	uint64_t h = p->seed, word;

	for (unsigned i = 0; i < 16; i += sizeof word) {
		memcpy(&word, key + i, sizeof word);
		/* splitmix64: every bit of it tells */
		h = ((h ^ word) ^ ((h ^ word) >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
		h ^= h >> 31;
	}
	return (unsigned)h % PENALTIES_SETS;
}

/* The address's place; `make`: one is made where there is none. */
static struct penalty_source *find(
	struct penalties *p, const struct sockaddr *sa, uint64_t now_ns, bool make)
{
	struct penalty_source *set, *soonest;
	uint8_t key[16];

	if (!key_of(sa, key))
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
