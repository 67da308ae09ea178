/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/control: frames over the control channel, on the loop fabric.
 */
#include "../harness.h"
#include "../property/pair.h"
#include "../quiet.h"

#include "fabric/loop/loop.h"
#include "proto/status.h"
#include "session/greeting.h"

#define FRAMES 3000u

/* What frame number i of a seed is: both sides know. */
static size_t make_frame(
	uint64_t seed, unsigned i, uint16_t *type, uint16_t *response, uint8_t *data)
{
	uint64_t rng = seed ^ (i * 0x9e37ull);
	uint64_t pick = harness_random(&rng);
	size_t len;

	if (pick % 4) { /* a refusal with a text */
		*type = MESSAGE_STAT | MESSAGE_REPLY;
		*response = STATUS_NOT_FOUND;
		len = 2 + harness_random(&rng) % 500;
		data[0] = (uint8_t)((len - 2) >> 8);
		data[1] = (uint8_t)(len - 2);
	} else {
		*type = MESSAGE_LIST | MESSAGE_REPLY;
		*response = 0;
		len = message_row(*type)->min + harness_random(&rng) % (pick % 64 ? 300 : 60000);
		data[0] = 0;
	}
	for (size_t k = 2; k < len; k++)
		data[k] = (uint8_t)(k * 31 + i);
	return len;
}

struct talker {
	struct control *control;
	uint64_t say, hear; /* seeds */
	unsigned heard;
	const char *wrong;
};

static void talk(void *arg)
{
	static const int wait_ms = 10000;
	struct talker *t = arg;
	uint8_t *data = malloc(MESSAGE_DATA_MAX), *want = malloc(MESSAGE_DATA_MAX);
	unsigned said = 0;

	while ((t->heard < FRAMES || said < FRAMES || control_pending_bytes(t->control)) &&
		!t->wrong) {
		struct message_header h;
		const uint8_t *got;
		uint16_t type, response;
		int r;

		while (said < FRAMES && control_pending_bytes(t->control) < 100000 && !t->wrong) {
			size_t len = make_frame(t->say, said++, &type, &response, data);

			if (control_put(t->control, type, response, data, len))
				t->wrong = "put";
		}
		r = control_get(t->control, &h, &got);
		if (r < 0) {
			t->wrong = "get";
		} else if (r) {
			size_t len = make_frame(t->hear, t->heard++, &type, &response, want);

			if (h.type != type || h.response != response || h.length != len ||
				memcmp(got, want, len))
				t->wrong = "another frame than was sent";
		} else if (t->heard == FRAMES && !control_pending_bytes(t->control)) {
			continue; /* control_get sent the last of it: there is nothing to wait for
				   */
		} else if (control_wait(t->control, wait_ms, -1)) {
			t->wrong = "nothing came";
		}
	}
	free(data);
	free(want);
}

static void both_sides_talk_at_once(void)
{
	uint64_t rng = harness_seed();
	struct loop_faults faults = {.seed = harness_random(&rng), .reorder_permille = 100};
	struct fabric *fabric;
	struct pair pair;
	struct talker a = {.say = 1, .hear = 2}, b = {.say = 2, .hear = 1};
	struct worker other = {0};

	CHECK_EQ(loop_open(&faults, &fabric), 0);
	CHECK_EQ(pair_open(&pair, fabric, 1), 0);
	a.control = link_control(pair.client);
	b.control = link_control(pair.daemon);
	CHECK_EQ(worker_start(&other, "talker", talk, &a), 0);
	talk(&b);
	worker_stop(&other);
	pair_close(&pair);
	if (a.wrong || b.wrong)
		printf("# client: %s after %u; daemon: %s after %u\n", a.wrong ? a.wrong : "-",
			a.heard, b.wrong ? b.wrong : "-", b.heard);
	CHECK(!a.wrong && !b.wrong);
	CHECK_EQ(a.heard, FRAMES);
	CHECK_EQ(b.heard, FRAMES);
}

