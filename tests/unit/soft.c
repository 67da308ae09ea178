/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the soft fabric against plain sockets that speak iWARP byte by byte: what another
 * implementation would see, and what no honest one would send.  The contract that all fabrics keep
 * is tests/fabric's.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tests/unit/soft_raw.h"

#define SEGMENT_MAX 65000u

/* ---- what is on the wire ---- */

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

/* ---- what must be refused ---- */

enum place {
	KEY_RW,
	KEY_READ_ONLY,
	KEY_WRITE_ONLY,
	KEY_BAD,
};

struct offence {
	const char *name;
	struct ddp_header header;
	struct ddp_error want;
	enum place key;
	uint64_t offset;    /* from the base of the memory */
	uint32_t bytes;     /* of payload; of a read: asked for */
	uint8_t control[2]; /* not zero: instead of the right ones */
	bool no_receive;
	int receive_status; /* of the first receive */
};

#define TAGGED(op) .header = {.tagged = true, .last = true, .opcode = (op)}
#define UNTAGGED(op, queue_, msn_, mo_)                                                            \
	.header = {.last = true, .opcode = (op), .queue = (queue_), .msn = (msn_), .mo = (mo_)}
#define READ_REQUEST UNTAGGED(DDP_READ_REQUEST, DDP_QUEUE_READ, 1, 0)

static const struct offence offences[] = {
	{"write, key", TAGGED(DDP_WRITE), DDP_INVALID_STAG, KEY_BAD, 0, 8},
	{"write, behind the end", TAGGED(DDP_WRITE), DDP_BASE_BOUNDS, KEY_RW, RIG_BYTES - 7, 8},
	{"write, before the start", TAGGED(DDP_WRITE), DDP_BASE_BOUNDS, KEY_RW, -1ull, 8},
	{"write, far away", TAGGED(DDP_WRITE), DDP_BASE_BOUNDS, KEY_RW, 1ull << 46, 8},
	{"write, rights", TAGGED(DDP_WRITE), RDMAP_ACCESS_RIGHTS, KEY_READ_ONLY, 0, 8},
	{"read response, none asked", TAGGED(DDP_READ_RESPONSE), RDMAP_OPCODE, KEY_RW, 0, 8},
	{"read, key", READ_REQUEST, RDMAP_INVALID_STAG, KEY_BAD, 0, 8},
	{"read, bounds", READ_REQUEST, RDMAP_BASE_BOUNDS, KEY_RW, 1, RIG_BYTES},
	{"read, huge", READ_REQUEST, RDMAP_BASE_BOUNDS, KEY_RW, 0, UINT32_MAX},
	{"read, rights", READ_REQUEST, RDMAP_ACCESS_RIGHTS, KEY_WRITE_ONLY, 0, 8},
	{"read, number", UNTAGGED(DDP_READ_REQUEST, DDP_QUEUE_READ, 2, 0), DDP_MSN_RANGE, KEY_RW, 0,
		8},
	{"read, offset", UNTAGGED(DDP_READ_REQUEST, DDP_QUEUE_READ, 1, 4), DDP_INVALID_MO, KEY_RW,
		0, 8},
	{"read, queue", UNTAGGED(DDP_READ_REQUEST, DDP_QUEUE_SEND, 1, 0), DDP_INVALID_QUEUE, KEY_RW,
		0, 8},
	{"send, queue", UNTAGGED(DDP_SEND, 3, 1, 0), DDP_INVALID_QUEUE, .bytes = 8},
	{"send, number", UNTAGGED(DDP_SEND, 0, 2, 0), DDP_MSN_RANGE, .bytes = 8},
	{"send, number 0", UNTAGGED(DDP_SEND, 0, 0, 0), DDP_MSN_RANGE, .bytes = 8},
	{"send, offset", UNTAGGED(DDP_SEND, 0, 1, 1), DDP_INVALID_MO, .bytes = 8},
	{"send, too long", UNTAGGED(DDP_SEND, 0, 1, 0), DDP_TOO_LONG, .bytes = RIG_RECV_BYTES + 1,
		.receive_status = FABRIC_LOCAL_LENGTH},
	{"send, no receive", UNTAGGED(DDP_SEND, 0, 1, 0), DDP_NO_BUFFER, .bytes = 8,
		.no_receive = true},
	{"send, invalidate", UNTAGGED(DDP_SEND_INVALIDATE, 0, 1, 0), RDMAP_CANNOT_INVALIDATE,
		.bytes = 8},
	{"DDP version, tagged", TAGGED(DDP_WRITE), DDP_TAGGED_VERSION, .bytes = 8,
		.control = {0xc2, 0x40}},
	{"DDP version, untagged", UNTAGGED(DDP_SEND, 0, 1, 0), DDP_UNTAGGED_VERSION, .bytes = 8,
		.control = {0x40, 0x43}},
	{"RDMAP version", UNTAGGED(DDP_SEND, 0, 1, 0), RDMAP_VERSION, .bytes = 8,
		.control = {0x41, 0x83}},
	{"opcode", UNTAGGED(DDP_SEND, 0, 1, 0), RDMAP_OPCODE, .bytes = 8, .control = {0x41, 0x48}},
	{"tagged send", TAGGED(DDP_WRITE), RDMAP_OPCODE, .bytes = 8, .control = {0xc1, 0x43}},
	{"untagged write", UNTAGGED(DDP_SEND, 0, 1, 0), RDMAP_OPCODE, .bytes = 8,
		.control = {0x41, 0x40}},
};

