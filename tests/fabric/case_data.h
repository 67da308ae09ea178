/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fabric/case_data.h: what goes right, one request at a time: sizes, pieces,
 * visibility behind a notice, immediate data, reads.
 */
#ifndef TESTS_FABRIC_CASE_DATA_H
#define TESTS_FABRIC_CASE_DATA_H

#include "tests/fabric/side.h"

#define MIB (1u << 20)

/* Cuts [from, from + bytes) of `m` into `count` pieces, odd ones where it can. */
static void pieces(
	struct fabric_sge *sge, unsigned count, const struct mem *m, size_t from, size_t bytes)
{
	for (unsigned i = 0; i < count; i++) {
		size_t part = i + 1 < count ? bytes / (count - i) / 2 : bytes;

		sge[i].addr = m->bytes + from;
		sge[i].bytes = (uint32_t)part;
		sge[i].mr = m->mr;
		from += part;
		bytes -= part;
	}
}

/* The largest of the sizes tested that one request may have. */
static size_t largest(const struct link *l)
{
	uint32_t max = fabric_chan_caps(l->chan)->max_message_bytes;

	return max < 16 * MIB + 32 ? max : 16 * MIB + 32; /* a block, with its header */
}

/* ---- SEND and RECV ---- */

static const size_t send_sizes[] = {0, 1, 2, 3, 4, 7, 8, 63, 64, 65, 1000, 1460, 4095, 4096, 4097,
	16383, 65279, 65535, 65536, 65537, 131072, MIB + 1, SIZE_MAX};
#define SEND_SIZES (sizeof send_sizes / sizeof *send_sizes)

static size_t send_size(const struct link *l, size_t i)
{
	return send_sizes[i] < largest(l) ? send_sizes[i] : largest(l);
}

static void sends_client(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l), FABRIC_LOCAL);

	for (size_t i = 0; i < SEND_SIZES; i++) {
		size_t size = send_size(l, i);
		struct fabric_sge sge[FABRIC_SGE_MAX];
		struct fabric_wr wr = {.id = i,
			.opcode = FABRIC_SEND,
			.flags = FABRIC_SIGNALED,
			.sge = sge,
			.sge_count = 1 + i % FABRIC_SGE_MAX};

		pattern_fill(m->bytes, size, i);
		pieces(sge, wr.sge_count, m, 0, size);
		meet(s);
		must_eq(s, fabric_post_send(l->chan, &wr), 0);
		wc_good(l, i, FABRIC_SEND);
	}
	meet(s);
	must(s, mem_guards_ok(m));
}

static void sends_server(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l) + 1, FABRIC_LOCAL);

	for (size_t i = 0; i < SEND_SIZES; i++) {
		size_t size = send_size(l, i), room = i % 2 ? size : size + 1;

		memset(m->bytes, 0x5a, m->size);
		must_eq(s, post_recv(l, 1000 + i, m, 0, room), 0);
		meet(s);
		must_eq(s, wc_good(l, 1000 + i, FABRIC_RECV).bytes, size);
		must(s, pattern_is(m->bytes, size, i));
		must(s, filled_with(m->bytes + size, m->size - size, 0x5a));
	}
	meet(s);
	must(s, mem_guards_ok(m));
}

/* ---- WRITE, and the notice behind it in the same list ---- */

static const size_t write_sizes[] = {1, 2, 3, 7, 8, 9, 63, 511, 4095, 4096, 4097, 65000, 65535,
	65536, 65537, 200001, MIB - 1, MIB, 3 * MIB + 13, 8 * MIB, SIZE_MAX};
#define WRITE_SIZES (sizeof write_sizes / sizeof *write_sizes)

static size_t write_size(const struct link *l, size_t i)
{
	return write_sizes[i] < largest(l) ? write_sizes[i] : largest(l);
}