/* A peer without our control module: SENDs whatever bytes it likes. */
static int raw_send(struct fabric_chan *chan, struct fabric_mr *mr, uint8_t *memory,
	const void *bytes, uint32_t len)
{
	struct fabric_sge sge = {memory, len, mr};
	struct fabric_wr wr = {
		.opcode = FABRIC_SEND, .flags = FABRIC_SIGNALED, .sge = &sge, .sge_count = 1};

	memcpy(memory, bytes, len);
	return fabric_post_send(chan, &wr);
}

/* What control_get says after a raw peer sent `bytes`, in the clear. */
static int after_raw(const void *bytes, uint32_t len)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static uint8_t memory[65536];
	struct sockaddr_storage addr;
	struct fabric *fabric;
	struct fabric_eq *eq, *client_eq;
	struct fabric_listener *listener;
	struct fabric_chan *chan;
	struct fabric_pd *pd;
	struct fabric_cq *cq;
	struct fabric_mr *mr;
	struct fabric_event ev;
	struct control *control = NULL;
	struct message_header h;
	const uint8_t *data;
	int r;

	loop_open(NULL, &fabric);
	fabric_eq_new(fabric, &eq);
	fabric_eq_new(fabric, &client_eq);
	fabric_listen(eq, (struct sockaddr *)&any, sizeof any, &listener);
	fabric_listener_addr(listener, &addr);
	fabric_dial(client_eq, (struct sockaddr *)&addr, NULL, 1000, &chan);
	fabric_pd_new(chan, &pd);
	fabric_cq_new(pd, 16, &cq);
	fabric_mr_new(pd, memory, sizeof memory, FABRIC_LOCAL, &mr);
	r = fabric_chan_setup(chan,
		&(struct fabric_chan_attr){.pd = pd, .cq = cq, .send_depth = 4, .recv_depth = 4});
	r = r ? r : fabric_chan_connect(chan, NULL, 0);
	r = r ? r : fabric_eq_wait(eq, &ev, 10000) - 1;
	r = r ? r : control_new(ev.chan, NULL, NULL, &control);
	r = r ? r : greeting_welcome(control_chan(control), PIPE_CREDITS, NULL);
	r = r ? r : fabric_eq_wait(client_eq, &ev, 10000) - 1;
	r = r ? r : raw_send(chan, mr, memory, bytes, len);
	if (!r) {
		control_start(control, 8);
		r = control_wait(control, 10000, -1);
		r = r ? r : control_get(control, &h, &data);
	}
	fabric_chan_free(chan);
	control_free(control);
	fabric_mr_free(mr);
	fabric_cq_free(cq);
	fabric_pd_free(pd);
	fabric_listener_free(listener);
	fabric_eq_free(eq);
	fabric_eq_free(client_eq);
	fabric_close(fabric);
	return r;
}