static uint32_t rig_key(const struct rig *rig, enum place place)
{
	switch (place) {
	case KEY_READ_ONLY:
		return fabric_mr_key(rig->ro);
	case KEY_WRITE_ONLY:
		return fabric_mr_key(rig->wo);
	case KEY_BAD:
		return fabric_mr_key(rig->mr) ^ 0x80000000u;
	default:
		return fabric_mr_key(rig->mr);
	}
}

static bool offend(struct rig *rig, const struct offence *offence)
{
	struct ddp_header header = offence->header;
	struct ddp_read read = {.sink_stag = 1, .bytes = offence->bytes};
	uint8_t payload[128], out[256];
	size_t bytes = offence->bytes;

	memset(payload, 0xee, sizeof(payload));
	header.stag = header.tagged ? rig_key(rig, offence->key) : 0;
	header.offset = fabric_mr_base(rig->mr) + offence->offset;
	if (header.opcode == DDP_READ_REQUEST) {
		read.source_stag = rig_key(rig, offence->key);
		read.source_offset = header.offset;
		ddp_read_put(payload, &read);
		bytes = DDP_READ_BYTES;
	}
	bytes = raw_fpdu(out, &header, payload, bytes, false);
	if (offence->control[0])
		memcpy(out + 2, offence->control, 2);
	return raw_send(rig->fd, out, bytes);
}

static void offence_check(struct rig *rig, const struct offence *offence)
{
	struct ddp_terminate term;
	struct fabric_event ev;
	struct fabric_wc wc;

	CHECK(rig_connect(rig, false, offence->no_receive ? 0 : 1));
	CHECK(offend(rig, offence));
	CHECK(raw_recv_terminate(rig->fd, &term));
	if (!ddp_error_is(term.error, offence->want))
		printf("# %u %u %u\n", term.error.layer, term.error.type, term.error.code);
	CHECK(ddp_error_is(term.error, offence->want));
	if (term.has_segment)
		CHECK_EQ(term.header.opcode, offence->header.opcode);
	CHECK(raw_closed(rig->fd));
	CHECK(rig_event(rig, FABRIC_EVENT_DISCONNECTED, &ev));
	CHECK_EQ(ev.error, -EPROTO);
	if (!offence->no_receive) {
		CHECK(rig_wc(rig, &wc));
		CHECK_EQ(wc.status,
			offence->receive_status ? offence->receive_status : FABRIC_FLUSHED);
	}
	CHECK_EQ(fabric_post_recv(rig->chan, 1, rig->memory, 8, rig->mr), -ENOTCONN);
	for (size_t i = 0; i < RIG_BYTES; i++)
		CHECK(!rig->memory[i]);
	rig_disconnect(rig);
}