static void writes_client(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l) + 8, FABRIC_LOCAL);
	struct far far = far_learn(s);

	for (size_t i = 0; i < WRITE_SIZES; i++) {
		size_t size = write_size(l, i), at = i % 7;
		struct fabric_sge sge[FABRIC_SGE_MAX], word = {m->bytes + m->size - 1, 1, m->mr};
		struct fabric_wr notice = {.id = 2 * i + 1,
			.opcode = FABRIC_SEND,
			.flags = FABRIC_SIGNALED,
			.sge = &word,
			.sge_count = 1};
		struct fabric_wr data = {.next = &notice,
			.id = 2 * i,
			.opcode = FABRIC_WRITE,
			.flags = i % 2 ? FABRIC_SIGNALED : 0,
			.sge = sge,
			.sge_count = 1 + i % FABRIC_SGE_MAX,
			.remote_addr = far.base + at,
			.remote_key = far.key};

		pattern_fill(m->bytes + i % 5, size, i);
		m->bytes[m->size - 1] = (uint8_t)i;
		pieces(sge, data.sge_count, m, i % 5, size);
		meet(s);
		must_eq(s, fabric_post_send(l->chan, &data), 0);
		if (data.flags)
			wc_good(l, data.id, FABRIC_WRITE);
		wc_good(l, notice.id, FABRIC_SEND);
	}
	meet(s);
}

static void writes_server(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l) + 8, FABRIC_REMOTE_WRITE);
	struct mem *word = mem_new(s, l->pd, 1, FABRIC_LOCAL);

	far_tell(s, m);
	for (size_t i = 0; i < WRITE_SIZES; i++) {
		size_t size = write_size(l, i), at = i % 7;

		memset(m->bytes, 0x5a, m->size);
		must_eq(s, post_recv(l, i, word, 0, 1), 0);
		meet(s);
		wc_good(l, i, FABRIC_RECV);
		must_eq(s, word->bytes[0], i);
		must(s, pattern_is(m->bytes + at, size, i));
		must(s, filled_with(m->bytes, at, 0x5a));
		must(s, filled_with(m->bytes + at + size, m->size - at - size, 0x5a));
	}
	meet(s);
	must(s, mem_guards_ok(m) && mem_guards_ok(word));
}

/* ---- inline ---- */

static void inline_half(struct side *s)
{
	struct link *l = link_open(s, &(struct plan){.inline_bytes = 64});
	uint32_t most = fabric_chan_caps(l->chan)->inline_max;
	uint8_t *bytes = calloc(1, most + 1);
	struct mem *m = mem_new(s, l->pd, 2 * most + 1, FABRIC_REMOTE_WRITE);
	const uint32_t sizes[] = {0, most > 0, most / 2, most};
	struct far far = NOWHERE;

	must(s, bytes);
	for (unsigned i = 0; i < 4; i++)
		must_eq(s, post_recv(l, i, m, 0, most), 0);
	if (s->client)
		far = far_learn(s);
	else
		far_tell(s, m);
	for (unsigned i = 0; i < 4; i++) {
		struct fabric_sge sge[2] = {{bytes, sizes[i] / 3, NULL},
			{bytes + sizes[i] / 3, sizes[i] - sizes[i] / 3, NULL}};
		struct fabric_wr notice = {.id = i,
			.opcode = FABRIC_SEND,
			.flags = FABRIC_SIGNALED | FABRIC_INLINE,
			.sge = sge,
			.sge_count = 2};
		struct fabric_wr data = {.next = &notice,
			.id = 100 + i,
			.opcode = FABRIC_WRITE,
			.flags = FABRIC_INLINE,
			.sge = sge,
			.sge_count = 2,
			.remote_key = far.key};

		if (s->client) {
			data.remote_addr = far.base + most;
			pattern_fill(bytes, sizes[i], i);
			must_eq(s, fabric_post_send(l->chan, &data), 0);
			memset(bytes, 0xee, most); /* ours again at once */
			wc_good(l, i, FABRIC_SEND);
		} else {
			must_eq(s, wc_good(l, i, FABRIC_RECV).bytes, sizes[i]);
			must(s, pattern_is(m->bytes, sizes[i], i));
			must(s, pattern_is(m->bytes + most, sizes[i], i));
		}
		meet(s);
	}
	if (s->client) {
		struct fabric_sge sge = {bytes, most + 1, m->mr};
		struct fabric_wr wr = {
			.opcode = FABRIC_SEND, .flags = FABRIC_INLINE, .sge = &sge, .sge_count = 1};

		must_eq(s, fabric_post_send(l->chan, &wr), -EINVAL);
	}
	free(bytes);
	meet(s);
}

/* ---- WRITE_IMM ---- */

