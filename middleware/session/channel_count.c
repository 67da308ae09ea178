/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/channel_count: see the header.
 */
#include "session/channel_count.h"

#define CPU_CHANNELS 4u
#define WAN_CHANNELS 16u
#define WAN_BYTES_PER_S 2500000000ull /* 20 Gb/s */
#define CHANNEL_WINDOW (4ull << 20)   /* Linux's default for the largest send buffer (tcp_wmem) */

static uint64_t at_least(uint64_t value, uint64_t low)
{
	return value < low ? low : value;
}

static uint64_t at_most(uint64_t value, uint64_t high)
{
	return value > high ? high : value;
}

uint16_t channel_count_choose(unsigned cpus, uint64_t rtt_ns, bool over_tcp, uint16_t max)
{
	/* over TCP more channels than CPUs to serve them only add switching; an adapter serves
	 * itself */
	uint64_t channels = over_tcp ? at_most(cpus, CPU_CHANNELS) : CPU_CHANNELS;
	uint64_t in_flight = rtt_ns * (WAN_BYTES_PER_S / 1000000) / 1000;

	/* on a long way each carries no more in a round trip than it may have unacknowledged: a TCP
	 * connection its socket's buffer, a queue pair so many packets (on rxe 128) */
	channels = at_least(
		channels, at_most((in_flight + CHANNEL_WINDOW - 1) / CHANNEL_WINDOW, WAN_CHANNELS));
	return (uint16_t)at_most(at_least(channels, 1), max);
}