static void test_offences(void)
{
	struct rig rig;

	CHECK(rig_open(&rig, NULL));
	for (size_t i = 0; i < sizeof(offences) / sizeof(offences[0]); i++) {
		offence_check(&rig, &offences[i]);
		if (harness_failed) {
			printf("# at \"%s\"\n", offences[i].name);
			return;
		}
	}
	rig_close(&rig);
}

static void test_bad_crc(void)
{
	const struct ddp_header header = {.last = true, .opcode = DDP_SEND, .msn = 1};
	uint8_t out[128];
	struct ddp_terminate term;
	struct fabric_event ev;
	struct rig rig;
	size_t bytes;

	CHECK(rig_open(&rig, NULL));
	CHECK(rig_connect(&rig, true, 1));
	bytes = raw_fpdu(out, &header, "spoilt", 6, true);
	out[bytes - 1] ^= 1;
	CHECK(raw_send(rig.fd, out, bytes));
	CHECK(raw_recv_terminate(rig.fd, &term));
	CHECK(ddp_error_is(term.error, MPA_ERROR_CRC));
	CHECK(rig_event(&rig, FABRIC_EVENT_DISCONNECTED, &ev));
	rig_close(&rig);
}

/* The peer refuses: what we know of it goes to the oldest request. */
static void test_terminated(void)
{
	static const struct {
		struct ddp_error error;
		enum fabric_status want;
	} rows[] = {
		{{DDP_LAYER_DDP, 1, 0}, FABRIC_REMOTE_ACCESS},
		{{DDP_LAYER_DDP, 1, 1}, FABRIC_REMOTE_ACCESS},
		{{DDP_LAYER_RDMAP, 1, 2}, FABRIC_REMOTE_ACCESS},
		{{DDP_LAYER_DDP, 2, 2}, FABRIC_RNR_EXCEEDED},
		{{DDP_LAYER_RDMAP, 2, 6}, FABRIC_REMOTE_OPERATION},
		{{DDP_LAYER_LLP, 0, 2}, FABRIC_FLUSHED},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ddp_header header = {.last = true,
			.opcode = DDP_TERMINATE,
			.queue = DDP_QUEUE_TERMINATE,
			.msn = 1};
		const struct ddp_header hello = {.tagged = true, .last = true, .opcode = DDP_WRITE};
		const struct ddp_terminate term = {.error = rows[i].error};
		uint8_t payload[DDP_TERMINATE_MAX];
		struct ddp_header asked;
		struct fabric_event ev;
		struct fabric_wc wc;
		struct fabric_sge sge;
		struct fabric_wr second = {
			.id = 2, .opcode = FABRIC_READ, .sge = &sge, .sge_count = 1};
		struct fabric_wr first = {.next = &second,
			.id = 1,
			.opcode = FABRIC_READ,
			.sge = &sge,
			.sge_count = 1};
		struct rig rig;

		CHECK(rig_open(&rig, NULL));
		CHECK(rig_connect(&rig, false, 0));
		CHECK(raw_send_fpdu(rig.fd, &hello, NULL, 0));
		sge = (struct fabric_sge){rig.memory, 8, rig.mr};
		CHECK_EQ(fabric_post_send(rig.chan, &first), 0);
		CHECK_EQ(raw_recv_fpdu(rig.fd, &asked, payload, sizeof(payload)), DDP_READ_BYTES);
		CHECK(raw_send_fpdu(rig.fd, &header, payload, ddp_terminate_put(payload, &term)));
		CHECK(rig_wc(&rig, &wc));
		CHECK_EQ(wc.id, 1);
		CHECK_EQ(wc.status, rows[i].want);
		CHECK(rig_wc(&rig, &wc));
		CHECK_EQ(wc.id, 2);
		CHECK_EQ(wc.status, FABRIC_FLUSHED);
		CHECK(rig_event(&rig, FABRIC_EVENT_DISCONNECTED, &ev));
		CHECK_EQ(ev.error, -EREMOTEIO);
		rig_close(&rig);
	}
}

