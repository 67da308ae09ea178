/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_control: SENDs of a peer on the control channel, in the clear: their heads, the credits, the
 * frames that are put together from them (session/pipe, session/control).  The fabric is stood in
 * for here.
 *
 * Input: steps of one byte: 0 a SEND with a right head (credits in 8 bits, length in 16), 1 a SEND
 * as it is (length in 16 bits), 2 the oldest SEND of ours completes, 3 a frame is put (length in 16
 * bits), 4 frames are got, 5 the channel breaks.
 *
 * Property: no SEND without a credit, no credit without a receive; frames are those of the bytes
 * that came, in order, and the bytes that leave are those of the frames that were put.
 */
#include "proto/wire.h"
#include "session/control.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#define HEAD_BYTES 4u
#define OURS_MAX 64u /* frames put */

/* ---- the fabric ---- */

struct stub {
	struct fabric_chan *unused;
};
static struct stub object;
static struct {
	uint64_t id;
	void *at;
} receives[PIPE_CREDITS];
static unsigned receive_count;
static uint64_t sends[PIPE_CREDITS + 1];
static unsigned send_count;
static struct fabric_wc completions[64];
static unsigned completion_count;
static bool broken;
static long credits; /* that the other side has given us: SENDs we may post */
static long granted; /* receives that the other side knows of and that no SEND has used */
static struct buffer left, came, put; /* streams: out as posted, in as given, out as put */

int fabric_pd_new(struct fabric_chan *chan, struct fabric_pd **out)
{
	(void)chan;
	*out = (struct fabric_pd *)&object;
	return 0;
}

int fabric_cq_new(struct fabric_pd *pd, unsigned entries, struct fabric_cq **out)
{
	(void)pd;
	(void)entries;
	*out = (struct fabric_cq *)&object;
	return 0;
}

int fabric_mr_new(
	struct fabric_pd *pd, void *addr, size_t bytes, unsigned access, struct fabric_mr **out)
{
	(void)pd;
	(void)addr;
	(void)bytes;
	(void)access;
	*out = (struct fabric_mr *)&object;
	return 0;
}

uint64_t fabric_mr_base(const struct fabric_mr *mr)
{
	(void)mr;
	return 0;
}

uint32_t fabric_mr_key(const struct fabric_mr *mr)
{
	(void)mr;
	return 0;
}

const struct fabric_caps *fabric_chan_caps(const struct fabric_chan *chan)
{
	static const struct fabric_caps caps; /* nothing but SENDs */

	(void)chan;
	return &caps;
}

int fabric_chan_setup(struct fabric_chan *chan, const struct fabric_chan_attr *attr)
{
	(void)chan;
	must(attr->recv_depth == PIPE_CREDITS && attr->send_depth == PIPE_CREDITS + 2);
	return 0;
}

void *fabric_chan_context(const struct fabric_chan *chan)
{
	(void)chan;
	return NULL;
}

void fabric_chan_free(struct fabric_chan *chan)
{
	(void)chan;
}

void fabric_mr_free(struct fabric_mr *mr)
{
	(void)mr;
}

void fabric_cq_free(struct fabric_cq *cq)
{
	(void)cq;
}

void fabric_pd_free(struct fabric_pd *pd)
{
	(void)pd;
}

int fabric_cq_arm(struct fabric_cq *cq)
{
	(void)cq;
	return 0;
}

int fabric_cq_fd(const struct fabric_cq *cq)
{
	(void)cq;
	return -1;
}

const char *fabric_status_name(enum fabric_status status)
{
	(void)status;
	return "stub";
}

int fabric_post_recv(
	struct fabric_chan *chan, uint64_t id, void *addr, uint32_t bytes, struct fabric_mr *mr)
{
	(void)chan;
	(void)mr;
	must(receive_count < PIPE_CREDITS && bytes == PIPE_SEND_BYTES);
	receives[receive_count].id = id;
	receives[receive_count++].at = addr;
	return 0;
}

int fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *wr)
{
	struct wire w;
	uint32_t given, len;

	(void)chan;
	must(wr->opcode == FABRIC_SEND && wr->sge_count == 1 && send_count < PIPE_CREDITS);
	must(credits > 0);
	credits--;
	wire_init_get(&w, wr->sge->addr, wr->sge->bytes);
	given = wire_get_u16(&w);
	len = wire_get_u16(&w);
	must(!w.error && len == wire_left(&w));
	must(credits > 0 || !len); /* the last one is kept for giving credits back */
	granted += given;
	must(granted <= (long)receive_count);
	must(!buffer_append(&left, w.at, len));
	sends[send_count++] = wr->id;
	return 0;
}

int fabric_cq_poll(struct fabric_cq *cq, struct fabric_wc *out, int most)
{
	int n = 0;

	(void)cq;
	for (; n < most && (unsigned)n < completion_count; n++)
		out[n] = completions[n];
	memmove(completions, completions + n,
		(completion_count - (unsigned)n) * sizeof *completions);
	completion_count -= (unsigned)n;
	return n;
}

