/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/rail: see rail.h.
 */
#include "session/rail.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

void rail_init(struct rail *rail, struct fabric_pd *pd, const struct fabric_caps *caps)
{
	*rail = (struct rail){.pd = pd, .caps = caps};
}

void rail_fini(struct rail *rail)
{
	memory_free(&rail->memory);
}

uint32_t rail_max_depth(const struct fabric_caps *caps)
{
	uint32_t most = caps->max_depth / 2;

	return most <= RAIL_DEPTH ? most - 1 : RAIL_DEPTH;
}

int rail_expect(struct rail *rail, unsigned count)
{
	return fabric_cq_new(
		rail->pd, count * channel_completions(rail_max_depth(rail->caps)), &rail->cq);
}

int rail_add(struct rail *rail, struct fabric_chan *chan, unsigned number, struct channel **out)
{
	int err = channel_new(chan, rail->pd, rail->cq, number, rail_max_depth(rail->caps),
		&rail->channels[number]);

	if (err)
		return err;
	if (rail->channel_count <= number)
		rail->channel_count = number + 1;
	*out = rail->channels[number];
	return 0;
}

struct channel *rail_find(const struct rail *rail, const struct fabric_chan *chan)
{
	for (unsigned i = 0; i < rail->channel_count; i++)
		if (rail->channels[i] && rail->channels[i]->chan == chan)
			return rail->channels[i];
	return NULL;
}

unsigned rail_channels(const struct rail *rail)
{
	unsigned n = 0;

	/* Accepted is enough: the peer may have heard CONNECTED, and ask for a transfer, before our
	 * event loop has.  Who sends waits for the greeting first (rail_wait_greeted). */
	while (n < rail->channel_count && rail->channels[n] && !rail->channels[n]->dead)
		n++;
	return n;
}

bool rail_broke(const struct rail *rail, unsigned number)
{
	return number < rail->channel_count && rail->channels[number] &&
	       rail->channels[number]->dead;
}

unsigned rail_take(struct rail *rail, struct channel *channels[MESSAGE_CHANNELS_MAX])
{
	unsigned count = rail->channel_count;

	memcpy(channels, rail->channels, count * sizeof *channels);
	memset(rail->channels, 0, sizeof rail->channels);
	rail->channel_count = 0;
	return count;
}

void rail_close(struct rail *rail, struct channel *const *channels, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		channel_free(channels[i]);
	fabric_cq_free(rail->cq);
	rail->cq = NULL;
	area_free(&rail->area);
	rail->remote_area = (struct rail_area){0};
}

unsigned rail_early(const struct rail *rail)
{
	return rail->area.mr ? TRANSFER_EARLY_MAX : 0;
}

/* Takes one completion in, or sleeps until there may be one.  0 or -errno. */
static int await_completion(struct rail *rail, uint64_t deadline, int cancel_fd)
{
	struct pollfd fds[2] = {{fabric_cq_fd(rail->cq), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
	struct verdict why = {0};
	struct fabric_wc wc;
	uint32_t sent;
	int got = fabric_cq_arm(rail->cq);

	if (!got)
		got = fabric_cq_poll(rail->cq, &wc, 1);
	if (got > 0 && channel_completion(&wc, &sent, &why) < 0) {
		log_error("%s", why.text);
		return -ECONNRESET;
	}
	if (got)
		return got < 0 ? got : 0;
	got = poll(fds, 2, clock_until_ms(deadline));
	if (fds[1].revents)
		return -ECANCELED;
	if (!got)
		return -ETIMEDOUT;
	return got < 0 && errno != EINTR ? -errno : 0;
}

int rail_wait_greeted(struct rail *rail, unsigned count, int timeout_ms, int cancel_fd)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int err = 0;

	for (unsigned i = 0; i < count && !err; i++)
		while (!rail->channels[i]->greeted && !err)
			err = await_completion(rail, deadline, cancel_fd);
	return err;
}