/* Random FPDUs with plausible headers, and pure noise: the fabric lives, no memory is touched. */
static void test_noise(void)
{
	uint64_t seed = harness_seed();
	struct rig rig;

	CHECK(rig_open(&rig, NULL));
	for (int round = 0; round < 150; round++) {
		uint8_t out[600];
		size_t bytes = 1 + harness_random(&seed) % sizeof(out);
		struct fabric_event ev;

		CHECK(rig_connect(&rig, false, 0));
		for (size_t i = 0; i < bytes; i++)
			out[i] = (uint8_t)harness_random(&seed);
		if (round % 3) {
			out[0] = 0;
			out[2] = (uint8_t)(1 | (harness_random(&seed) & 0xc0));
			out[3] = (uint8_t)(0x40 | harness_random(&seed) % 9);
		}
		CHECK(raw_send(rig.fd, out, bytes));
		shutdown(rig.fd, SHUT_WR);
		CHECK(rig_event(&rig, FABRIC_EVENT_DISCONNECTED, &ev));
		CHECK(raw_closed(rig.fd));
		for (size_t i = 0; i < RIG_BYTES; i += 8)
			CHECK(!rig.memory[i]);
		rig_disconnect(&rig);
	}
	rig_close(&rig);
}

/* ---- set-up ---- */

struct dial_case {
	const char *reply; /* NULL: none */
	size_t bytes;
	enum fabric_event_type want;
	int error;
};

static void dial_check(const struct dial_case *dial)
{
	const struct soft_config config = {.threads = 1, .handshake_ms = dial->reply ? 0 : 100};
	struct sockaddr_in in = raw_loopback(0);
	socklen_t len = sizeof(in);
	uint8_t request[24];
	struct fabric_event ev;
	struct fabric_wc wc;
	struct rig rig;
	int listener = raw_socket();

	CHECK(rig_open(&rig, &config));
	CHECK_EQ(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	CHECK_EQ(fabric_dial(rig.eq, (struct sockaddr *)&in, NULL, 1000, &rig.chan), 0);
	CHECK(rig_setup(&rig, 1));
	CHECK_EQ(fabric_chan_connect(rig.chan, NULL, 0), 0);
	rig.fd = accept(listener, NULL, NULL);
	CHECK(raw_recv(rig.fd, request, sizeof(request)));
	if (dial->reply) {
		CHECK(raw_send(rig.fd, dial->reply, dial->bytes));
		shutdown(rig.fd, SHUT_WR);
	}
	CHECK(rig_event(&rig, dial->want, &ev));
	CHECK_EQ(ev.error, dial->error);
	if (dial->want == FABRIC_EVENT_REJECTED) {
		CHECK_EQ(ev.priv_len, 3);
		CHECK(!memcmp(ev.priv, "why", 3));
	}
	/* what was posted comes back */
	CHECK(rig_wc(&rig, &wc));
	CHECK_EQ(wc.status, FABRIC_FLUSHED);
	CHECK_EQ(fabric_eq_get(rig.eq, &ev), 0);
	close(listener);
	rig_close(&rig);
}

static void test_dial_replies(void)
{
#define REPLY(text) "MPA ID Rep Frame" text, sizeof("MPA ID Rep Frame" text) - 1
	static const struct dial_case dials[] = {
		{REPLY("\x30\x02\x00\x07\0\0\0\0why"), FABRIC_EVENT_REJECTED, -ECONNREFUSED},
		{REPLY("\x20\x01\x00\x03why"), FABRIC_EVENT_REJECTED, -ECONNREFUSED},
		{REPLY("\x80\x01\x00\x00"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x00\x00\x00"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x03\x00\x00"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x10\x02\x00\x03"
		       "abc"),
			FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x10\x02\x00\x04\x00\x01\x3f\xff"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x01\xff\xff"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x01\x00\x05"
		       "abc"),
			FABRIC_EVENT_FAILED, -ECONNRESET},
		{"HTTP/1.1 400 Bad Request\r\n", 26, FABRIC_EVENT_FAILED, -EPROTO},
		{"", 0, FABRIC_EVENT_FAILED, -ECONNRESET},
		{NULL, 0, FABRIC_EVENT_FAILED, -ETIMEDOUT},
	};

	for (size_t i = 0; i < sizeof(dials) / sizeof(dials[0]); i++) {
		dial_check(&dials[i]);
		if (harness_failed) {
			printf("# at reply %zu\n", i);
			return;
		}
	}
}

