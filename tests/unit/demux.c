/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/demux: frames of several transfers and a dialogue on one control channel.
 */
#include "../harness.h"
#include "../property/pair.h"

#include "base/clock.h"
#include "base/log.h"
#include "fabric/loop/loop.h"
#include "proto/status.h"
#include "proto/transfer.h"

#include <poll.h>

#define FRAMES 1500u
#define WAIT_MS 10000

static void begin(struct pair *pair)
{
	struct fabric *fabric;

	CHECK_EQ(loop_open(NULL, &fabric), 0);
	CHECK_EQ(pair_open(pair, fabric, 1), 0);
}

static struct demux_port *port(struct link *link, unsigned number)
{
	struct demux_port *p;

	if (demux_open(link_demux(link), number, &p))
		abort();
	return p;
}

static int put_grant(struct demux_port *p, uint32_t index)
{
	uint8_t data[16];

	return demux_put(p, TRANSFER_GRANT, 0, data,
		(size_t)transfer_put_grant(&index, 1, data, sizeof data));
}

static int put_ping(struct demux_port *p, uint64_t cookie)
{
	const struct message_ping ping = {.cookie = cookie};
	uint8_t data[8];

	return demux_put(
		p, MESSAGE_PING, 0, data, (size_t)message_put_ping(&ping, data, sizeof data));
}

/* The next frame of a port: its type, or 0 when none comes soon; the last byte of its data. */
static uint16_t next(struct demux_port *p, unsigned wait_ms, uint8_t *last)
{
	struct message_header h;
	const uint8_t *data;
	int got = demux_get(p, &h, &data);

	while (!got && !demux_wait(p, (int)wait_ms, -1))
		got = demux_get(p, &h, &data);
	if (got != 1)
		return 0;
	*last = h.length ? data[h.length - 1] : 0;
	return h.type;
}

