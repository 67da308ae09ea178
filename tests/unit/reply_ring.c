/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/reply_ring: replies that lie in a ring and are read: the ring, the times at which it
 * is read, and both in a control channel over the loop fabric.
 */
#include "../harness.h"
#include "../property/pair.h"
#include "../quiet.h"

#include "base/clock.h"
#include "fabric/loop/loop.h"
#include "proto/status.h"
#include "session/pipe_ring.h"
#include "session/reply_ring.h"
#include "session/reply_wait.h"

#define RING 8192u
#define MS 60000

static uint8_t ring[1 << 20] __attribute__((aligned(64)));
static uint8_t land[REPLY_READ_MAX] __attribute__((aligned(64)));

/* The bytes of the stream. */
static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 2654435761u >> 13);
}

struct both {
	struct reply_writer writer;
	struct reply_reader reader;
	uint64_t wrote, read; /* bytes of the stream */
	uint32_t gave, got;   /* credits */
};

static void open_both(struct both *b, uint32_t bytes)
{
	*b = (struct both){0};
	memset(ring, 0, sizeof ring);
	reply_writer_init(&b->writer, ring, bytes);
	reply_reader_init(&b->reader, land, bytes);
}

/* As much as fits, at most `len` bytes.  How much it was; -1: there is no room. */
static int32_t write_some(struct both *b, uint32_t len, uint16_t credits)
{
	static uint8_t bytes[REPLY_PIECE_MAX];
	int32_t room = reply_writer_room(&b->writer);

	if (room < 0)
		return room;
	if (len > (uint32_t)room)
		len = (uint32_t)room;
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = byte_at(b->wrote + i);
	reply_writer_put(&b->writer, bytes, len, credits);
	b->wrote += len;
	b->gave += credits;
	return (int32_t)len;
}

/* What the last READ brought.  As reply_reader_next at its end; 1: a byte is wrong. */
static int take_all(struct both *b)
{
	struct reply_piece piece;
	int got;

	while ((got = reply_reader_next(&b->reader, &piece)) == 1) {
		for (uint32_t i = 0; i < piece.len; i++)
			if (piece.data[i] != byte_at(b->read + i))
				return 1;
		b->read += piece.len;
		b->got += piece.credits;
	}
	return got;
}

static int read_once(struct both *b)
{
	uint32_t offset, bytes = reply_reader_want(&b->reader, &offset);

	memcpy(land, ring + offset, bytes);
	return take_all(b);
}

static void a_stream_crosses(void)
{
	uint64_t rng = harness_seed();
	struct both b;

	for (uint32_t bytes = MESSAGE_RING_MIN; bytes <= 256 * 1024; bytes *= 8) {
		open_both(&b, bytes);
		b.writer.written = b.writer.read = b.reader.read = -4 * bytes; /* they wrap */
		for (unsigned i = 0; i < 20000; i++) {
			uint64_t pick = harness_random(&rng);

			if (pick % 3 == 0)
				reply_reader_expect(&b.reader, pick >> 8 & 3);
			if (pick & 1)
				write_some(&b,
					(uint32_t)(pick >> 16) %
						(pick & 64 ? 300 : REPLY_PIECE_MAX + 9),
					(uint16_t)(pick >> 40 & 7));
			else
				CHECK(read_once(&b) <= 0);
			if (pick & 128)
				CHECK_EQ(reply_writer_confirm(&b.writer, b.reader.read), 0);
		}
		for (unsigned i = 0; b.read != b.wrote || b.got != b.gave; i++) {
			CHECK(i < 10000);
			CHECK(read_once(&b) <= 0);
		}
		CHECK_EQ(b.reader.read, b.writer.written);
		CHECK(b.wrote > 4 * bytes);
	}
}

