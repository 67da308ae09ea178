/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link: see link.h.
 *
 * Owns the control channel and the rails.  The client's half is in link_client.c.
 */
#include "session/link_impl.h"

#include "base/log.h"
#include "base/worker.h"
#include "proto/status.h"
#include "session/channel_count.h"
#include "session/greeting.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int link_new(struct fabric_chan *chan, const struct tls_context *tls, const char *host,
	struct link **out)
{
	struct link *l = calloc(1, sizeof *l);
	int err;

	if (!l) {
		fabric_chan_free(chan);
		return -ENOMEM;
	}
	err = control_new(chan, tls, host, &l->control);
	if (!err)
		err = demux_new(l->control, &l->demux);
	if (err) {
		control_free(l->control);
		free(l);
		return err;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->events_lock, NULL);
	*out = l;
	return 0;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	link_hang_up(l);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++) {
		link_close_channels(l, i);
		if (l->rails[i])
			rail_fini(l->rails[i]); /* in the control channel's protection domain */
		free(l->rails[i]);
	}
	demux_free(l->demux);
	control_free(l->control);
	fabric_eq_free(l->eq);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->events_lock);
	free(l);
}

bool link_takes_time(const struct link *l)
{
	bool any = fabric_chan_caps(control_chan(l->control))->is_device;

	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		any |= l->rails[i] != NULL;
	return any;
}

struct control *link_control(const struct link *l)
{
	return l->control;
}

struct demux *link_demux(const struct link *l)
{
	return l->demux;
}

struct rail *link_rail(const struct link *l, unsigned transfer)
{
	return l->rails[transfer];
}

/* The rail of a transfer whose channels are about to be opened. */
int link_make_rail(struct link *l, unsigned transfer)
{
	struct rail *rail;

	if (l->rails[transfer])
		return 0;
	rail = malloc(sizeof *rail);
	if (!rail)
		return -ENOMEM;
	rail_init(rail, control_pd(l->control), fabric_chan_caps(control_chan(l->control)));
	pthread_mutex_lock(&l->lock);
	l->rails[transfer] = rail;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

bool link_was_called(const struct link *l)
{
	return !l->eq;
}

const char *link_fabric_name(const struct link *l)
{
	return fabric_chan_name(control_chan(l->control));
}

uint32_t link_max_depth(const struct link *l)
{
	return rail_max_depth(fabric_chan_caps(control_chan(l->control)));
}

unsigned link_suggest_channels(const struct link *l, uint64_t rtt_ns)
{
	const struct fabric_caps *caps = fabric_chan_caps(control_chan(l->control));
	uint16_t most = caps->max_channels && caps->max_channels < MESSAGE_CHANNELS_MAX
				? (uint16_t)caps->max_channels
				: MESSAGE_CHANNELS_MAX;

	return channel_count_choose(worker_cpus(), rtt_ns, !caps->write_delivered, most);
}

unsigned link_channel_count(const struct link *l, unsigned transfer)
{
	return l->rails[transfer] ? rail_channels(l->rails[transfer]) : 0;
}

bool link_has_channels(const struct link *l, unsigned transfer)
{
	return l->rails[transfer] && l->rails[transfer]->cq;
}

void link_close_channels(struct link *l, unsigned transfer)
{
	struct channel *channels[MESSAGE_CHANNELS_MAX];
	struct rail *rail = l->rails[transfer];
	struct tokens *tokens;
	unsigned count;

	if (!rail)
		return;
	pthread_mutex_lock(&l->lock);
	count = rail_take(rail, channels);
	l->openings[transfer] = (struct opening){0};
	tokens = l->tokens[transfer];
	l->tokens[transfer] = NULL;
	pthread_mutex_unlock(&l->lock);
	free(tokens);
	rail_close(rail, channels, count);
}

bool link_channel_event(struct link *l, const struct fabric_event *ev, unsigned *transfer)
{
	struct channel *channel = NULL;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX && !channel; i++) {
		channel = l->rails[i] ? rail_find(l->rails[i], ev->chan) : NULL;
		*transfer = i;
	}
	if (channel && ev->type != FABRIC_EVENT_CONNECTED)
		channel->dead = true;
	pthread_mutex_unlock(&l->lock);
	return channel;
}

/* ---- daemon ---- */

int link_accept(struct fabric_chan *chan, const struct message_greeting *greeting,
	const struct tls_context *tls, struct link **out)
{
	struct link *l;
	int err;

	assert(tls);
	err = link_new(chan, tls, NULL, &l);
	if (err)
		return err;
	control_start(l->control, greeting->credits);
	err = greeting_welcome(chan, PIPE_CREDITS, NULL);
	if (err) {
		link_free(l);
		return err;
	}
	*out = l;
	return 0;
}