static void bad_bytes_end_the_session(void)
{
	/* credits 16, length 16, then the stream: type 16, response 16, length 32 */
	static const uint8_t good[] = {0, 0, 0, 16, 0, 3, 0, 0, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t bytes[20];

	CHECK_EQ(after_raw(good, sizeof good), 1);
	CHECK_EQ(after_raw(good, 3), -EBADMSG); /* no whole head */
	CHECK_EQ(after_raw(good, sizeof good - 1),
		-EBADMSG); /* the head's length is not the SEND's */
	memcpy(bytes, good, sizeof good);
	bytes[0] = bytes[1] = 0xff; /* more credits than there can be */
	CHECK_EQ(after_raw(bytes, sizeof bytes), -EBADMSG);
	memcpy(bytes, good, sizeof good);
	bytes[4] = 0x70; /* no such message */
	CHECK_EQ(after_raw(bytes, sizeof bytes), -EBADMSG);
	memcpy(bytes, good, sizeof good);
	bytes[11] = 7; /* a length outside its row */
	CHECK_EQ(after_raw(bytes, sizeof bytes), -EBADMSG);
	memcpy(bytes, good, sizeof good);
	bytes[8] = 0xff; /* over the limit of a frame */
	CHECK_EQ(after_raw(bytes, sizeof bytes), -EBADMSG);
}

/* A peer that reads nothing, so that no credit is left, is there all the same. */
static void a_silent_peer_is_probed(void)
{
	static const uint8_t text[302] = {300 >> 8, 300 & 0xff};
	struct loop_faults faults = {.seed = harness_seed()};
	const uint8_t *data;
	struct message_header h;
	struct fabric *fabric;
	struct control *ours;
	struct pair pair;
	unsigned said = 0;
	int r = 0;

	CHECK_EQ(loop_open(&faults, &fabric), 0);
	CHECK_EQ(pair_open(&pair, fabric, 1), 0);
	ours = link_control(pair.client);
	while (control_pending_bytes(ours) < 3 * PIPE_SEND_BYTES) {
		CHECK_EQ(control_put(ours, MESSAGE_STAT | MESSAGE_REPLY, STATUS_NOT_FOUND, text,
				 sizeof text),
			0);
		said++;
	}
	for (unsigned i = 0; i < 100; i++) {
		struct pollfd fd = {control_fd(ours), POLLIN, 0};

		CHECK_EQ(control_get(ours, &h, &data), 0);
		CHECK_EQ(control_arm(ours), 0);
		CHECK_EQ(control_get(ours, &h, &data), 0);
		control_probe(ours);
		control_probe(ours);
		/* answered, and by nothing else: nobody says anything */
		CHECK_EQ(poll(&fd, 1, 10000), 1);
	}
	CHECK(control_pending_bytes(ours) >= 2 * PIPE_SEND_BYTES);
	for (unsigned i = 0; i < said; i++) {
		while (!(r = control_get(link_control(pair.daemon), &h, &data)))
			control_push(ours);
		CHECK_EQ(r, 1);
		CHECK_EQ(h.length, sizeof text);
		CHECK(!memcmp(data, text, sizeof text));
	}
	pair_close(&pair);
}

/* The other side says something in several pieces and closes at once, and we read late, or only
 * after we have tried to say something: all of it comes, and the end after it. */
static void last_words_arrive(bool speaks_first)
{
	enum { PIECES = 5 };
	static const uint8_t text[302] = {300 >> 8, 300 & 0xff};
	struct loop_faults faults = {.seed = harness_seed()};
	const uint8_t *data;
	struct message_header h;
	struct control *ours, *theirs;
	struct fabric *fabric;
	struct pair pair;
	int err = 0;

	CHECK_EQ(loop_open(&faults, &fabric), 0);
	CHECK_EQ(pair_open(&pair, fabric, 1), 0);
	ours = link_control(pair.client);
	theirs = link_control(pair.daemon);
	for (unsigned i = 0; i < PIECES; i++) /* a SEND each */
		CHECK_EQ(control_put(theirs, MESSAGE_STAT | MESSAGE_REPLY, STATUS_NOT_FOUND, text,
				 sizeof text),
			0);
	CHECK_EQ(control_pending_bytes(theirs), 0);
	fabric_chan_disconnect(control_chan(theirs));
	while (!err) { /* until our end of it has gone, too */
		struct pollfd fd = {link_event_fd(pair.client), POLLIN, 0};

		CHECK_EQ(poll(&fd, 1, 60000), 1);
		err = link_check_events(pair.client);
	}
	if (speaks_first) {
		control_probe(ours);
		CHECK_EQ(control_put(ours, MESSAGE_STAT | MESSAGE_REPLY, STATUS_NOT_FOUND, text,
				 sizeof text),
			-ENOTCONN);
	}
	for (unsigned i = 0; i < PIECES; i++) {
		CHECK_EQ(control_get(ours, &h, &data), 1);
		CHECK_EQ(h.length, sizeof text);
	}
	CHECK(control_get(ours, &h, &data) < 0);
	CHECK(control_put(ours, MESSAGE_PING, 0, text, 8) < 0);
	pair_close(&pair);
}

static void last_words_are_heard(void)
{
	last_words_arrive(false);
}

static void last_words_are_heard_by_who_speaks(void)
{
	last_words_arrive(true);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"both sides talk at once", both_sides_talk_at_once},
		{"bad bytes end the session", bad_bytes_end_the_session},
		{"a silent peer is probed", a_silent_peer_is_probed},
		{"last words are heard", last_words_are_heard},
		{"last words are heard by who speaks", last_words_are_heard_by_who_speaks},
		{NULL, NULL},
	};

	if (!quiet_log("control"))
		return 2;
	return harness_run(cases, argc, argv);
}
