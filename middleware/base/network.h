/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/network: a network as people write it: "192.0.2.0/24", "2001:db8::/32", or one address.
 */
#ifndef BASE_NETWORK_H
#define BASE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct network {
	uint8_t address[16]; /* IPv4 as IPv6 maps it */
	uint8_t bits;        /* of it that count, 0..128 */
};

/* The first `len` bytes of the text.  0 or -EINVAL: neither an address nor a network, or one with
 * bits set behind those that count. */
int network_parse(const char *text, size_t len, struct network *out);
/* Whether it has the address.  IPv4 in IPv6 is IPv4. */
bool network_has(const struct network *, const struct sockaddr *);

#endif
