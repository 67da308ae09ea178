/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/calls: the client's half of the dialogue against servers that do not get on, with a clock of
 * its own.
 */
#include "proto/message_login.h"
#include "tests/harness.h"

#include "tests/calls_stub.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECT_MS 3000
#define REPLY_S 60

/* What comes instead of the reply to `stub_type`; all others are answered. */
static uint16_t stub_type;
static int (*stub_instead)(struct message_header *, const uint8_t **);
static uint8_t stub_data[64];
static uint64_t stub_hello_ns; /* so long HELLO takes */
static uint64_t stub_size;     /* that STAT told of last */

static int reply_hello(struct message_header *h)
{
	const struct message_hello hello = {
		.version = MESSAGE_VERSION,
		.max_channels = 4,
		.max_block = 1 << 20,
		.max_depth = 16,
		.max_transfers = 2,
		.engines = 2,
		.session = 1,
	};

	calls_stub_now += stub_hello_ns;
	h->length = (uint32_t)message_put_hello(&hello, stub_data, sizeof stub_data);
	return 1;
}

static int reply_login(struct message_header *h)
{
	const struct message_login_reply login = {
		.rights = MESSAGE_RIGHTS, .home = {(const uint8_t *)"/", 1}};

	h->length = (uint32_t)message_put_login_reply(&login, stub_data, sizeof stub_data);
	return 1;
}

static int reply_attr(struct message_header *h)
{
	const struct message_attr attr = {.type = MESSAGE_FILE, .size = ++stub_size};

	h->length = (uint32_t)message_put_attr(&attr, stub_data, sizeof stub_data);
	return 1;
}

static int reply_channels(struct message_header *h)
{
	const struct message_channels_reply channels = {.count = 2};

	h->length = (uint32_t)message_put_channels_reply(&channels, stub_data, sizeof stub_data);
	return 1;
}

static int calls_stub_frame(struct message_header *h, const uint8_t **data)
{
	*data = stub_data;
	if (calls_stub_asked == stub_type)
		return stub_instead(h, data);
	*h = (struct message_header){.type = calls_stub_asked | MESSAGE_REPLY};
	switch (calls_stub_asked) {
	case MESSAGE_HELLO:
		return reply_hello(h);
	case MESSAGE_LOGIN:
		return reply_login(h);
	case MESSAGE_STAT:
		return reply_attr(h);
	case MESSAGE_CHANNELS:
		return reply_channels(h);
	default:
		return -ECONNRESET;
	}
}

static int silence(struct message_header *h, const uint8_t **data)
{
	(void)h;
	(void)data;
	return 0;
}

static int keep_alives(struct message_header *h, const uint8_t **data)
{
	(void)data;
	*h = (struct message_header){.type = MESSAGE_PING, .length = 8};
	memset(stub_data, 0, 8);
	return 1;
}

static int queued(struct message_header *h, const uint8_t **data)
{
	const struct message_queued m = {.position = 1};

	(void)data;
	*h = (struct message_header){.type = MESSAGE_QUEUED};
	h->length = (uint32_t)message_put_queued(&m, stub_data, sizeof stub_data);
	return 1;
}

static int empty_list(struct message_header *h, const uint8_t **data)
{
	(void)data;
	*h = (struct message_header){.type = MESSAGE_LIST | MESSAGE_REPLY, .length = 3};
	memcpy(stub_data, "\1\0\0", 3);
	return 1;
}

/* With HELLO and the login. */
static void (*stub_ahead)(void *ctx, struct calls *);

static int open_stub(int cancel_fd, struct calls **out, struct calls_error *why)
{
	const struct calls_params params = {
		.trust = calls_stub_trust,
		.host = "localhost",
		.agent = "test",
		.fabric = "",
		.connect_timeout_ms = CONNECT_MS,
		.cancel_fd = cancel_fd,
		.ahead = stub_ahead,
	};

	return calls_open(&params, out, why);
}

static void opening_ends(void)
{
	static const uint16_t types[] = {MESSAGE_HELLO, MESSAGE_LOGIN};

	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = calls_stub_now;
		struct calls_error why;
		struct calls *c;

		stub_type = types[i / 2];
		stub_instead = i % 2 ? keep_alives : silence;
		stub_hello_ns = 2 * NS_PER_S;
		CHECK_EQ(open_stub(-1, &c, &why), -ETIMEDOUT);
		stub_hello_ns = 0;
		CHECK_EQ(why.status, STATUS_TIMEOUT);
		CHECK(strstr(why.text, "for 3 s"));
		CHECK_EQ((calls_stub_now - before) / NS_PER_MS / 10, CONNECT_MS / 10);
	}
}