static void imm_client(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l), FABRIC_LOCAL);
	struct far far = far_learn(s);

	for (unsigned i = 0; i < WRITE_SIZES; i++) {
		size_t size = i ? write_size(l, i) : 0;
		struct fabric_sge sge[FABRIC_SGE_MAX];
		struct fabric_wr wr = {.id = i,
			.opcode = FABRIC_WRITE_IMM,
			.flags = FABRIC_SIGNALED,
			.sge = sge,
			.sge_count = 1 + i % FABRIC_SGE_MAX,
			.remote_addr = far.base,
			.remote_key = far.key,
			.imm = 0xfedcba98u + i};

		pattern_fill(m->bytes, size, i);
		pieces(sge, wr.sge_count, m, 0, size);
		meet(s);
		must_eq(s, fabric_post_send(l->chan, &wr), 0);
		wc_good(l, i, FABRIC_WRITE_IMM);
	}
	meet(s);
}

static void imm_server(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l), FABRIC_REMOTE_WRITE);

	far_tell(s, m);
	for (unsigned i = 0; i < WRITE_SIZES; i++) {
		size_t size = i ? write_size(l, i) : 0;
		struct fabric_wc wc;

		memset(m->bytes, 0x5a, m->size);
		must_eq(s, post_recv(l, i, NULL, 0, 0), 0);
		meet(s);
		wc = wc_good(l, i, FABRIC_RECV_IMM);
		must_eq(s, wc.imm, 0xfedcba98u + i);
		must_eq(s, wc.bytes, size);
		must(s, pattern_is(m->bytes, size, i));
		must(s, filled_with(m->bytes + size, m->size - size, 0x5a));
	}
	meet(s);
	must(s, mem_guards_ok(m));
}

/* What the caps deny is refused, and breaks nothing. */
static void caps_half(struct side *s)
{
	struct link *l = link_open(s, NULL);
	const struct fabric_caps *caps = fabric_chan_caps(l->chan);
	struct mem *m = mem_new(s, l->pd, 8, FABRIC_LOCAL);

	must(s, caps->max_depth >= 64 && caps->max_message_bytes >= MIB && caps->max_channels >= 1);
	if (!caps->has_imm)
		must_eq(s, post(l, FABRIC_WRITE_IMM, 1, 0, m, 0, 8, NOWHERE, 0), -EINVAL);
	if (!caps->has_read)
		must_eq(s, post(l, FABRIC_READ, 1, 0, m, 0, 8, NOWHERE, 0), -EINVAL);
	must_eq(s, post_send(l, 1, 0x80, m, 0, 8), -EINVAL);
	meet(s);
	side_drain(s);
	must_eq(s, l->ended, 0);
	wc_none(l);
}

/* ---- READ ---- */

static const size_t read_sizes[] = {
	1, 3, 4096, 65535, 65536, 65537, 300001, MIB, 5 * MIB + 3, SIZE_MAX};
#define READ_SIZES (sizeof read_sizes / sizeof *read_sizes)
#define READS_AT_ONCE 12u
#define READ_BYTES 100003u

static void read_client(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l), FABRIC_LOCAL);
	struct far far = far_learn(s);
	size_t max = largest(l);

	for (unsigned i = 0; i < READ_SIZES; i++) {
		size_t size = read_sizes[i] < max ? read_sizes[i] : max;
		struct fabric_sge sge[FABRIC_SGE_MAX];
		struct fabric_wr wr = {.id = i,
			.opcode = FABRIC_READ,
			.flags = FABRIC_SIGNALED,
			.sge = sge,
			.sge_count = 1 + i % FABRIC_SGE_MAX,
			.remote_addr = far.base,
			.remote_key = far.key};

		memset(m->bytes, 0x5a, m->size);
		pieces(sge, wr.sge_count, m, 0, size);
		must_eq(s, fabric_post_send(l->chan, &wr), 0);
		wc_good(l, i, FABRIC_READ);
		must(s, pattern_is(m->bytes, size, 1));
		must(s, filled_with(m->bytes + size, m->size - size, 0x5a));
	}
	/* several outstanding, and a SEND among them */
	memset(m->bytes, 0x5a, m->size);
	for (unsigned i = 0; i < READS_AT_ONCE; i++)
		must_eq(s,
			post(l, i == 7 ? FABRIC_SEND : FABRIC_READ, i, FABRIC_SIGNALED, m,
				i * READ_BYTES, i == 7 ? 0 : READ_BYTES, far, 0),
			0);
	for (unsigned i = 0; i < READS_AT_ONCE; i++) {
		wc_good(l, i, i == 7 ? FABRIC_SEND : FABRIC_READ);
		if (i != 7)
			must(s, pattern_is(m->bytes + i * READ_BYTES, READ_BYTES, 1));
	}
	must(s, filled_with(m->bytes + 7 * READ_BYTES, READ_BYTES, 0x5a));
	must(s, mem_guards_ok(m));
	meet(s);
}

