/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/limits: see limits.h.
 */
#include "rftpd/jobs/limits.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const enum limit_kind kinds[] = {LIMIT_MEMORY, LIMIT_OPEN_FILES, LIMIT_RATE};

#define KINDS (sizeof kinds / sizeof *kinds)
_Static_assert(KINDS *LIMIT_MASKS <= LIMITS_SHARED_MAX, "room for all that may hold");

void limits_init(struct limits *l)
{
	TAILQ_INIT(&l->all);
}

/* What the rules say of it: each only where it has the limit together with the same ones. */
static uint64_t value_of(const struct shared_limit *s, const struct limit_rule *rules,
	unsigned count, enum limit_kind kind)
{
	const struct limit_rule *r =
		limit_rule_choose(rules, count, s->conditions, kind, &s->facts);
	char key[LIMIT_KEY_MAX];

	if (!r)
		return LIMIT_NONE;
	limit_rule_key(r, &s->facts, key);
	return strcmp(key, s->key) != 0 ? LIMIT_NONE : r->values[kind];
}

static void use_rules(struct shared_limit *s, const struct limit_rule *rules, unsigned count)
{
	uint64_t files = value_of(s, rules, count, LIMIT_OPEN_FILES);

	s->purse.total = (struct budget){
		.memory_bytes = value_of(s, rules, count, LIMIT_MEMORY),
		.files = files < UINT32_MAX ? (uint32_t)files : UINT32_MAX,
		.threads = UINT32_MAX,
	};
	s->rate = value_of(s, rules, count, LIMIT_RATE);
	meter_set_rate(&s->meter, s->rate, clock_now_ns());
}

static void free_shared(struct shared_limit *s)
{
	free(s->user);
	free(s->export_name);
	free(s);
}

static int copy_text(const char *text, char **out)
{
	*out = text ? strdup(text) : NULL;
	return text && !*out ? -ENOMEM : 0;
}

static struct shared_limit *make(
	const char *key, unsigned conditions, const struct limit_facts *facts)
{
	struct shared_limit *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	strcpy(s->key, key);
	s->conditions = conditions;
	if (copy_text(facts->user, &s->user) || copy_text(facts->export_name, &s->export_name)) {
		free_shared(s);
		return NULL;
	}
	memcpy(&s->address, facts->address,
		facts->address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						      : sizeof(struct sockaddr_in));
	s->facts = (struct limit_facts){
		.user = s->user,
		.address = (const struct sockaddr *)&s->address,
		.export_name = s->export_name,
	};
	meter_init(&s->meter, METER_ENDLESS);
	return s;
}

static struct shared_limit *find(struct limits *l, const char *key)
{
	struct shared_limit *s;

	TAILQ_FOREACH(s, &l->all, entry)
	if (!strcmp(s->key, key))
		return s;
	return NULL;
}

static bool has(const struct limits_of *of, const char *key)
{
	for (unsigned i = 0; i < of->count; i++)
		if (!strcmp(of->shared[i]->key, key))
			return true;
	return false;
}

static int take(struct limits *l, const struct limit_rule *rule, const struct limit_facts *facts,
	struct limits_of *out)
{
	char key[LIMIT_KEY_MAX];
	struct shared_limit *s;

	limit_rule_key(rule, facts, key);
	if (has(out, key))
		return 0;
	s = find(l, key);
	if (!s) {
		s = make(key, rule->conditions, facts);
		if (!s)
			return -ENOMEM;
		TAILQ_INSERT_TAIL(&l->all, s, entry);
	}
	s->references++;
	out->shared[out->count++] = s;
	return 0;
}

int limits_take(struct limits *l, const struct limit_rule *rules, unsigned count,
	const struct limit_facts *facts, struct limits_of *out)
{
	int err = 0;

	*out = (struct limits_of){.rate = METER_ENDLESS};
	for (unsigned mask = 0; count && mask < LIMIT_MASKS; mask++)
		for (unsigned i = 0; i < KINDS && !err; i++) {
			const struct limit_rule *rule =
				limit_rule_choose(rules, count, mask, kinds[i], facts);

			if (rule && rule->values[kinds[i]] != LIMIT_NONE)
				err = take(l, rule, facts, out);
		}
	if (err) {
		limits_give(l, out);
		return err;
	}
	for (unsigned i = 0; i < out->count; i++) {
		struct shared_limit *s = out->shared[i];

		if (s->references == 1)
			use_rules(s, rules, count);
		out->rate = s->rate < out->rate ? s->rate : out->rate;
	}
	return 0;
}

void limits_give(struct limits *l, struct limits_of *of)
{
	while (of->count) {
		struct shared_limit *s = of->shared[--of->count];

		if (--s->references)
			continue;
		TAILQ_REMOVE(&l->all, s, entry);
		free_shared(s);
	}
}

void limits_change(struct limits *l, const struct limit_rule *rules, unsigned count)
{
	struct shared_limit *s;

	TAILQ_FOREACH(s, &l->all, entry)
	use_rules(s, rules, count);
}
