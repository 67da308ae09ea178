/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/pair.h: two links of one session in this process, over any fabric.
 *
 * A small event loop stands in for the daemon: it answers requests as rftpd does, with the real
 * link module.
 */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include "../contexts.h"

#include "base/worker.h"
#include "proto/message_greeting.h"
#include "session/link.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

struct pair {
	struct fabric *fabric;
	struct fabric_eq *eq;
	struct fabric_listener *listener;
	struct sockaddr_storage addr;
	struct link *client;
	_Atomic(struct link *) daemon; /* set by the event loop */
	struct contexts contexts;
	struct worker events;
	_Atomic bool stop;
	_Atomic unsigned connected; /* data channels, at the accepting side */
	_Atomic bool broken;        /* one of its channels */
	_Atomic bool secured;       /* the daemon's half of the handshake is over, well or not */
};

#define PAIR_SESSION 7u

#define PAIR_MS 10000

static void pair_accept(
	struct pair *p, struct fabric_event *ev, const struct message_greeting *greeting)
{
	struct link *link;

	if (!link_accept(ev->chan, greeting, p->contexts.server, &link))
		p->daemon = link;
}

/* Nobody else uses the control channel before it is secured. */
static void pair_connected(struct pair *p, const struct fabric_event *ev)
{
	struct control *control = p->daemon ? link_control(p->daemon) : NULL;

	if (!control || ev->chan != control_chan(control))
		return;
	if (control_secure(control, PAIR_MS, -1))
		p->broken = true;
	p->secured = true;
}

static void pair_events(void *arg)
{
	struct pair *p = arg;
	struct fabric_event ev;

	while (!p->stop) {
		struct message_greeting greeting;

		if (fabric_eq_wait(p->eq, &ev, 1) != 1)
			continue;
		if (ev.type != FABRIC_EVENT_REQUEST) {
			unsigned transfer;

			if (p->daemon && link_channel_event(p->daemon, &ev, &transfer))
				p->connected += ev.type == FABRIC_EVENT_CONNECTED;
			if (ev.type == FABRIC_EVENT_CONNECTED)
				pair_connected(p, &ev);
			else
				p->broken = true;
			continue;
		}
		if (message_get_greeting(&greeting, ev.priv, ev.priv_len))
			fabric_chan_reject(ev.chan, NULL, 0);
		else if (greeting.kind == MESSAGE_CHANNEL_CONTROL)
			pair_accept(p, &ev, &greeting);
		else
			link_accept_channel(p->daemon, ev.chan, &greeting);
	}
}

/* Connects control and `channels` data channels.  0 or -errno (a fabric with faults may cut it). */
static int pair_open(struct pair *p, struct fabric *fabric, unsigned channels)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct message_channels_reply reply;
	struct link_target target;
	uint16_t status;
	int r;

	*p = (struct pair){.fabric = fabric};
	contexts_make(&p->contexts);
	r = fabric_eq_new(fabric, &p->eq);
	assert(!r);
	r = fabric_listen(p->eq, (struct sockaddr *)&any, sizeof any, &p->listener);
	assert(!r);
	fabric_listener_addr(p->listener, &p->addr);
	r = worker_start(&p->events, "pair", pair_events, p);
	assert(!r);
	target = (struct link_target){
		.dst = (struct sockaddr *)&p->addr,
		.tls = p->contexts.client,
		.host = "pair",
	};
	r = link_connect(fabric, &target, PAIR_MS, &p->client, &status);
	if (r)
		return r;
	/* connected: the event loop is about to have it, in its own thread */
	while (!p->secured && !p->broken)
		sched_yield();
	r = p->broken ? -ECONNRESET
		      : link_expect_channels(p->daemon, 0, PAIR_SESSION, channels, &reply);
	if (!r)
		r = link_begin_channels(p->client, 0, PAIR_SESSION, &reply, PAIR_MS);
	if (!r)
		r = link_finish_channels(p->client, 0, PAIR_MS);
	while (!r && p->connected < channels && !p->broken)
		sched_yield();
	return r;
}

/* Connects data channels for one more transfer, perhaps while others run.  0 or -errno. */
static inline int pair_open_more(struct pair *p, unsigned transfer, unsigned channels)
{
	struct message_channels_reply reply;
	unsigned before = p->connected;
	int r = link_expect_channels(p->daemon, transfer, PAIR_SESSION, channels, &reply);

	if (!r)
		r = link_begin_channels(p->client, transfer, PAIR_SESSION, &reply, PAIR_MS);
	if (!r)
		r = link_finish_channels(p->client, transfer, PAIR_MS);
	while (!r && p->connected < before + channels && !p->broken)
		sched_yield();
	return r;
}

static void pair_close(struct pair *p)
{
	p->stop = true;
	worker_stop(&p->events);
	link_free(p->client);
	link_free(p->daemon);
	fabric_listener_free(p->listener);
	fabric_eq_free(p->eq);
	fabric_close(p->fabric);
	contexts_free(&p->contexts);
}

#endif