static void each_port_has_its_own(void)
{
	struct demux_port *ours, *theirs[3];
	struct pair pair;
	uint8_t last;

	begin(&pair);
	theirs[0] = demux_dialogue(link_demux(pair.daemon));
	theirs[1] = port(pair.daemon, 1);
	theirs[2] = port(pair.daemon, 3);
	CHECK(theirs[1] == port(pair.daemon, 1)); /* open already */
	ours = port(pair.client, 1);
	CHECK_EQ(put_grant(ours, 7), 0);
	demux_push(link_demux(pair.client));
	CHECK_EQ(put_grant(port(pair.client, 3), 9), 0);
	CHECK_EQ(put_grant(port(pair.client, 2), 8), 0); /* nobody's there */
	CHECK_EQ(put_ping(ours, 0), 0);                  /* means nothing but that we live */
	CHECK_EQ(put_ping(demux_dialogue(link_demux(pair.client)), 5), 0);
	CHECK_EQ(next(theirs[0], WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(last, 8);
	CHECK_EQ(next(theirs[0], WAIT_MS, &last), MESSAGE_PING);
	CHECK_EQ(last, 5);
	CHECK(demux_heard_ns(link_demux(pair.daemon)) > 0);
	CHECK_EQ(next(theirs[1], WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(last, 7);
	CHECK_EQ(demux_unget(theirs[1]), 0);
	CHECK_EQ(next(theirs[1], WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(last, 7);
	CHECK_EQ(next(theirs[1], 1, &last), 0);
	/* what a transfer has not read when it ends is the dialogue's */
	CHECK(demux_is_shared(link_demux(pair.daemon)));
	demux_close(theirs[1]);
	demux_close(theirs[2]);
	CHECK(!demux_is_shared(link_demux(pair.daemon)));
	CHECK_EQ(next(theirs[0], WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(last, 9);
	CHECK_EQ(demux_unget(theirs[0]), 0);
	CHECK_EQ(next(theirs[0], WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(next(theirs[0], 1, &last), 0);
	/* alone, what it reads is not even copied; it can be given back all the same */
	CHECK_EQ(put_ping(demux_dialogue(link_demux(pair.client)), 6), 0);
	CHECK_EQ(next(theirs[0], WAIT_MS, &last), MESSAGE_PING);
	CHECK_EQ(demux_unget(theirs[0]), 0);
	CHECK_EQ(next(theirs[0], WAIT_MS, &last), MESSAGE_PING);
	CHECK_EQ(last, 6);
	pair_close(&pair);
}

static int put_abort(struct demux_port *p)
{
	const struct transfer_abort abort = {.status = 1};
	uint8_t data[16];

	return demux_put(
		p, TRANSFER_ABORT, 0, data, (size_t)transfer_put_abort(&abort, data, sizeof data));
}

/* What wakes the dialogue may be kept for another. */
static uint16_t next_but(struct demux_port *p, uint8_t *last)
{
	uint16_t type = 0;

	for (unsigned i = 0; i < 20 && !type; i++)
		type = next(p, WAIT_MS, last);
	return type;
}

/* Of a transfer that is about to begin: they are kept, also those that came before it was known;
 * its ABORT is the dialogue's, to whom nothing else changes. */
static void early_frames_are_kept_or_dropped(void)
{
	struct demux_port *ours, *dialogue, *theirs, *other;
	struct demux *d;
	struct pair pair;
	uint8_t last;

	begin(&pair);
	d = link_demux(pair.daemon);
	dialogue = demux_dialogue(d);
	ours = port(pair.client, 1);
	CHECK_EQ(demux_park(d, 1), 0);
	CHECK(!demux_is_shared(d));
	CHECK_EQ(put_grant(ours, 1), 0);
	CHECK_EQ(put_ping(demux_dialogue(link_demux(pair.client)), 5), 0);
	CHECK_EQ(put_grant(ours, 2), 0);
	CHECK_EQ(put_abort(ours), 0);
	demux_push(link_demux(pair.client));
	CHECK_EQ(next_but(dialogue, &last), MESSAGE_PING);
	CHECK_EQ(next_but(dialogue, &last), TRANSFER_ABORT);
	theirs = port(pair.daemon, 1);
	for (uint8_t i = 1; i <= 2; i++) {
		CHECK_EQ(next(theirs, WAIT_MS, &last), TRANSFER_GRANT);
		CHECK_EQ(last, i);
	}
	demux_close(theirs);
	/* another transfer's thread took them in for the dialogue */
	other = port(pair.daemon, 2);
	CHECK_EQ(put_ping(demux_dialogue(link_demux(pair.client)), 6), 0);
	CHECK_EQ(put_grant(ours, 3), 0);
	CHECK_EQ(put_ping(demux_dialogue(link_demux(pair.client)), 7), 0);
	CHECK_EQ(put_grant(ours, 4), 0);
	CHECK_EQ(put_grant(port(pair.client, 2), 9), 0);
	demux_push(link_demux(pair.client));
	CHECK_EQ(next(other, WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(next_but(dialogue, &last), MESSAGE_PING);
	CHECK_EQ(last, 6);
	CHECK_EQ(demux_park(d, 1), 0);
	CHECK_EQ(last, 6);
	CHECK_EQ(next_but(dialogue, &last), MESSAGE_PING);
	CHECK_EQ(last, 7);
	CHECK_EQ(next(dialogue, 1, &last), 0);
	theirs = port(pair.daemon, 1);
	for (uint8_t i = 3; i <= 4; i++) {
		CHECK_EQ(next(theirs, WAIT_MS, &last), TRANSFER_GRANT);
		CHECK_EQ(last, i);
	}
	demux_close(theirs);
	demux_close(other);
	/* it is refused: what was kept and what comes goes by, until ABORT */
	CHECK_EQ(put_grant(ours, 5), 0);
	demux_push(link_demux(pair.client));
	CHECK_EQ(demux_park(d, 1), 0);
	CHECK_EQ(next(dialogue, 1, &last), 0);
	CHECK_EQ(demux_drop(d, 1), 0);
	CHECK_EQ(put_grant(ours, 6), 0);
	CHECK_EQ(put_abort(ours), 0);
	demux_push(link_demux(pair.client));
	CHECK_EQ(next_but(dialogue, &last), TRANSFER_ABORT);
	demux_unpark(d, 1);
	CHECK_EQ(put_grant(ours, 7), 0);
	demux_push(link_demux(pair.client));
	CHECK_EQ(next_but(dialogue, &last), TRANSFER_GRANT);
	CHECK_EQ(last, 7);
	pair_close(&pair);
}

/* A port that is full holds the others up, and nobody else; once it reads they get theirs. */
static void who_does_not_read_holds_up(void)
{
	static uint8_t data[MESSAGE_DATA_MAX];
	uint32_t indices[TRANSFER_GRANTS_MAX] = {0};
	ssize_t len = transfer_put_grant(indices, TRANSFER_GRANTS_MAX, data, sizeof data);
	unsigned frames = 2 * DEMUX_PORT_BYTES / (unsigned)len, got = 0;
	struct demux_port *slow, *other, *say;
	struct message_header h;
	const uint8_t *at;
	struct pair pair;
	uint8_t last;

	begin(&pair);
	slow = port(pair.daemon, 0);
	other = port(pair.daemon, 1);
	say = port(pair.client, 0);
	for (unsigned i = 0; i < frames; i++)
		CHECK_EQ(demux_put(say, TRANSFER_GRANT, 0, data, (size_t)len), 0);
	CHECK_EQ(put_grant(port(pair.client, 1), 3), 0);
	for (unsigned i = 0; i < 100; i++) { /* in turns, as two threads would */
		demux_push(link_demux(pair.client));
		CHECK_EQ(next(other, 1, &last), 0);
	}
	while (got < frames) {
		demux_push(link_demux(pair.client));
		got += demux_get(slow, &h, &at) == 1;
	}
	CHECK_EQ(demux_get(slow, &h, &at), 0);
	CHECK_EQ(next(other, WAIT_MS, &last), TRANSFER_GRANT);
	CHECK_EQ(last, 3);
	pair_close(&pair);
}

/* Waits as one of several, and is the only one in the end. */
static void wait_for_ping(void *arg)
{
	struct demux_port **p = arg;
	uint8_t last;

	if (next(*p, WAIT_MS, &last) == MESSAGE_PING)
		*p = NULL;
}

static void the_last_port_closes_while_the_dialogue_waits(void)
{
	struct demux_port *dialogue, *waiting, *other;
	struct worker worker = {0};
	struct pair pair;
	uint64_t begun = clock_now_ns();

	begin(&pair);
	other = port(pair.daemon, 1);
	dialogue = waiting = demux_dialogue(link_demux(pair.daemon));
	CHECK_EQ(worker_start(&worker, "dialogue", wait_for_ping, &waiting), 0);
	poll(NULL, 0, 50);
	demux_close(other);
	poll(NULL, 0, 50); /* it has looked again, and found nothing */
	CHECK_EQ(put_ping(demux_dialogue(link_demux(pair.client)), 5), 0);
	worker_stop(&worker);
	CHECK(!waiting);
	CHECK(dialogue && clock_now_ns() - begun < WAIT_MS * NS_PER_MS);
	pair_close(&pair);
}

struct talker {
	struct demux_port *port;
	bool dialogue;
	const char *wrong;
	struct worker worker;
};

/* Says and hears FRAMES frames, numbered. */
static void talk(void *arg)
{
	struct talker *t = arg;
	unsigned said = 0, heard = 0;

	while ((said < FRAMES || heard < FRAMES) && !t->wrong) {
		struct message_header h;
		struct message_ping ping;
		struct transfer_grant grant;
		const uint8_t *data;
		int got;

		for (unsigned i = 0; i < 10 && said < FRAMES; i++, said++)
			if (t->dialogue ? put_ping(t->port, said + 1) : put_grant(t->port, said))
				t->wrong = "put";
		got = demux_get(t->port, &h, &data);
		if (got < 0)
			t->wrong = "get";
		else if (!got && said == FRAMES && demux_wait(t->port, WAIT_MS, -1))
			t->wrong = "nothing came";
		if (got <= 0)
			continue;
		if (t->dialogue ? message_get_ping(&ping, data, h.length) ||
					  ping.cookie != heard + 1
				: transfer_get_grant(&grant, data, h.length) ||
					  transfer_grant_index(&grant, 0) != heard)
			t->wrong = "another frame than was sent";
		heard++;
	}
	if (!t->wrong && demux_flush(t->port, WAIT_MS))
		t->wrong = "flush";
}

static void all_at_once(void)
{
	struct talker talkers[2][MESSAGE_TRANSFERS_MAX + 1] = {0};
	struct pair pair;

	begin(&pair);
	for (unsigned side = 0; side < 2; side++) {
		struct link *link = side ? pair.daemon : pair.client;

		for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
			talkers[side][i].port = port(link, i);
		talkers[side][MESSAGE_TRANSFERS_MAX] =
			(struct talker){.port = demux_dialogue(link_demux(link)), .dialogue = true};
	}
	for (unsigned i = 0; i < 2 * (MESSAGE_TRANSFERS_MAX + 1); i++)
		CHECK_EQ(worker_start(&talkers[i % 2][i / 2].worker, "talker", talk,
				 &talkers[i % 2][i / 2]),
			0);
	for (unsigned i = 0; i < 2 * (MESSAGE_TRANSFERS_MAX + 1); i++)
		worker_stop(&talkers[i % 2][i / 2].worker);
	for (unsigned i = 0; i < 2 * (MESSAGE_TRANSFERS_MAX + 1); i++)
		if (talkers[i % 2][i / 2].wrong) {
			printf("# talker %u: %s\n", i, talkers[i % 2][i / 2].wrong);
			CHECK(!"frames were mixed up");
		}
	pair_close(&pair);
}

/* A turn takes in so many frames, and no descriptor tells of those behind these. */
static void behind_many_that_are_dropped(void)
{
	struct demux_port *dialogue, *ours;
	struct message_header h;
	const uint8_t *data;
	struct demux *d;
	struct pair pair;
	bool more = false;
	int got;

	begin(&pair);
	d = link_demux(pair.daemon);
	dialogue = demux_dialogue(d);
	CHECK_EQ(demux_drop(d, 1), 0);
	ours = port(
		pair.client, 1); /* which corks: it leaves in a few pieces, of many frames each */
	for (uint32_t i = 0; i < 200; i++)
		CHECK_EQ(put_grant(ours, i), 0);
	CHECK_EQ(put_ping(ours, 5), 0);
	demux_push(link_demux(pair.client));
	for (;;) {
		CHECK(demux_arm(dialogue) >= 0);
		got = demux_get(dialogue, &h, &data);
		if (got)
			break;
		/* the next piece may still be on its way */
		if (demux_more(d))
			more = true;
		else
			CHECK_EQ(poll(&(struct pollfd){demux_control_fd(d), POLLIN, 0}, 1, WAIT_MS),
				1);
	}
	CHECK_EQ(got, 1);
	CHECK_EQ(h.type, MESSAGE_PING);
	CHECK(more);
	CHECK(!demux_more(d));
	pair_close(&pair);
}

HARNESS_MAIN({"each_port_has_its_own", each_port_has_its_own},
	{"early_frames_are_kept_or_dropped", early_frames_are_kept_or_dropped},
	{"behind_many_that_are_dropped", behind_many_that_are_dropped},
	{"who_does_not_read_holds_up", who_does_not_read_holds_up}, {"all_at_once", all_at_once},
	{"the_last_port_closes_while_the_dialogue_waits",
		the_last_port_closes_while_the_dialogue_waits})
