/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/calls_stub.h: session/calls over frames that a test makes up: what is beneath it (control,
 * link, connect, the clock) is stood in for here, and a request is answered by the test's own
 * calls_stub_frame.  Time passes only while calls waits.
 */
#ifndef TESTS_CALLS_STUB_H
#define TESTS_CALLS_STUB_H

#include "base/clock.h"
#include "fabric/fabric_impl.h"
#include "session/calls_names.h"
#include "session/connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALLS_STUB_NS_A_FRAME 100000u

static uint64_t calls_stub_now = NS_PER_S;
static uint16_t calls_stub_asked;   /* type of the request that is answered next */
static uint16_t calls_stub_next[8]; /* and of those that were sent behind HELLO */
static unsigned calls_stub_nexts;
static unsigned calls_stub_puts; /* requests that were sent */
static int calls_stub_last;      /* what calls_stub_frame gave last: who sent may send more */

/* The next frame: 1, 0 (none yet) or -errno, as demux_get. */
static int calls_stub_frame(struct message_header *, const uint8_t **data);

/* Types of their own that nobody looks into. */
static char calls_stub_object[1];

int demux_get(struct demux_port *c, struct message_header *h, const uint8_t **data)
{
	(void)c;
	calls_stub_now += CALLS_STUB_NS_A_FRAME;
	calls_stub_last = calls_stub_frame(h, data);
	if (calls_stub_last == 1 && calls_stub_nexts &&
		h->type == (calls_stub_asked | MESSAGE_REPLY)) {
		calls_stub_asked = calls_stub_next[0];
		memmove(calls_stub_next, calls_stub_next + 1,
			--calls_stub_nexts * sizeof *calls_stub_next);
	}
	return calls_stub_last;
}

void control_cork(struct control *c, bool corked)
{
	(void)c;
	(void)corked;
}

int demux_put(struct demux_port *c, uint16_t type, uint16_t response, const void *data, size_t len)
{
	(void)c;
	(void)response;
	(void)data;
	(void)len;
	calls_stub_puts++;
	if (type != MESSAGE_HELLO && calls_stub_asked == MESSAGE_HELLO) {
		calls_stub_next[calls_stub_nexts++] = type; /* they are sent together */
	} else {
		calls_stub_asked = type;
		calls_stub_nexts = 0;
	}
	return 0;
}

void link_close_channels(struct link *l, unsigned transfer)
{
	(void)l;
	(void)transfer;
}

int demux_wait(struct demux_port *c, int timeout_ms, int cancel_fd)
{
	(void)c;
	(void)cancel_fd;
	if (calls_stub_last)
		return 0;
	calls_stub_now += (uint64_t)timeout_ms * NS_PER_MS;
	return -ETIMEDOUT;
}

static void calls_stub_describe(const struct fabric_chan *chan, char *out, size_t size)
{
	(void)chan;
	snprintf(out, size, "stub");
}

struct fabric_chan *control_chan(const struct control *c)
{
	static const struct fabric_ops ops = {.chan_describe = calls_stub_describe};
	static struct fabric fabric = {.ops = &ops};
	static struct fabric_chan chan = {.fabric = &fabric};

	(void)c;
	return &chan;
}

struct pipe *control_pipe(const struct control *c)
{
	(void)c;
	return NULL; /* nobody wants replies by READ */
}

const struct tls *control_tls(const struct control *c)
{
	(void)c;
	return (const struct tls *)calls_stub_object;
}

int tls_peer_key(const struct tls *t, struct tls_key *key)
{
	(void)t;
	*key = (struct tls_key){.type = "stub"};
	return 0;
}

void tls_describe(const struct tls *t, char *text, size_t size)
{
	(void)t;
	snprintf(text, size, "stub");
}

/* For calls_params: any server is the right one. */
static int calls_stub_trust(
	void *ctx, const struct tls *t, const struct sockaddr *address, char why[TLS_WHY_MAX])
{
	(void)ctx;
	(void)t;
	(void)address;
	(void)why;
	return 0;
}

struct control *link_control(const struct link *l)
{
	(void)l;
	return (struct control *)calls_stub_object;
}

unsigned link_channel_count(const struct link *l, unsigned transfer)
{
	(void)l;
	(void)transfer;
	return 0;
}

struct demux *link_demux(const struct link *l)
{
	(void)l;
	return (struct demux *)calls_stub_object;
}

struct demux_port *demux_dialogue(struct demux *d)
{
	return (struct demux_port *)d;
}

int demux_open(struct demux *d, unsigned number, struct demux_port **out)
{
	(void)number;
	*out = (struct demux_port *)d;
	return 0;
}

void demux_close(struct demux_port *p)
{
	(void)p;
}

void link_free(struct link *l)
{
	(void)l;
}

uint32_t link_max_depth(const struct link *l)
{
	(void)l;
	return RAIL_DEPTH;
}

unsigned link_suggest_channels(const struct link *l, uint64_t rtt_ns)
{
	(void)l;
	(void)rtt_ns;
	return 2;
}

const char *link_fabric_name(const struct link *l)
{
	(void)l;
	return "stub";
}

uint64_t link_secured_in_ns(const struct link *l)
{
	(void)l;
	return NS_PER_MS;
}

void link_dial_ahead(struct link *l, unsigned count, int timeout_ms)
{
	(void)l;
	(void)count;
	(void)timeout_ms;
}

void link_hang_up(struct link *l)
{
	(void)l;
}

int link_finish_channels(struct link *l, unsigned transfer, int timeout_ms)
{
	(void)l;
	(void)transfer;
	(void)timeout_ms;
	return 0;
}

void control_drain(struct control *c, int timeout_ms)
{
	(void)c;
	(void)timeout_ms;
}

int link_begin_channels(struct link *l, unsigned transfer, uint32_t session,
	const struct message_channels_reply *reply, int timeout_ms)
{
	(void)l;
	(void)transfer;
	(void)session;
	(void)reply;
	(void)timeout_ms;
	return 0;
}

int link_event_fd(const struct link *l)
{
	(void)l;
	return -1;
}

int link_check_events(struct link *l)
{
	(void)l;
	return 0;
}

int connect_any(const struct calls_params *params, struct fabric **fabric, struct link **link,
	char address[64], struct calls_error *error)
{
	(void)params;
	*fabric = NULL;
	*link = (struct link *)calls_stub_object;
	strcpy(address, "127.0.0.1:7387");
	*error = (struct calls_error){0};
	return 0;
}

uint64_t clock_now_ns(void)
{
	return calls_stub_now;
}

int clock_until_ms(uint64_t deadline_ns)
{
	return deadline_ns > calls_stub_now
		       ? (int)((deadline_ns - calls_stub_now + NS_PER_MS - 1) / NS_PER_MS)
		       : 0;
}

#endif
