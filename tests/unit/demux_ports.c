/* SPDX-License-Identifier: Apache-2.0 */
/* session/demux_ports: whose a frame is, in each state of its port. */
#include "session/demux_ports.h"

#include "proto/transfer.h"
#include "tests/harness.h"

#include <poll.h>
#include <string.h>

static struct demux_ports ports;

static struct demux_port *of(uint16_t type, uint16_t number)
{
	const struct message_header h = {type, number, 0};

	return demux_ports_of(&ports, &h);
}

static void append(struct demux_port *p, uint16_t type, uint16_t number)
{
	const struct message_header h = {type, number, 1};

	if (frame_queue_append(&p->frames, &h, (const uint8_t *)"x"))
		abort();
}

/* How many a port has, all of which are read; and of which type the first is. */
static unsigned count(struct demux_port *p, uint16_t *first)
{
	struct message_header h;
	const uint8_t *data;
	unsigned n = 0;

	*first = 0;
	frame_queue_turn(&p->frames);
	for (; frame_queue_give(&p->frames, &h, &data); n++) {
		*first = n ? *first : h.type;
		frame_queue_consume(&p->frames);
	}
	return n;
}

static bool is_woken(const struct demux_port *p)
{
	struct pollfd fd = {p->frames.fd, POLLIN, 0};

	return poll(&fd, 1, 0) == 1;
}

static void each_state(void)
{
	struct demux_port *dialogue = &ports.dialogue, *p, *again;
	uint16_t first;

	demux_ports_init(&ports, NULL);
	CHECK(of(TRANSFER_GRANT, 1) == dialogue && of(MESSAGE_STAT, 1) == dialogue);
	/* kept for it, also what came before; but no ABORT */
	append(dialogue, TRANSFER_GRANT, 1);
	append(dialogue, TRANSFER_GRANT, 2);
	CHECK_EQ(demux_ports_park(&ports, 1), 0);
	CHECK_EQ(demux_ports_park(&ports, 1), 0);
	CHECK_EQ(ports.kept, 1);
	p = of(TRANSFER_GRANT, 1);
	CHECK(p != dialogue && p->number == 1);
	CHECK(of(TRANSFER_ABORT, 1) == dialogue && of(TRANSFER_GRANT, 2) == dialogue);
	CHECK(of(MESSAGE_STAT, 1) == dialogue);
	CHECK_EQ(count(dialogue, &first), 1);
	CHECK_EQ(demux_ports_open(&ports, 1, &again), 0);
	CHECK(again == p && ports.open == 1 && !ports.kept);
	CHECK_EQ(count(p, &first), 1);
	CHECK(of(TRANSFER_ABORT, 1) == p && of(TRANSFER_GRANT, 2) == dialogue);
	/* while it is open nothing else becomes of it */
	CHECK_EQ(demux_ports_drop(&ports, 1), 0);
	demux_ports_unpark(&ports, 1);
	CHECK_EQ(demux_ports_open(&ports, 1, &again), 0);
	CHECK(again == p && ports.open == 1 && !ports.kept && of(TRANSFER_GRANT, 1) == p);
	/* who waits for room, and all */
	p->wants_room = true;
	demux_ports_wake_waiting(&ports);
	CHECK(is_woken(p) && !p->wants_room && !is_woken(dialogue));
	demux_ports_wake(&ports);
	CHECK(is_woken(dialogue));
	frame_queue_unwake(&dialogue->frames);
	/* what it leaves is the dialogue's */
	append(p, TRANSFER_READY, 1);
	CHECK_EQ(demux_ports_close(&ports, p), 0);
	CHECK(!ports.open && of(TRANSFER_GRANT, 1) == dialogue && is_woken(dialogue));
	CHECK_EQ(count(dialogue, &first), 1);
	CHECK_EQ(first, TRANSFER_READY);
	/* dropped: also what was kept, and what came before */
	CHECK_EQ(demux_ports_park(&ports, 1), 0);
	append(p, TRANSFER_GRANT, 1);
	append(dialogue, TRANSFER_GRANT, 1);
	append(dialogue, MESSAGE_STAT, 0);
	CHECK_EQ(demux_ports_drop(&ports, 1), 0);
	CHECK_EQ(ports.kept, 1);
	CHECK_EQ(count(p, &first), 0);
	CHECK_EQ(count(dialogue, &first), 1);
	CHECK_EQ(first, MESSAGE_STAT);
	CHECK(of(TRANSFER_GRANT, 1) == p && of(TRANSFER_ABORT, 1) == dialogue);
	demux_ports_unpark(&ports, 1);
	CHECK(!ports.kept && of(TRANSFER_GRANT, 1) == dialogue);
	demux_ports_unpark(&ports, 3); /* never asked for */
	demux_ports_fini(&ports);
}

HARNESS_MAIN({"each_state", each_state})
