/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_soft_rx: what comes over a connection of the soft fabric, from a plain socket, behind a
 * right MPA exchange.
 *
 * Input: steps of one byte, which says what is sent: bits 0-1: 0 bytes as they are (length in 8
 * bits, and they), 1 a tagged segment, 2 an untagged one, 3 a Read Request.  Segments are right but
 * for what the input says of them: keys are those of the regions that there are, in turn, and
 * addresses lie around their ends.
 *
 * Property: nothing but the regions that may be written is changed, and every receive completes or
 * flushes.
 */
#include "tests/unit/soft_raw.h"

#include "tests/fuzz/fuzz.h"

#define RECVS 4u
#define SAFE_BYTES 4096u /* of memory, behind which only regions for reading are */

static struct rig rig;
static uint32_t msn[3]; /* that comes next, by queue */

static void start(void)
{
	must(rig_open(&rig, NULL));
}

static struct fabric_mr *region(unsigned which)
{
	struct fabric_mr *const regions[] = {rig.mr, rig.ro, rig.wo};

	return regions[which % 3];
}

/* An address in it, or beside one of its ends. */
static uint64_t address(struct fuzz_input *in)
{
	uint64_t base = fabric_mr_base(rig.mr), at = fuzz_u16(in);

	return at & 0x8000 ? base + RIG_BYTES - (at & 0xff)
			   : base + (at & 0x7fff) - (at >> 14 & 1) * 16;
}

static bool send_segment(const struct ddp_header *header, const void *payload, size_t len)
{
	return raw_send_fpdu(rig.fd, header, payload, len);
}

static bool tagged(struct fuzz_input *in, uint8_t flags)
{
	size_t len, wanted = fuzz_byte(in) * (flags & 0x80 ? 64u : 1u);
	struct ddp_header header = {
		.tagged = true,
		.last = !(flags & 4),
		.opcode = flags & 8 ? DDP_READ_RESPONSE : DDP_WRITE,
		.stag = fabric_mr_key(region(flags >> 4)) + (flags & 0x40 ? 1 : 0),
		.offset = address(in),
	};
	static const uint8_t zeros[64 * 256];
	const uint8_t *payload = fuzz_bytes(in, wanted, &len);

	if (len < wanted)
		payload = zeros, len = wanted;
	return send_segment(&header, payload, len);
}

static bool untagged(struct fuzz_input *in, uint8_t flags)
{
	static const uint8_t opcodes[] = {DDP_SEND, DDP_SEND, DDP_TERMINATE, DDP_SEND};
	unsigned queue = flags & 8 ? 2u : 0u;
	size_t len;
	const uint8_t *payload;
	struct ddp_header header = {
		.last = !(flags & 4),
		.opcode = opcodes[flags >> 4 & 3],
		.queue = queue,
		.msn = msn[queue] + (flags & 0x40 ? 1 : 0),
		.offset = flags & 0x80 ? fuzz_byte(in) : 0,
	};

	payload = fuzz_bytes(in, fuzz_byte(in), &len);
	msn[queue] += header.last;
	return send_segment(&header, payload, len);
}

static bool read_request(struct fuzz_input *in, uint8_t flags)
{
	const struct ddp_header header = {
		.last = true, .opcode = DDP_READ_REQUEST, .queue = 1, .msn = msn[1]++};
	uint8_t payload[DDP_READ_BYTES];
	const struct ddp_read read = {
		.sink_stag = 1,
		.sink_offset = 0,
		.bytes = fuzz_u16(in),
		.source_stag = fabric_mr_key(region(flags >> 2)),
		.source_offset = address(in),
	};

	ddp_read_put(payload, &read);
	return send_segment(&header, payload, sizeof payload);
}

static bool raw(struct fuzz_input *in)
{
	size_t len;
	const uint8_t *data = fuzz_bytes(in, fuzz_byte(in), &len);

	return raw_send(rig.fd, data, len);
}

static void say(struct fuzz_input *in)
{
	bool goes = true;

	while (in->left && goes) {
		uint8_t step = fuzz_byte(in);

		switch (step & 3) {
		case 0:
			goes = raw(in);
			break;
		case 1:
			goes = tagged(in, step);
			break;
		case 2:
			goes = untagged(in, step);
			break;
		default:
			goes = read_request(in, step);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct fabric_event ev;
	struct fabric_wc wc;

	if (!rig.fabric)
		start();
	msn[0] = msn[1] = msn[2] = 1;
	must(rig_connect(&rig, false, RECVS));
	say(&in);
	shutdown(rig.fd, SHUT_WR);
	for (unsigned i = 0; i < RECVS; i++) {
		must(rig_wc(&rig, &wc));
		must(wc.id == i && (wc.status != FABRIC_OK || wc.bytes <= RIG_RECV_BYTES));
	}
	must(rig_event(&rig, FABRIC_EVENT_DISCONNECTED, &ev));
	rig_disconnect(&rig);
	return 0;
}