static void read_server(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, largest(l), FABRIC_REMOTE_READ);

	pattern_fill(m->bytes, m->size, 1);
	must_eq(s, post_recv(l, 1, NULL, 0, 0), 0);
	far_tell(s, m);
	wc_good(l, 1, FABRIC_RECV);
	meet(s);
	must(s, pattern_is(m->bytes, m->size, 1));
}

/* ---- READs against the stream ---- */

#define CROSS_WRITES 500u
#define CROSS_BYTES                                                                                \
	60000u /* one segment of soft, so that it may be cut off anywhere in its first */
#define CROSS_READ_BYTES 9001u
#define CROSS_READS 4u
#define CROSS_WINDOW 96u /* more than sockets hold */

/* The client writes without a pause what the server reads from it meanwhile: the answers go between
 * the WRITEs, never into one. */
static void cross_client(struct side *s)
{
	struct link *l = link_open(s, &(struct plan){.send_depth = CROSS_WINDOW});
	struct mem *m = mem_new(s, l->pd, CROSS_BYTES, FABRIC_REMOTE_READ);
	struct far far = far_learn(s);
	unsigned posted = 0;

	pattern_fill(m->bytes, m->size, 6);
	far_tell(s, m);
	for (unsigned done = 0; done < CROSS_WRITES; done++) {
		for (; posted < CROSS_WRITES && posted - done < CROSS_WINDOW; posted++)
			must_eq(s,
				post(l, FABRIC_WRITE, posted, FABRIC_SIGNALED, m, 0, CROSS_BYTES,
					far, 0),
				0);
		wc_good(l, done, FABRIC_WRITE);
	}
	must_eq(s, post_send(l, 1, FABRIC_SIGNALED, m, 0, 8), 0);
	wc_good(l, 1, FABRIC_SEND);
	meet(s);
}

static void cross_server(struct side *s)
{
	struct link *l = link_open(s, NULL);
	struct mem *m = mem_new(s, l->pd, CROSS_BYTES, FABRIC_REMOTE_WRITE);
	struct mem *got = mem_new(s, l->pd, CROSS_READS * CROSS_READ_BYTES, FABRIC_LOCAL);
	struct mem *last = mem_new(s, l->pd, 8, FABRIC_LOCAL);
	unsigned posted = 0, done = 0;
	bool end = false;
	struct far far;

	must_eq(s, post_recv(l, 1, last, 0, 8), 0);
	far_tell(s, m);
	far = far_learn(s);
	while (!end || done < posted) {
		struct fabric_wc wc;

		for (; !end && posted - done < CROSS_READS; posted++) {
			size_t at = posted % CROSS_READS * CROSS_READ_BYTES;

			memset(got->bytes + at, 0, CROSS_READ_BYTES);
			must_eq(s,
				post(l, FABRIC_READ, posted, FABRIC_SIGNALED, got, at,
					CROSS_READ_BYTES, far, 0),
				0);
		}
		wc = wc_next(l);
		must_eq(s, wc.status, FABRIC_OK);
		if (wc.opcode == FABRIC_RECV) {
			end = true;
			continue;
		}
		must_eq(s, wc.id, done);
		must(s, pattern_is(got->bytes + done % CROSS_READS * CROSS_READ_BYTES,
				CROSS_READ_BYTES, 6));
		done++;
	}
	must(s, pattern_is(m->bytes, m->size, 6) && pattern_is(last->bytes, 8, 6));
	must(s, mem_guards_ok(m) && mem_guards_ok(got));
	meet(s);
}

#endif