static void test_requests_refused(void)
{
#define REQUEST(text) "MPA ID Req Frame" text, sizeof("MPA ID Req Frame" text) - 1
	static const struct {
		const char *request;
		size_t bytes;
		bool answered; /* by a reject, not dropped */
	} rows[] = {
		{REQUEST("\x80\x01\x00\x00"), true},
		{REQUEST("\x90\x02\x00\x04\0\x01\0\x01"), true},
		{REQUEST("\x00\x00\x00\x00"), true},
		{REQUEST("\x00\x07\x00\x00"), true},
		{REQUEST("\x10\x02\x00\x03"
			 "abc"),
			false},
		{REQUEST("\x00\x01\xff\xff"), false},
		{REQUEST("\x00\x01\x01\x00"), false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35, false},
		{"MPA ID Rep Frame\0\x01\0\0", 20, false},
		{"M", 1, false},
	};
	const struct soft_config config = {.threads = 2};
	struct fabric_event ev;
	struct rig rig;

	CHECK(rig_open(&rig, &config));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t in[MPA_FRAME_MAX];
		struct mpa_frame reply;
		int fd = raw_socket();

		CHECK(raw_connect(fd, rig.port));
		CHECK(raw_send(fd, rows[i].request, rows[i].bytes));
		shutdown(fd, SHUT_WR);
		if (rows[i].answered) {
			CHECK(raw_reply(fd, in, &reply));
			CHECK(reply.reject && !reply.markers);
		}
		CHECK(raw_closed(fd));
		CHECK_EQ(fabric_eq_get(rig.eq, &ev), 0);
		close(fd);
	}
	/* and it still works */
	CHECK(rig_connect(&rig, false, 1));
	rig_close(&rig);
}

/* Some look at a reply only while the connection stands: who was rejected closes first. */
static void test_reject_then_silence(void)
{
	const struct mpa_frame request = {.kind = MPA_REQUEST, .revision = 1};
	uint8_t in[MPA_FRAME_MAX];
	struct mpa_frame reply;
	struct fabric_event ev;
	struct rig rig;
	int fd = raw_socket();

	CHECK(rig_open(&rig, NULL));
	CHECK(raw_connect(fd, rig.port) && raw_request(fd, &request));
	CHECK(rig_event(&rig, FABRIC_EVENT_REQUEST, &ev));
	CHECK_EQ(fabric_chan_reject(ev.chan, "why", 3), 0);
	CHECK(raw_reply(fd, in, &reply) && reply.reject && reply.priv_len == 3);
	CHECK(raw_silent(fd, 100));
	shutdown(fd, SHUT_WR);
	CHECK(raw_closed(fd));
	close(fd);
	rig_close(&rig);
}

/* ---- many who say nothing ---- */

static unsigned descriptors_raise(unsigned want)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < want) {
		limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	return (unsigned)limit.rlim_cur;
}

static void test_silent_peers(void)
{
	const struct soft_config config = {.threads = 2, .handshake_ms = 1500};
	const unsigned limit = descriptors_raise(2200);
	const unsigned count = limit >= 2200 ? 1000 : (limit - 200) / 2;
	int *fds = calloc(count, sizeof(*fds));
	struct fabric_event ev;
	struct rig rig;

	printf("# %u peers\n", count);
	CHECK(rig_open(&rig, &config));
	for (unsigned i = 0; i < count; i++) {
		fds[i] = raw_socket();
		CHECK(raw_connect(fds[i], rig.port));
	}
	/* They do not keep out one that speaks ... */
	CHECK(rig_connect(&rig, false, 1));
	/* ... and are dropped in time, without an event. */
	for (unsigned i = 0; i < count; i++) {
		CHECK(raw_closed(fds[i]));
		close(fds[i]);
	}
	CHECK_EQ(fabric_eq_get(rig.eq, &ev), 0);
	free(fds);
	rig_close(&rig);
}