/* Made here, in the session's thread: TLS is not asked when the channels come. */
static int make_tokens(struct link *l, unsigned transfer, uint32_t session, unsigned count,
	const uint8_t nonce[MESSAGE_TOKEN_BYTES])
{
	struct message_token_context context = {.session = session};
	struct tokens *tokens = calloc(count, sizeof *tokens);
	int err = tokens ? 0 : -ENOMEM;

	memcpy(context.nonce, nonce, sizeof context.nonce);
	for (unsigned i = 0; i < count && !err; i++) {
		context.index = (uint16_t)(transfer * MESSAGE_CHANNELS_MAX + i);
		context.direction = MESSAGE_TOKEN_GREETING;
		err = greeting_token(l->demux, &context, tokens[i].greeting);
		context.direction = MESSAGE_TOKEN_WELCOME;
		if (!err)
			err = greeting_token(l->demux, &context, tokens[i].welcome);
	}
	if (err) {
		free(tokens);
		return err;
	}
	pthread_mutex_lock(&l->lock);
	l->tokens[transfer] = tokens;
	l->rails[transfer]->channel_count = count;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* One for the session, whichever of its transfers asks first. */
static void name_area(struct link *l, struct rail *rail, struct message_channels_reply *reply)
{
	for (unsigned i = 0; i < MESSAGE_TRANSFERS_MAX; i++)
		if (l->rails[i] && atomic_load(&l->rails[i]->area.made))
			return;
	if (!area_make(&rail->area, rail->pd, l->areas, MESSAGE_AREA_MAX))
		return;
	reply->area_bytes = (uint32_t)rail->area.arena.bytes;
	reply->area_key = fabric_mr_key(rail->area.mr);
	reply->area_base = fabric_mr_base(rail->area.mr);
}

void link_set_areas(struct link *l, struct area_budget *areas)
{
	l->areas = areas;
}

int link_expect_channels(struct link *l, unsigned transfer, uint32_t session, unsigned count,
	struct message_channels_reply *reply)
{
	int err;

	assert(count && count <= MESSAGE_CHANNELS_MAX && transfer < MESSAGE_TRANSFERS_MAX);
	link_close_channels(l, transfer);
	*reply = (struct message_channels_reply){
		.count = (uint16_t)count, .first = (uint16_t)(transfer * MESSAGE_CHANNELS_MAX)};
	if (getrandom(reply->nonce, sizeof reply->nonce, 0) != sizeof reply->nonce)
		return -EIO;
	err = link_make_rail(l, transfer);
	if (!err)
		err = rail_expect(l->rails[transfer], count);
	if (!err)
		name_area(l, l->rails[transfer], reply);
	return err ? err : make_tokens(l, transfer, session, count, reply->nonce);
}

static int accept_channel(
	struct rail *rail, struct fabric_chan *chan, unsigned i, const struct tokens *tokens)
{
	struct channel *channel;
	int err = rail_add(rail, chan, i, &channel);

	if (err)
		return err;
	err = channel_expect_greeting(channel, rail_early(rail));
	if (!err)
		err = greeting_welcome(chan, 0, tokens->welcome);
	if (err) {
		channel_free(channel);
		rail->channels[i] = NULL;
	}
	return err;
}

unsigned link_transfer_of(const struct message_greeting *greeting)
{
	return greeting->index / MESSAGE_CHANNELS_MAX;
}

int link_accept_channel(
	struct link *l, struct fabric_chan *chan, const struct message_greeting *greeting)
{
	unsigned transfer = link_transfer_of(greeting), i = greeting->index % MESSAGE_CHANNELS_MAX;
	const char *refused = NULL;
	struct rail *rail;
	int err = -EACCES;

	pthread_mutex_lock(&l->lock);
	rail = transfer < MESSAGE_TRANSFERS_MAX ? l->rails[transfer] : NULL;
	if (!rail || i >= rail->channel_count || rail->channels[i])
		refused = "not expected";
	else if (!greeting_token_equal(greeting->token, l->tokens[transfer][i].greeting))
		refused = "wrong token";
	else /* which has freed it when it fails, for any reason */
		err = accept_channel(rail, chan, i, &l->tokens[transfer][i]);
	pthread_mutex_unlock(&l->lock);
	if (refused) {
		log_warning("data channel %u of transfer %u refused: %s", i, transfer, refused);
		greeting_refuse(chan, STATUS_REFUSED);
	}
	return err;
}
