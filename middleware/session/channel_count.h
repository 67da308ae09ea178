/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/channel_count: how many data channels a session should open.  Pure.
 */
#ifndef SESSION_CHANNEL_COUNT_H
#define SESSION_CHANNEL_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Data channels worth opening: by the round trip (0: not known), and over TCP by CPUs; at most
 * `max`. */
uint16_t channel_count_choose(unsigned cpus, uint64_t rtt_ns, bool over_tcp, uint16_t max);

#endif
