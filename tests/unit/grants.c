/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/grants.c: one login, until it expires, and no longer than its session.
 */
#include "rftpd/auth/grants.h"

#include "proto/message_login.h"
#include "tests/harness.h"

#include <errno.h>
#include <string.h>

static const struct identity who = {.method = MESSAGE_LOGIN_PASSWORD, .user = "ada"};

static int give(struct grants *g, uint32_t session, uint64_t expires_s, uint8_t bytes[GRANTS_BYTES])
{
	return grants_give(g, session, &who, NULL, "/d/f", MESSAGE_DATA_INTO, expires_s, bytes);
}

static void good_for_one_login(void)
{
	uint8_t one[GRANTS_BYTES], two[GRANTS_BYTES];
	struct grant *got = NULL;
	struct grants g;

	grants_init(&g);
	CHECK_EQ(give(&g, 7, 1000, one), 0);
	CHECK_EQ(give(&g, 7, 1000, two), 0);
	CHECK(memcmp(one, two, sizeof one) != 0);
	CHECK_EQ(grants_take(&g, one, sizeof one, 999, &got), 0);
	CHECK(!strcmp(got->path, "/d/f"));
	CHECK(!strcmp(got->who.user, "ada"));
	CHECK_EQ(got->flags, MESSAGE_DATA_INTO);
	CHECK_EQ(got->session, 7);
	grant_free(got);
	CHECK_EQ(grants_take(&g, one, sizeof one, 999, &got), -EALREADY);
	CHECK_EQ(grants_take(&g, two, sizeof two, 999, &got), 0);
	grant_free(got);
	grants_fini(&g);
}

static void expires(void)
{
	uint8_t bytes[GRANTS_BYTES];
	struct grant *got = NULL;
	struct grants g;

	grants_init(&g);
	CHECK_EQ(give(&g, 7, 1000, bytes), 0);
	CHECK_EQ(grants_take(&g, bytes, sizeof bytes, 1000, &got), -ETIME);
	CHECK_EQ(grants_take(&g, bytes, sizeof bytes, UINT64_MAX, &got), -ETIME);
	CHECK_EQ(grants_take(&g, bytes, sizeof bytes, 0, &got), 0);
	grant_free(got);
	grants_fini(&g);
}

/* Every bit of it is signed, and no other process' key is this one's. */
static void signed_here(void)
{
	uint8_t bytes[GRANTS_BYTES];
	struct grant *got = NULL;
	struct grants g, other;

	grants_init(&g);
	grants_init(&other);
	CHECK_EQ(grants_take(&g, bytes, 0, 0, &got), -EKEYREJECTED);
	CHECK_EQ(give(&g, 7, 1000, bytes), 0);
	CHECK_EQ(grants_take(&other, bytes, sizeof bytes, 0, &got), -EKEYREJECTED);
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK_EQ(grants_take(&g, bytes, sizeof bytes, 0, &got), -EKEYREJECTED);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t len = 0; len < sizeof bytes; len++)
		CHECK_EQ(grants_take(&g, bytes, len, 0, &got), -EKEYREJECTED);
	CHECK_EQ(grants_take(&g, bytes, sizeof bytes, 0, &got), 0);
	grant_free(got);
	grants_fini(&g);
	CHECK_EQ(give(&other, 7, 1000, bytes), 0);
	grants_fini(&other);
}

static void goes_with_its_session(void)
{
	uint8_t bytes[GRANTS_BYTES], kept[GRANTS_BYTES];
	struct grant *got = NULL;
	struct grants g;

	grants_init(&g);
	CHECK_EQ(give(&g, 8, 1000, kept), 0);
	for (unsigned i = 0; i < GRANTS_OF_SESSION; i++)
		CHECK_EQ(give(&g, 7, 1000, bytes), 0);
	CHECK_EQ(give(&g, 7, 1000, bytes), -EUSERS);
	grants_forget(&g, 7);
	CHECK_EQ(grants_take(&g, bytes, sizeof bytes, 0, &got), -EALREADY);
	CHECK_EQ(give(&g, 7, 1000, bytes), 0);
	grants_forget(&g, 7);
	CHECK_EQ(grants_take(&g, bytes, sizeof bytes, 0, &got), -EALREADY);
	CHECK_EQ(grants_take(&g, kept, sizeof kept, 0, &got), 0);
	grant_free(got);
	grants_fini(&g);
}

HARNESS_MAIN({"each is good for one login, and tells what it is for", good_for_one_login},
	{"it is over in the second when it expires", expires},
	{"a bit that is changed, and another process' grant", signed_here},
	{"a session's grants are bounded, and go with it", goes_with_its_session})
