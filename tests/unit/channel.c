/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/channel: the memory of a channel's receives: made for those that are posted, however
 * many a session could have, and each notice lands in its own.
 */
#include "../engines.h"

#define MANY (3 * CHANNEL_RECEIVES + 8)

static unsigned sets_made(struct link *l)
{
	const struct channel *channel = link_rail(l, 0)->channels[0];
	unsigned n = 0;

	for (uint32_t i = 0; i <= channel->depth / CHANNEL_RECEIVES; i++)
		n += channel->receives[i].bytes != NULL;
	return n;
}

static void only_what_is_posted_takes_memory(void)
{
	static const unsigned slots[] = {1, 8, CHANNEL_RECEIVES, CHANNEL_RECEIVES + 1, MANY};

	for (unsigned i = 0; i < sizeof slots / sizeof *slots; i++) {
		struct rig rig;

		rig_open(&rig, 1, 1, slots[i]);
		CHECK(link_rail(rig.sink.link, 0)->channels[0]->depth > MANY);
		CHECK_EQ(sets_made(rig.sink.link), 1);
		rig_open_sink(&rig, &engine_window, false);
		CHECK_EQ(sets_made(rig.sink.link),
			(slots[i] + CHANNEL_RECEIVES - 1) / CHANNEL_RECEIVES);
		CHECK_EQ(sets_made(rig.source.link), 1);
		rig_close(&rig);
	}
}

/* All at once, several times over, so that receives are used in another order than at first. */
static void each_notice_lands_in_its_own(void)
{
	struct rig rig;

	rig_open(&rig, 1, MANY, MANY);
	rig_land(&rig, NULL);
	rig_open_sink(&rig, &engine_window, false);
	rig_open_source(&rig, &engine_window, false);
	for (unsigned round = 0; round < 4; round++) {
		struct block *blocks[MANY] = {0};
		unsigned sent = 0;

		for (unsigned i = 0; i < RIG_MS * 20 && sent < MANY; i++) {
			CHECK_EQ(rig_send_to(&rig, &sent, MANY), 0);
			CHECK_EQ(rig_poll_source(&rig), 0);
			usleep(50);
		}
		CHECK_EQ(sent, MANY);
		for (unsigned i = 0; i < MANY; i++) {
			CHECK_EQ(rig_land(&rig, &blocks[i]), 0);
			CHECK(rig_holds(blocks[i], (uint8_t)i));
		}
		for (unsigned i = 0; i < MANY; i++)
			CHECK_EQ(rig_drain(&rig, blocks[(i * 7 + round) % MANY]), 0);
	}
	CHECK_EQ(sets_made(rig.sink.link), (MANY + CHANNEL_RECEIVES - 1) / CHANNEL_RECEIVES);
	rig_close(&rig);
}

HARNESS_MAIN({"only what is posted takes memory", only_what_is_posted_takes_memory},
	{"each notice lands in its own", each_notice_lands_in_its_own})
