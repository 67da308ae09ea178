/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the soft fabric against plain sockets that speak iWARP byte by byte: what another
 * implementation would see.  The contract that all fabrics keep is tests/fabric's.
 */
#include "tests/unit/soft_raw.h"

#define SEGMENT_MAX 65000u

static void test_revision_1_accept(void)
{
	static const uint8_t request[] = "MPA ID Req Frame\x00\x01\x00\x05hello";
	static const uint8_t reply[] = "MPA ID Rep Frame\x00\x01\x00\x02ok";
	static const uint8_t send[] =
		"\x00\x17\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0notes\0\0\0\0\0\0";
	uint8_t in[64];
	struct fabric_event ev;
	struct fabric_wc wc;
	struct fabric_sge sge;
	struct fabric_wr wr = {.id = 77,
		.opcode = FABRIC_SEND,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1};
	struct rig rig;

	CHECK(rig_open(&rig, NULL));
	rig.fd = raw_socket();
	CHECK(raw_connect(rig.fd, rig.port));
	CHECK(raw_send(rig.fd, request, sizeof(request) - 1));
	CHECK(rig_event(&rig, FABRIC_EVENT_REQUEST, &ev));
	CHECK(ev.listener == rig.listener);
	CHECK_EQ(ev.priv_len, 5);
	CHECK(!memcmp(ev.priv, "hello", 5));
	rig.chan = ev.chan;
	CHECK(!fabric_chan_caps(rig.chan)->has_read); /* known before it is accepted */
	CHECK(rig_setup(&rig, 1));
	CHECK_EQ(fabric_chan_accept(rig.chan, "ok", 2), 0);
	CHECK(raw_recv(rig.fd, in, sizeof(reply) - 1));
	CHECK(!memcmp(in, reply, sizeof(reply) - 1));
	CHECK(rig_event(&rig, FABRIC_EVENT_CONNECTED, &ev));
	CHECK(!fabric_chan_caps(rig.chan)->has_read);

	/* Who accepts is silent until the first FPDU of who connects. */
	memcpy(rig.memory + 1000, "answer", 6);
	sge = (struct fabric_sge){rig.memory + 1000, 6, rig.mr};
	CHECK_EQ(fabric_post_send(rig.chan, &wr), 0);
	CHECK(raw_silent(rig.fd, 50));
	CHECK(raw_send(rig.fd, send, 2 + 23 + 3 + 4));
	CHECK(rig_wc(&rig, &wc));
	CHECK_EQ(wc.status, FABRIC_OK);
	CHECK_EQ(wc.opcode, FABRIC_RECV);
	CHECK_EQ(wc.bytes, 5);
	CHECK(!memcmp(rig.memory, "notes", 5));
	CHECK(raw_recv(rig.fd, in, 2 + 24 + 2 + 4));
	CHECK(!memcmp(
		in, "\x00\x18\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0answer\0\0\0\0\0\0", 32));
	CHECK(rig_wc(&rig, &wc));
	CHECK_EQ(wc.id, 77);
	rig_close(&rig);
}

