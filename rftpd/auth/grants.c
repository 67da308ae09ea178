/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/grants: see grants.h.
 */
#include "rftpd/auth/grants.h"

#include "base/opener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIGNED_BYTES (GRANTS_NUMBER_BYTES + 8u)

void grants_init(struct grants *g)
{
	*g = (struct grants){0};
	TAILQ_INIT(&g->list);
}

void grants_fini(struct grants *g)
{
	struct grant *one;

	while ((one = TAILQ_FIRST(&g->list))) {
		TAILQ_REMOVE(&g->list, one, entry);
		grant_free(one);
	}
	explicit_bzero(g->key, sizeof g->key);
	g->has_key = false;
}

void grant_free(struct grant *one)
{
	if (!one)
		return;
	opener_free(one->opener);
	explicit_bzero(one->number, sizeof one->number);
	free(one);
}

static void put_time(uint8_t bytes[8], uint64_t seconds)
{
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(seconds >> (56 - 8 * i));
}

static uint64_t get_time(const uint8_t bytes[8])
{
	uint64_t seconds = 0;

	for (unsigned i = 0; i < 8; i++)
		seconds = seconds << 8 | bytes[i];
	return seconds;
}

static int make_key(struct grants *g)
{
	int err = g->has_key ? 0 : tls_random(g->key, sizeof g->key);

	g->has_key = !err;
	return err;
}

int grants_give(struct grants *g, uint32_t session, const struct identity *who,
	struct opener *opener, const char *path, uint32_t flags, uint64_t expires_s,
	uint8_t bytes[GRANTS_BYTES])
{
	struct grant *one;
	unsigned count = 0;
	int err = make_key(g);

	TAILQ_FOREACH(one, &g->list, entry)
	count += one->session == session;
	if (!err && count >= GRANTS_OF_SESSION)
		err = -EUSERS;
	if (err)
		return err;
	one = calloc(1, sizeof *one + strlen(path) + 1);
	if (!one)
		return -ENOMEM;
	one->session = session;
	one->who = *who;
	one->flags = flags;
	one->expires_s = expires_s;
	strcpy(one->path, path);
	err = tls_random(one->number, sizeof one->number);
	memcpy(bytes, one->number, sizeof one->number);
	put_time(bytes + GRANTS_NUMBER_BYTES, expires_s);
	if (!err)
		err = tls_mac(g->key, bytes, SIGNED_BYTES, bytes + SIGNED_BYTES);
	if (err) {
		free(one);
		return err;
	}
	one->opener = opener_ref(opener);
	TAILQ_INSERT_TAIL(&g->list, one, entry);
	return 0;
}

int grants_take(
	struct grants *g, const uint8_t *bytes, size_t len, uint64_t now_s, struct grant **out)
{
	uint8_t mac[TLS_MAC_BYTES];
	struct grant *one;

	if (len != GRANTS_BYTES || !g->has_key || tls_mac(g->key, bytes, SIGNED_BYTES, mac) ||
		!tls_mac_equal(mac, bytes + SIGNED_BYTES))
		return -EKEYREJECTED;
	if (get_time(bytes + GRANTS_NUMBER_BYTES) <= now_s)
		return -ETIME;
	TAILQ_FOREACH(one, &g->list, entry)
	if (!memcmp(one->number, bytes, GRANTS_NUMBER_BYTES))
		break;
	if (!one)
		return -EALREADY;
	TAILQ_REMOVE(&g->list, one, entry);
	*out = one;
	return 0;
}

void grants_forget(struct grants *g, uint32_t session)
{
	struct grant *one, *next;

	for (one = TAILQ_FIRST(&g->list); one; one = next) {
		next = TAILQ_NEXT(one, entry);
		if (one->session != session)
			continue;
		TAILQ_REMOVE(&g->list, one, entry);
		grant_free(one);
	}
}