/* Each word of what a READ brings is as it was before a piece was written, or after it. */
static void what_is_torn_is_read_again(void)
{
	static uint8_t before[RING];
	uint64_t rng = harness_seed();
	unsigned again = 0;
	struct both b;

	open_both(&b, RING);
	for (unsigned i = 0; i < 50000; i++) {
		uint32_t offset, bytes;
		int got;

		reply_reader_expect(&b.reader, 0);
		memcpy(before, ring, RING);
		write_some(&b, (uint32_t)harness_random(&rng) % 600, 1);
		bytes = reply_reader_want(&b.reader, &offset);
		for (uint32_t at = 0; at < bytes; at += 8)
			memcpy(land + at, (harness_random(&rng) & 3 ? ring : before) + offset + at,
				bytes - at < 8 ? bytes - at : 8);
		got = take_all(&b);
		CHECK(got <= 0 && got != -EBADMSG);
		again += got == -EAGAIN;
		while (b.read != b.wrote) {
			got = read_once(&b);
			CHECK(got <= 0 && got != -EBADMSG);
		}
		CHECK_EQ(reply_writer_confirm(&b.writer, b.reader.read), 0);
	}
	CHECK(again > 1000);
}

static void put_u32(uint32_t at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		ring[at + i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A daemon that lies: in the end it is an error, and nothing beyond what was read is looked at. */
static void heads_that_are_forged(void)
{
	static const struct {
		uint32_t at, value;
	} forged[] = {
		{8, 101},
		{8, 99},
		{8, UINT32_MAX},
		{8, REPLY_PIECE_MAX + 1},
		{8, RING - 24},
		{8, RING - 23},
		{12, 1},
		{12, 0x10000},
		{16, 0},
		{20, 0},
		{24, 0},
		{120, 0},
	};

	for (unsigned i = 0; i < sizeof forged / sizeof *forged; i++) {
		unsigned reads = 0;
		struct both b;
		int got;

		open_both(&b, RING);
		write_some(&b, 100, 0);
		put_u32(forged[i].at, forged[i].value);
		do
			got = read_once(&b);
		while (got == -EAGAIN && reads++ < 1000);
		CHECK_EQ(got, -EBADMSG);
		CHECK_EQ(b.read, 0);
	}
	for (unsigned i = 0; i < 3; i++) { /* another number is none: nothing is there */
		static const uint32_t numbers[] = {0, 2, UINT32_MAX};
		struct both b;

		open_both(&b, RING);
		write_some(&b, 100, 0);
		put_u32(4, numbers[i]);
		for (unsigned k = 0; k < 1000; k++)
			CHECK_EQ(read_once(&b), 0);
	}
}

static void noise_is_not_believed(void)
{
	uint64_t rng = harness_seed();

	for (unsigned i = 0; i < 2000; i++) {
		struct both b;

		open_both(&b, RING);
		for (unsigned k = 0; k < 40; k++)
			write_some(&b, (uint32_t)harness_random(&rng) % 400, 1);
		for (unsigned k = 0; k < 8; k++)
			ring[harness_random(&rng) % RING] ^= (uint8_t)harness_random(&rng);
		for (unsigned k = 0; k < 200; k++) {
			int got = read_once(&b);

			CHECK(got <= 0); /* no wrong byte */
			if (got == -EBADMSG)
				break;
		}
	}
}

/* A client that lies of how far it has read. */
static void positions_that_cannot_be(void)
{
	struct both b;

	open_both(&b, RING);
	CHECK_EQ(reply_writer_confirm(&b.writer, REPLY_ALIGN), -EBADMSG);
	write_some(&b, 100, 0);
	write_some(&b, 100, 0);
	CHECK_EQ(reply_writer_confirm(&b.writer, b.writer.written + REPLY_ALIGN), -EBADMSG);
	CHECK_EQ(reply_writer_confirm(&b.writer, b.writer.written / 2 + 1), -EBADMSG);
	CHECK_EQ(reply_writer_confirm(&b.writer, b.writer.written / 2), 0);
	CHECK_EQ(reply_writer_confirm(&b.writer, b.writer.written / 2), 0);
	CHECK_EQ(reply_writer_confirm(&b.writer, 0), -EBADMSG); /* back */
	CHECK_EQ(reply_writer_confirm(&b.writer, b.writer.written), 0);
	while (write_some(&b, REPLY_PIECE_MAX, 0) >= 0)
		;
	/* a client that never says it has read costs the ring, and no more */
	CHECK_EQ(b.writer.written - b.writer.read, RING);
}

/* F: an answer as long as the last one of its kind comes with the READ that finds it. */
static void an_answer_as_long_as_the_last(void)
{
	struct both b;
	uint32_t offset;

	open_both(&b, 1 << 20);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned kind = 0; kind < 3; kind++) {
			uint32_t len = kind * 20000 + 50;

			reply_reader_expect(&b.reader, kind);
			write_some(&b, len, 0);
			CHECK_EQ(read_once(&b), round || len < 500 ? 0 : -EAGAIN);
			while (b.read != b.wrote)
				CHECK(read_once(&b) <= 0);
			CHECK_EQ(reply_writer_confirm(&b.writer, b.reader.read), 0);
		}
	/* and in vain it is not read for long */
	reply_reader_expect(&b.reader, 2);
	CHECK(reply_reader_want(&b.reader, &offset) > 40000);
	for (unsigned i = 0; i < 10; i++)
		CHECK_EQ(read_once(&b), 0);
	CHECK(reply_reader_want(&b.reader, &offset) < 1000);
}

/* READs until the time is up, each of `read_ns`. */
static unsigned wait_in_vain(struct reply_wait *w, uint64_t *now, uint64_t read_ns)
{
	unsigned reads = 0;

	reply_wait_begin(w, *now);
	while (!reply_wait_is_over(w, *now)) {
		if (*now < w->due_ns) {
			*now = w->due_ns;
			continue;
		}
		*now += read_ns;
		reply_wait_missed(w, *now);
		reads++;
	}
	return reads;
}

static void waits_are_bounded(void)
{
	static const uint64_t took[] = {0, 1000, 30000, 1000000, 10 * NS_PER_S, UINT64_MAX / 4};
	struct reply_wait w;
	uint64_t now = NS_PER_S, began;

	for (unsigned i = 0; i < sizeof took / sizeof *took; i++) {
		unsigned reads;

		reply_wait_init(&w, now);
		reply_wait_measured(&w, 10000);
		for (unsigned k = 0; k < 10000; k++) {
			reply_wait_begin(&w, now);
			now += took[i] / 1000;
			reply_wait_came(&w, now);
		}
		began = now;
		reads = wait_in_vain(&w, &now, 10000);
		CHECK(now - began >= REPLY_WAIT_LEAST_NS);
		CHECK(now - began < 3 * REPLY_WAIT_MOST_NS);
		CHECK(reads > 1 && reads < 40);
	}
}

static void what_answers_take_is_known(void)
{
	struct reply_wait w;
	uint64_t now = NS_PER_S, began;

	reply_wait_init(&w, now);
	for (unsigned k = 0; k < 1000; k++) { /* one of 200 takes long */
		reply_wait_begin(&w, now);
		now += k % 200 ? 2000000 : 15000000;
		reply_wait_came(&w, now);
	}
	CHECK(w.patience_ns > 2000000 && w.patience_ns < 3000000);
	CHECK(w.first_ns > 900000 && w.first_ns < 1500000);
	for (unsigned k = 0; k < 30000; k++) { /* answers are faster from now on */
		reply_wait_begin(&w, now);
		now += 400000;
		reply_wait_came(&w, now);
		reply_wait_came(&w, now + 1); /* which nobody has asked for: counts for nothing */
	}
	CHECK(w.patience_ns >= 400000 && w.patience_ns < 600000);
	/* a READ takes what it takes */
	reply_wait_measured(&w, 50 * NS_PER_MS);
	began = now;
	CHECK(wait_in_vain(&w, &now, 50 * NS_PER_MS) > 1);
	CHECK(now - began > 100 * NS_PER_MS);
}

/* ---- in a control channel ---- */

struct talk {
	struct pair pair;
	struct control *client, *daemon;
};

static int follow(struct talk *t)
{
	struct loop_faults faults = {.seed = harness_seed()};
	struct message_ring_reply place;
	struct fabric *fabric;
	int err = loop_open(&faults, &fabric);

	if (!err)
		err = pair_open(&t->pair, fabric, 1);
	if (err)
		return err;
	t->client = link_control(t->pair.client);
	t->daemon = link_control(t->pair.daemon);
	err = pipe_ring_serve(control_pipe(t->daemon), &place);
	if (err)
		return err;
	pipe_ring_begin(control_pipe(t->daemon));
	return pipe_ring_follow(control_pipe(t->client), &place);
}

static uint32_t reply_bytes(unsigned i)
{
	return i % 50 == 49 ? 60000 : 2 + i * 37 % 500;
}

/* Answers each PING by so many bytes. */
static void answer(void *arg)
{
	struct talk *t = arg;
	static uint8_t data[MESSAGE_DATA_MAX];
	struct message_header h;
	const uint8_t *got;
	unsigned i = 0;
	int err = 0;

	while (err >= 0) {
		err = control_get(t->daemon, &h, &got);
		if (err == 1 && h.type == MESSAGE_BYE)
			return;
		if (err == 1)
			err = control_put(
				t->daemon, MESSAGE_GET | MESSAGE_REPLY, 0, data, reply_bytes(i++));
		else if (!err)
			err = control_wait(t->daemon, MS, -1);
	}
}

static int ask(struct talk *t, unsigned outstanding, unsigned *asked, unsigned *answered)
{
	static const uint8_t cookie[8] = {1};
	struct message_header h;
	const uint8_t *data;
	int err = 0;

	while (*asked < *answered + outstanding && !err) {
		err = control_put(t->client, MESSAGE_PING, 0, cookie, sizeof cookie);
		++*asked;
	}
	while (!err) {
		err = control_get(t->client, &h, &data);
		if (err == 1)
			return h.length == reply_bytes((*answered)++) ? 0 : -EPROTO;
		if (!err)
			err = control_wait(t->client, MS, -1);
	}
	return err;
}

static void replies_are_read(void)
{
	struct pipe_ring_counts counts;
	unsigned asked = 0, answered = 0;
	struct worker other = {0};
	struct talk t = {0};

	CHECK_EQ(follow(&t), 0);
	CHECK_EQ(worker_start(&other, "answer", answer, &t), 0);
	while (answered < 2000)
		CHECK_EQ(ask(&t, answered < 1000 ? 1 : 20, &asked, &answered), 0);
	while (answered < asked)
		CHECK_EQ(ask(&t, 0, &asked, &answered), 0);
	CHECK_EQ(control_put(t.client, MESSAGE_BYE, 0, NULL, 0), 0);
	control_drain(t.client, MS);
	worker_stop(&other);
	pipe_ring_count(control_pipe(t.daemon), &counts);
	printf("# %" PRIu64 " pieces, asked for %" PRIu64 " SENDs, %" PRIu64 " sent\n",
		counts.pieces, counts.asks, counts.sends);
	CHECK(counts.pieces > 0);
	CHECK(counts.sends <= counts.asks);
	pair_close(&t.pair);
}

/* Nothing comes for long: the client asks, once, and reads no more until it is told. */
static void who_waits_for_long_asks(void)
{
	static const uint8_t text[302] = {300 >> 8, 300 & 0xff};
	struct pipe_ring_counts counts = {0};
	struct message_header h;
	const uint8_t *data;
	struct talk t = {0};

	CHECK_EQ(follow(&t), 0);
	for (unsigned round = 1; round <= 3; round++) {
		while (counts.asks < round) {
			CHECK_EQ(control_wait(t.client, 10, -1), -ETIMEDOUT);
			CHECK_EQ(control_get(t.daemon, &h, &data), 0);
			pipe_ring_count(control_pipe(t.daemon), &counts);
		}
		CHECK_EQ(counts.sends, round - 1);
		CHECK_EQ(control_wait(t.client, 200, -1), -ETIMEDOUT);
		CHECK_EQ(control_get(t.daemon, &h, &data), 0);
		for (unsigned i = 0; i < 3; i++) /* the first by SEND, the others lie there */
			CHECK_EQ(control_put(t.daemon, MESSAGE_STAT | MESSAGE_REPLY,
					 STATUS_NOT_FOUND, text, sizeof text),
				0);
		pipe_ring_count(control_pipe(t.daemon), &counts);
		CHECK_EQ(counts.asks, round);
		CHECK_EQ(counts.sends, round);
		CHECK_EQ(counts.pieces, 2 * round);
		for (unsigned i = 0; i < 3; i++) {
			int got;

			while (!(got = control_get(t.client, &h, &data)))
				CHECK_EQ(control_wait(t.client, MS, -1), 0);
			CHECK_EQ(got, 1);
			CHECK_EQ(h.length, sizeof text);
		}
	}
	pair_close(&t.pair);
}

/* Who ends the session hears that its last words were read, by one SEND. */
static void last_words_are_read(void)
{
	static const uint8_t text[302] = {300 >> 8, 300 & 0xff};
	struct pipe_ring_counts counts;
	struct message_header h;
	const uint8_t *data;
	struct talk t = {0};
	int got;

	CHECK_EQ(follow(&t), 0);
	for (unsigned i = 0; i < 10; i++) { /* so that it has said that it reads */
		CHECK_EQ(control_put(t.client, MESSAGE_STAT | MESSAGE_REPLY, STATUS_NOT_FOUND, text,
				 sizeof text),
			0);
		while (!(got = control_get(t.daemon, &h, &data)))
			CHECK_EQ(control_wait(t.daemon, MS, -1), 0);
		CHECK_EQ(got, 1);
	}
	CHECK(pipe_ring_is_read(control_pipe(t.daemon))); /* there was nothing */
	CHECK_EQ(control_put(t.daemon, MESSAGE_STAT | MESSAGE_REPLY, STATUS_NOT_FOUND, text,
			 sizeof text),
		0);
	CHECK(!pipe_ring_is_read(control_pipe(t.daemon)));
	CHECK(!pipe_ring_is_read(control_pipe(t.daemon)));
	while (!(got = control_get(t.client, &h, &data)))
		CHECK_EQ(control_wait(t.client, MS, -1), 0);
	CHECK_EQ(got, 1);
	while (!pipe_ring_is_read(control_pipe(t.daemon))) {
		control_push(t.client);
		control_push(t.daemon);
	}
	pipe_ring_count(control_pipe(t.daemon), &counts);
	CHECK_EQ(counts.sends, 1 + counts.asks);
	pair_close(&t.pair);
}

/* The head of a SEND that says what it may not ends the session of who takes it. */
static void the_ring_goes_with_the_session(void)
{
	struct talk t = {0};
	struct message_ring_reply place;
	struct message_header h;
	const uint8_t *data;
	int got;

	CHECK_EQ(follow(&t), 0);
	CHECK_EQ(pipe_ring_serve(control_pipe(t.daemon), &place), -EEXIST);
	fabric_chan_disconnect(control_chan(t.daemon));
	while (!(got = control_get(t.client, &h, &data)))
		CHECK_EQ(control_wait(t.client, MS, -1), 0);
	CHECK(got == -ECONNRESET || got == -ENOTCONN);
	pair_close(&t.pair);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"a stream crosses", a_stream_crosses},
		{"what is torn is read again", what_is_torn_is_read_again},
		{"heads that are forged", heads_that_are_forged},
		{"noise is not believed", noise_is_not_believed},
		{"positions that cannot be", positions_that_cannot_be},
		{"an answer as long as the last", an_answer_as_long_as_the_last},
		{"waits are bounded", waits_are_bounded},
		{"what answers take is known", what_answers_take_is_known},
		{"replies are read", replies_are_read},
		{"who waits for long asks", who_waits_for_long_asks},
		{"last words are read", last_words_are_read},
		{"the ring goes with the session", the_ring_goes_with_the_session},
		{NULL, NULL},
	};

	if (!quiet_log("reply_ring"))
		return 2;
	return harness_run(cases, argc, argv);
}
