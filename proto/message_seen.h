/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/message_seen: what a file was when it was looked at, told to who is to change it while it
 * still is that.
 */
#ifndef PROTO_MESSAGE_SEEN_H
#define PROTO_MESSAGE_SEEN_H

#include <stdint.h>

struct message_seen {
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns; /* < 1e9 */
	uint64_t change;   /* another number when anything was done to it since; 0: not known */
};

#endif