static void test_connect_bytes(void)
{
	static const uint8_t request[] = "MPA ID Req Frame\x10\x02\x00\x07\x00\x10\x00\x10"
					 "abc";
	static const uint8_t reply[] = "MPA ID Rep Frame\x10\x02\x00\x06\x00\x04\x00\x02yo";
	struct sockaddr_in in = raw_loopback(0);
	socklen_t len = sizeof(in);
	uint8_t got[64], payload[64];
	struct ddp_header header;
	struct ddp_read read;
	struct fabric_event ev;
	struct fabric_wc wc;
	struct fabric_sge sge;
	struct fabric_wr wr = {.id = 5,
		.opcode = FABRIC_READ,
		.flags = FABRIC_SIGNALED,
		.sge = &sge,
		.sge_count = 1,
		.remote_addr = 0x123456789a,
		.remote_key = 0xabcdef};
	struct rig rig;
	int listener = raw_socket();

	CHECK(rig_open(&rig, NULL));
	CHECK_EQ(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	CHECK_EQ(fabric_dial(rig.eq, (struct sockaddr *)&in, NULL, 1000, &rig.chan), 0);
	CHECK(rig_setup(&rig, 1));
	CHECK_EQ(fabric_chan_connect(rig.chan, "abc", 3), 0);
	rig.fd = accept(listener, NULL, NULL);
	CHECK(rig.fd >= 0);
	CHECK(raw_recv(rig.fd, got, sizeof(request) - 1));
	CHECK(!memcmp(got, request, sizeof(request) - 1));
	CHECK(raw_send(rig.fd, reply, sizeof(reply) - 1));
	CHECK(rig_event(&rig, FABRIC_EVENT_CONNECTED, &ev));
	CHECK_EQ(ev.priv_len, 2);
	CHECK(!memcmp(ev.priv, "yo", 2));
	CHECK(fabric_chan_caps(rig.chan)->has_read);

	sge = (struct fabric_sge){rig.memory + 500, 10, rig.mr};
	CHECK_EQ(fabric_post_send(rig.chan, &wr), 0);
	CHECK_EQ(raw_recv_fpdu(rig.fd, &header, payload, sizeof(payload)), DDP_READ_BYTES);
	CHECK_EQ(header.opcode, DDP_READ_REQUEST);
	CHECK_EQ(header.msn, 1);
	ddp_read_get(payload, &read);
	CHECK(read.bytes == 10 && read.source_stag == 0xabcdef &&
		read.source_offset == 0x123456789a);
	/* answered in two segments, as a peer with a small MTU would */
	header = (struct ddp_header){.tagged = true,
		.opcode = DDP_READ_RESPONSE,
		.stag = read.sink_stag,
		.offset = read.sink_offset};
	CHECK(raw_send_fpdu(rig.fd, &header, "read", 4));
	header.offset += 4;
	header.last = true;
	CHECK(raw_send_fpdu(rig.fd, &header, " bytes", 6));
	CHECK(rig_wc(&rig, &wc));
	CHECK_EQ(wc.status, FABRIC_OK);
	CHECK_EQ(wc.id, 5);
	CHECK(!memcmp(rig.memory + 500, "read bytes", 10));
	close(listener);
	rig_close(&rig);
}

/* The fabric connects to a plain socket and sends `bytes` of its memory. */
static bool connect_and_send(struct rig *rig, uint32_t bytes)
{
	static const uint8_t reply[] = "MPA ID Rep Frame\x10\x02\x00\x04\x00\x04\x00\x04";
	struct sockaddr_in in = raw_loopback(0);
	socklen_t len = sizeof(in);
	uint8_t request[24], payload[64];
	struct ddp_header header;
	struct fabric_event ev;
	struct fabric_sge sge;
	struct fabric_wr wr = {.opcode = FABRIC_SEND, .sge = &sge, .sge_count = 1};
	int listener = raw_socket();

	if (!rig_open(rig, NULL) || bind(listener, (struct sockaddr *)&in, sizeof(in)) ||
		listen(listener, 1) || getsockname(listener, (struct sockaddr *)&in, &len) ||
		fabric_dial(rig->eq, (struct sockaddr *)&in, NULL, 1000, &rig->chan) ||
		!rig_setup(rig, 1) || fabric_chan_connect(rig->chan, NULL, 0))
		return false;
	rig->fd = accept(listener, NULL, NULL);
	close(listener);
	if (!raw_recv(rig->fd, request, sizeof(request)) ||
		!raw_send(rig->fd, reply, sizeof(reply) - 1) ||
		!rig_event(rig, FABRIC_EVENT_CONNECTED, &ev))
		return false;
	sge = (struct fabric_sge){rig->memory, bytes, rig->mr};
	return !fabric_post_send(rig->chan, &wr) &&
	       raw_recv_fpdu(rig->fd, &header, payload, sizeof(payload)) == (int)bytes &&
	       header.opcode == DDP_SEND;
}

/* Who connects says something once more, a few times, until the peer has said anything. */
static void test_nudges(void)
{
	const struct ddp_header answer = {.last = true, .opcode = DDP_SEND, .msn = 1};
	struct ddp_header header;
	uint8_t payload[64];
	struct fabric_wc wc;
	struct rig rig;

	CHECK(connect_and_send(&rig, 5));
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(raw_recv_fpdu(rig.fd, &header, payload, sizeof(payload)), 0);
		CHECK(header.opcode == DDP_WRITE && header.last && !header.stag && !header.offset);
	}
	CHECK(raw_silent(rig.fd, 100));
	rig_close(&rig);

	CHECK(connect_and_send(&rig, 5));
	CHECK(raw_send_fpdu(rig.fd, &answer, "heard", 5));
	CHECK(rig_wc(&rig, &wc));
	/* at most those that were on their way: there is a pause of 640 ms before the last */
	for (int i = 0; !raw_silent(rig.fd, 700); i++) {
		CHECK(i < 3);
		CHECK_EQ(raw_recv_fpdu(rig.fd, &header, payload, sizeof(payload)), 0);
	}
	rig_close(&rig);
}

