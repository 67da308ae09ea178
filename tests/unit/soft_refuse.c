/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the soft fabric against plain sockets that say what no honest peer would. */
#include "tests/unit/soft_raw.h"

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

HARNESS_MAIN({"offences", test_offences}, {"bad-crc", test_bad_crc},
	{"terminated", test_terminated}, {"noise", test_noise})