static void replies_end(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct message_attr attr;
		struct calls_error why;
		struct calls *c;
		uint64_t before;

		stub_type = MESSAGE_STAT;
		stub_instead = i ? keep_alives : silence;
		CHECK_EQ(open_stub(-1, &c, &why), 0);
		before = calls_stub_now;
		CHECK_EQ(calls_stat(c, "/f", &attr), -ETIMEDOUT);
		CHECK(calls_lost(c));
		CHECK(strstr(calls_error(c)->text, "no answer to STAT for 60 s"));
		CHECK_EQ((calls_stub_now - before) / NS_PER_S, REPLY_S);
		calls_close(c);
	}
}

static void interrupted(void)
{
	static int (*const instead[])(struct message_header *, const uint8_t **) = {
		keep_alives, queued};
	const struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES, .path = {(const uint8_t *)"f", 1}};

	for (unsigned i = 0; i < 2; i++) {
		int cancel_fd = eventfd(0, EFD_CLOEXEC);
		struct calls_error why;
		struct calls *c;

		stub_type = MESSAGE_STORE;
		stub_instead = instead[i];
		CHECK_EQ(open_stub(cancel_fd, &c, &why), 0);
		CHECK_EQ(eventfd_write(cancel_fd, 1), 0);
		CHECK_EQ(calls_store(c, 0, &request), -ECANCELED);
		CHECK(calls_lost(c));
		calls_close(c);
		close(cancel_fd);
	}
}

static void listing_without_end(void)
{
	struct calls_error why;
	struct calls_list list;
	struct calls *c;

	stub_type = MESSAGE_LIST;
	stub_instead = empty_list;
	CHECK_EQ(open_stub(-1, &c, &why), 0);
	CHECK_EQ(calls_list(c, "/", &list), -EPROTO);
	CHECK_EQ(list.count, 0);
	CHECK(calls_lost(c));
	calls_close(c);
}

static void ahead_of_a_put(void *ctx, struct calls *c)
{
	(void)ctx;
	calls_stat_ahead(c, "/f");
	calls_channels_ahead(c, 0, 2);
}

static void sent_ahead(void)
{
	struct message_attr attr;
	struct calls_error why;
	struct calls *c;
	unsigned sent;

	stub_type = 0;
	stub_ahead = ahead_of_a_put;
	stub_size = 6;
	CHECK_EQ(open_stub(-1, &c, &why), 0);
	sent = calls_stub_puts;
	CHECK_EQ(calls_stat(c, "/f", &attr), 0);
	CHECK_EQ(attr.size, 7);
	CHECK_EQ(calls_channels(c, 0, 0), 0);
	CHECK_EQ(calls_stub_puts, sent);
	CHECK_EQ(calls_stat(c, "/f", &attr), 0);
	CHECK_EQ(attr.size, 8);
	CHECK_EQ(calls_stub_puts, sent + 1);
	calls_close(c);
	stub_ahead = NULL;
}

static void not_asked_for(void)
{
	struct message_attr attr;
	struct calls_error why;
	struct calls *c;
	unsigned sent;

	stub_type = 0;
	stub_ahead = ahead_of_a_put;
	stub_size = 0;
	CHECK_EQ(open_stub(-1, &c, &why), 0);
	sent = calls_stub_puts;
	CHECK_EQ(calls_stat(c, "/g", &attr), 0);
	CHECK_EQ(attr.size, 2);
	CHECK_EQ(calls_stub_puts, sent + 1);
	CHECK_EQ(calls_channels(c, 0, 0), 0);
	CHECK_EQ(calls_stub_puts, sent + 2);
	calls_close(c);
	stub_ahead = NULL;
}

static void ahead_of_much(void *ctx, struct calls *c)
{
	(void)ctx;
	for (unsigned i = 0; i < 20; i++)
		calls_stat_ahead(c, "/f");
}

static void few_are_sent_ahead(void)
{
	unsigned before = calls_stub_puts, sent;
	struct calls_error why;
	struct calls *c;

	stub_type = 0;
	stub_ahead = ahead_of_much;
	CHECK_EQ(open_stub(-1, &c, &why), 0);
	sent = calls_stub_puts - before;
	CHECK(sent > 2 && sent < 8);
	calls_stat_ahead(c, "/f");
	CHECK_EQ(calls_stub_puts - before, sent);
	calls_close(c);
	stub_ahead = NULL;
}

HARNESS_MAIN({"HELLO and the login behind it share one time-out", opening_ends},
	{"what was sent ahead is not sent again, and its reply is its own", sent_ahead},
	{"what was sent ahead and is not asked for keeps nothing from its reply", not_asked_for},
	{"requests ahead are bounded, and none leaves later", few_are_sent_ahead},
	{"a reply has a time-out, whatever comes before it", replies_end},
	{"Ctrl-C ends a wait in which something comes all the time", interrupted},
	{"a frame of a listing that is not the last has an entry", listing_without_end})