static void test_handshakes_at_once(void)
{
	const struct soft_config config = {.threads = 1, .max_handshakes = 4};
	int fds[10];
	struct rig rig;

	CHECK(rig_open(&rig, &config));
	for (int i = 0; i < 10; i++) {
		fds[i] = raw_socket();
		CHECK(raw_connect(fds[i], rig.port));
	}
	for (int i = 0; i < 6; i++)
		CHECK(raw_closed(fds[i]));
	for (int i = 6; i < 10; i++)
		CHECK(raw_silent(fds[i], 10));
	CHECK(rig_connect(&rig, false, 1));
	CHECK(raw_closed(fds[6]));
	for (int i = 0; i < 10; i++)
		close(fds[i]);
	rig_close(&rig);
}

/* Runs in a process of its own: the limit holds for all of it. */
static int without_descriptors(void)
{
	enum { PEERS = 20, LEFT = 5 };
	const struct soft_config config = {.threads = 1};
	const struct mpa_frame request = {.kind = MPA_REQUEST, .revision = 1};
	struct rlimit limit;
	struct fabric_event ev;
	struct rig rig;
	int fds[PEERS + 1], probe;

	log_setup("soft", LOG_LEVEL_ERROR);
	if (!rig_open(&rig, &config))
		return 2;
	for (int i = 0; i <= PEERS; i++)
		fds[i] = raw_socket();
	probe = dup(0);
	close(probe);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)probe + LEFT;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i <= PEERS; i++)
		if (!raw_connect(fds[i], rig.port))
			return 3;
	/* Those who said nothing longest made room for the last, who speaks. */
	if (!raw_request(fds[PEERS], &request) || !rig_event(&rig, FABRIC_EVENT_REQUEST, &ev))
		return 4;
	fabric_chan_free(ev.chan);
	if (!raw_closed(fds[0]))
		return 5;
	for (int i = 0; i <= PEERS; i++)
		close(fds[i]);
	rig_close(&rig);
	return 0;
}

static void test_out_of_descriptors(void)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(without_descriptors());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* A listener and an event queue go while peers are half-way. */
static void test_close_half_way(void)
{
	for (int i = 0; i < 20; i++) {
		const struct soft_config config = {.threads = 2};
		const struct mpa_frame request = {.kind = MPA_REQUEST, .revision = 1};
		int fds[8];
		struct rig rig;

		CHECK(rig_open(&rig, &config));
		for (int k = 0; k < 8; k++) {
			fds[k] = raw_socket();
			CHECK(raw_connect(fds[k], rig.port));
			if (k % 2)
				CHECK(raw_request(fds[k], &request));
		}
		rig_close(&rig);
		for (int k = 0; k < 8; k++) {
			CHECK(raw_closed(fds[k]));
			close(fds[k]);
		}
	}
}

HARNESS_MAIN({"revision-1-accept", test_revision_1_accept}, {"connect-bytes", test_connect_bytes},
	{"nudges", test_nudges}, {"segments-of-any-size", test_segments_of_any_size},
	{"byte-by-byte", test_byte_by_byte}, {"read-response", test_read_response},
	{"peer-to-peer", test_peer_to_peer}, {"offences", test_offences}, {"bad-crc", test_bad_crc},
	{"terminated", test_terminated}, {"noise", test_noise}, {"dial-replies", test_dial_replies},
	{"requests-refused", test_requests_refused},
	{"reject-then-silence", test_reject_then_silence}, {"silent-peers", test_silent_peers},
	{"handshakes-at-once", test_handshakes_at_once},
	{"out-of-descriptors", test_out_of_descriptors}, {"close-half-way", test_close_half_way})