static void complete(struct fabric_wc wc)
{
	if (completion_count < sizeof completions / sizeof *completions)
		completions[completion_count++] = wc;
}

/* ---- the peer ---- */

static void deliver(struct fuzz_input *in, bool right)
{
	uint16_t given = right ? fuzz_byte(in) : 0;
	size_t len, wanted = fuzz_u16(in) % (PIPE_SEND_BYTES + 1);
	const uint8_t *data;
	uint8_t *slot;
	struct wire w;

	/* without a receive it would be the peer's own fault, and the fabric's to tell */
	if (!receive_count || granted <= 0 || broken)
		return;
	if (right && wanted > PIPE_SEND_BYTES - HEAD_BYTES)
		wanted = PIPE_SEND_BYTES - HEAD_BYTES;
	data = fuzz_bytes(in, wanted, &len);
	slot = receives[0].at;
	if (right) {
		wire_init_put(&w, slot, HEAD_BYTES);
		wire_put_u16(&w, given);
		wire_put_u16(&w, (uint16_t)len);
		slot += HEAD_BYTES;
	}
	if (len)
		memcpy(slot, data, len);
	if (right) {
		credits += given;
		must(!buffer_append(&came, data, len));
	} else if (len >= HEAD_BYTES && (size_t)(data[2] << 8 | data[3]) == len - HEAD_BYTES) {
		credits += data[0] << 8 | data[1];
		must(!buffer_append(&came, data + HEAD_BYTES, len - HEAD_BYTES));
	}
	complete((struct fabric_wc){.id = receives[0].id,
		.opcode = FABRIC_RECV,
		.bytes = (uint32_t)(len + (right ? HEAD_BYTES : 0))});
	memmove(receives, receives + 1, --receive_count * sizeof *receives);
	granted--;
}

static void send_completes(void)
{
	if (!send_count)
		return;
	complete((struct fabric_wc){.id = sends[0], .opcode = FABRIC_SEND});
	memmove(sends, sends + 1, --send_count * sizeof *sends);
}

/* ---- our side ---- */

static void put_frame(struct control *c, struct fuzz_input *in)
{
	static const uint8_t zeros[MESSAGE_DATA_MAX];
	const struct message_row *row = message_row(MESSAGE_LIST | MESSAGE_REPLY);
	size_t len = fuzz_u16(in);
	struct message_header h = {MESSAGE_LIST | MESSAGE_REPLY, 0, 0};
	uint8_t head[MESSAGE_HEADER_BYTES];

	len = len < row->min ? row->min : len > row->max ? row->max : len;
	h.length = (uint32_t)len;
	message_put_header(&h, head);
	/* what is in the buffer leaves, also when the channel breaks meanwhile */
	must(!buffer_append(&put, head, sizeof head) && !buffer_append(&put, zeros, len));
	if (control_put(c, h.type, 0, zeros, len))
		broken = true;
}

static void get_frames(struct control *c)
{
	struct message_header h;
	const uint8_t *data;
	int r;

	while ((r = control_get(c, &h, &data)) == 1) {
		struct message_header want;

		must(buffer_bytes(&came) >= MESSAGE_HEADER_BYTES);
		must(!message_get_header(&want, buffer_front(&came)));
		must(want.type == h.type && want.response == h.response && want.length == h.length);
		must(!message_check(&h));
		must(buffer_bytes(&came) >= MESSAGE_HEADER_BYTES + h.length);
		must(!memcmp(data, buffer_front(&came) + MESSAGE_HEADER_BYTES, h.length));
		buffer_consume(&came, MESSAGE_HEADER_BYTES + h.length);
	}
	if (r < 0)
		broken = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct control *c;

	receive_count = send_count = completion_count = 0;
	broken = false;
	credits = 2 + fuzz_byte(&in) % 16;
	must(!control_new((struct fabric_chan *)&object, NULL, NULL, &c));
	granted = PIPE_CREDITS;
	control_start(c, (uint16_t)credits);
	for (unsigned frames = 0; in.left && !broken;) {
		switch (fuzz_byte(&in) % 6) {
		case 0:
			deliver(&in, true);
			break;
		case 1:
			deliver(&in, false);
			break;
		case 2:
			send_completes();
			break;
		case 3:
			if (frames++ < OURS_MAX)
				put_frame(c, &in);
			break;
		case 4:
			get_frames(c);
			break;
		default:
			complete((struct fabric_wc){
				.id = 0, .opcode = FABRIC_RECV, .status = FABRIC_FLUSHED});
		}
		control_push(c);
		must(buffer_bytes(&left) <= buffer_bytes(&put));
	}
	must(!memcmp(buffer_bytes(&left) ? buffer_front(&left) : (uint8_t *)"",
		buffer_bytes(&put) ? buffer_front(&put) : (uint8_t *)"", buffer_bytes(&left)));
	control_free(c);
	buffer_fini(&left);
	buffer_fini(&came);
	buffer_fini(&put);
	left = came = put = (struct buffer){0};
	return 0;
}