/* A write in segments of every size, cut anywhere by TCP, then a SEND. */
static bool write_in_pieces(struct rig *rig, uint64_t *seed, bool crc)
{
	static uint8_t data[100000], out[150000 + 200000];
	struct ddp_header header = {
		.tagged = true, .opcode = DDP_WRITE, .stag = fabric_mr_key(rig->mr)};
	const size_t total = 1 + harness_random(seed) % sizeof(data);
	static uint32_t msn;
	size_t at = 0, used = 0;
	struct fabric_wc wc;

	for (size_t i = 0; i < total; i++)
		data[i] = (uint8_t)harness_random(seed);
	while (at < total) {
		size_t part = 1 + harness_random(seed) % (at % 3 ? 300 : SEGMENT_MAX);

		if (part > total - at)
			part = total - at;
		header.offset = fabric_mr_base(rig->mr) + 4096 + at;
		at += part;
		header.last = at == total;
		if (used + part + 64 > sizeof(out)) {
			if (!raw_send(rig->fd, out, used))
				return false;
			used = 0;
		}
		used += raw_fpdu(out + used, &header, data + at - part, part, crc);
	}
	header = (struct ddp_header){.last = true, .opcode = DDP_SEND};
	header.msn = crc ? 1 : ++msn;
	used += raw_fpdu(out + used, &header, "x", 1, crc);
	for (at = 0; at < used;) {
		size_t part = 1 + harness_random(seed) % (total % 2 ? 40000 : 3000);

		if (part > used - at)
			part = used - at;
		if (!raw_send(rig->fd, out + at, part))
			return false;
		at += part;
	}
	if (!rig_wc(rig, &wc) || wc.status != FABRIC_OK || wc.bytes != 1)
		return false;
	return !memcmp(rig->memory + 4096, data, total);
}

static void test_segments_of_any_size(void)
{
	uint64_t seed = harness_seed();
	struct rig rig;

	CHECK(rig_open(&rig, NULL));
	CHECK(rig_connect(&rig, false, 1));
	for (int i = 0; i < 60; i++) {
		CHECK(write_in_pieces(&rig, &seed, false));
		CHECK_EQ(fabric_post_recv(rig.chan, 0, rig.memory, 64, rig.mr), 0);
	}
	rig_disconnect(&rig);
	CHECK(rig_connect(&rig, true, 1));
	CHECK(write_in_pieces(&rig, &seed, true));
	rig_close(&rig);
}

/* One byte in each TCP segment. */
static void test_byte_by_byte(void)
{
	const struct mpa_frame request = {.kind = MPA_REQUEST,
		.revision = 2,
		.enhanced = true,
		.ird = 1,
		.ord = 1,
		.priv = (const uint8_t *)"p",
		.priv_len = 1};
	uint8_t out[256], in[MPA_FRAME_MAX];
	struct ddp_header header = {.last = true, .opcode = DDP_SEND, .msn = 1};
	struct mpa_frame reply;
	struct fabric_event ev;
	struct fabric_wc wc;
	struct rig rig;
	size_t len;

	CHECK(rig_open(&rig, NULL));
	rig.fd = raw_socket();
	CHECK(raw_connect(rig.fd, rig.port));
	len = mpa_frame_put(out, &request);
	for (size_t i = 0; i < len; i++)
		CHECK(raw_send(rig.fd, out + i, 1));
	CHECK(rig_event(&rig, FABRIC_EVENT_REQUEST, &ev));
	rig.chan = ev.chan;
	CHECK(rig_setup(&rig, 2));
	CHECK_EQ(fabric_chan_accept(rig.chan, NULL, 0), 0);
	CHECK(raw_reply(rig.fd, in, &reply));
	for (uint32_t n = 1; n <= 2; n++) {
		header.msn = n;
		len = raw_fpdu(out, &header, "one by one", 10, false);
		for (size_t i = 0; i < len; i++)
			CHECK(raw_send(rig.fd, out + i, 1));
		CHECK(rig_wc(&rig, &wc));
		CHECK_EQ(wc.status, FABRIC_OK);
		CHECK_EQ(wc.bytes, 10);
	}
	rig_close(&rig);
}

/* The peer reads our memory. */
static void test_read_response(void)
{
	struct ddp_header header = {
		.last = true, .opcode = DDP_READ_REQUEST, .queue = DDP_QUEUE_READ, .msn = 1};
	static uint8_t got[200000], payload[DDP_READ_BYTES];
	struct ddp_read read = {.sink_stag = 99, .sink_offset = 5000, .bytes = 200000};
	uint32_t at = 0;
	struct rig rig;

	CHECK(rig_open(&rig, NULL));
	CHECK(rig_connect(&rig, false, 0));
	for (uint32_t i = 0; i < RIG_BYTES; i++)
		rig.memory[i] = (uint8_t)(i * 7 + (i >> 8));
	read.source_stag = fabric_mr_key(rig.ro);
	read.source_offset = fabric_mr_base(rig.ro) + 3;
	ddp_read_put(payload, &read);
	CHECK(raw_send_fpdu(rig.fd, &header, payload, sizeof(payload)));
	while (at < read.bytes) {
		int n = raw_recv_fpdu(rig.fd, &header, got + at, sizeof(got) - at);

		CHECK(n > 0);
		CHECK_EQ(header.opcode, DDP_READ_RESPONSE);
		CHECK_EQ(header.stag, 99);
		CHECK_EQ(header.offset, 5000 + at);
		at += (uint32_t)n;
		CHECK_EQ(header.last, at == read.bytes);
	}
	CHECK(!memcmp(got, rig.memory + 3, read.bytes));
	/* and nothing, from nowhere: a ready-to-receive read */
	read = (struct ddp_read){.sink_stag = 1};
	ddp_read_put(payload, &read);
	header = (struct ddp_header){
		.last = true, .opcode = DDP_READ_REQUEST, .queue = DDP_QUEUE_READ, .msn = 2};
	CHECK(raw_send_fpdu(rig.fd, &header, payload, sizeof(payload)));
	CHECK_EQ(raw_recv_fpdu(rig.fd, &header, got, sizeof(got)), 0);
	CHECK_EQ(header.opcode, DDP_READ_RESPONSE);
	rig_close(&rig);
}

/* An initiator that wants to be asked for a ready-to-receive message. */
static void test_peer_to_peer(void)
{
	static const struct {
		bool write, read;
		bool want_write, want_read;
	} modes[] = {{true, true, true, false}, {true, false, true, false},
		{false, true, false, true}, {false, false, true, false}};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		const struct mpa_frame request = {.kind = MPA_REQUEST,
			.revision = 2,
			.enhanced = true,
			.ird = 1,
			.ord = 1,
			.peer_to_peer = true,
			.rtr_write = modes[i].write,
			.rtr_read = modes[i].read};
		const struct ddp_header write = {
			.tagged = true, .last = true, .opcode = DDP_WRITE, .stag = 0xdead};
		uint8_t in[MPA_FRAME_MAX], payload[64];
		struct ddp_header header;
		struct mpa_frame reply;
		struct fabric_event ev;
		struct fabric_sge sge = {"hi", 2, NULL};
		const struct fabric_wr wr = {
			.opcode = FABRIC_SEND, .flags = FABRIC_INLINE, .sge = &sge, .sge_count = 1};
		struct rig rig;

		CHECK(rig_open(&rig, NULL));
		rig.fd = raw_socket();
		CHECK(raw_connect(rig.fd, rig.port));
		CHECK(raw_request(rig.fd, &request));
		CHECK(rig_event(&rig, FABRIC_EVENT_REQUEST, &ev));
		rig.chan = ev.chan;
		CHECK(rig_setup(&rig, 1));
		CHECK_EQ(fabric_chan_accept(rig.chan, NULL, 0), 0);
		CHECK(raw_reply(rig.fd, in, &reply));
		CHECK(reply.peer_to_peer);
		CHECK_EQ(reply.rtr_write, modes[i].want_write);
		CHECK_EQ(reply.rtr_read, modes[i].want_read);
		CHECK(rig_event(&rig, FABRIC_EVENT_CONNECTED, &ev));
		CHECK_EQ(fabric_post_send(rig.chan, &wr), 0);
		CHECK(raw_silent(rig.fd, 20));
		/* a write of nothing, for which the STag does not matter */
		CHECK(raw_send_fpdu(rig.fd, &write, NULL, 0));
		CHECK_EQ(raw_recv_fpdu(rig.fd, &header, payload, sizeof(payload)), 2);
		CHECK(!memcmp(payload, "hi", 2));
		rig_close(&rig);
	}
}

HARNESS_MAIN({"revision-1-accept", test_revision_1_accept}, {"connect-bytes", test_connect_bytes},
	{"nudges", test_nudges}, {"segments-of-any-size", test_segments_of_any_size},
	{"byte-by-byte", test_byte_by_byte}, {"read-response", test_read_response},
	{"peer-to-peer", test_peer_to_peer})
