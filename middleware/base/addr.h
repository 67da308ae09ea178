/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/addr: "HOST:PORT" text <-> socket addresses, IPv4 and IPv6 ("[::1]:7387").
 */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_DEFAULT_PORT 7387 /* the letters r-f-t-p on a telephone's keys */
#define ADDR_TEXT_MAX 64       /* room for any formatted address, with its NUL */

struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

/*
 * Resolves host and port.  `host` NULL or "" gives the wildcard address (for listening).  Blocks on
 * DNS unless `numeric`.  Writes up to `max` addresses in the resolver's order, count to *count.
 * 0; -EINVAL (numeric asked for, and not an address); -ENOENT (no such host); -EAGAIN (name service
 * is down for now); -ENOMEM.
 */
int addr_resolve(
	const char *host, uint16_t port, bool numeric, struct addr *out, size_t max, size_t *count);

/*
 * Splits "HOST", "HOST:PORT", "[V6]", "[V6]:PORT", ":PORT" in place: writes a NUL-terminated host
 * into `host` and the port (default_port when absent) into *port.  A bare IPv6 address without
 * brackets is -EINVAL, as is a port outside 0..65535 or trailing text; -ENAMETOOLONG when the host
 * does not fit.
 */
int addr_split(
	const char *text, char *host, size_t host_size, uint16_t default_port, uint16_t *port);

/* "127.0.0.1:7387" or "[::1]:7387"; always terminated. */
void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_MAX]);

uint16_t addr_port(const struct sockaddr *sa);
void addr_set_port(struct sockaddr *sa, uint16_t port);
/* The same bytes for addresses of one host, as far as an address tells: the port does not count, of
 * IPv6 neither what a host chooses itself (all behind the first 64 bits); IPv4 in IPv6 is IPv4.
 * false: it is of no such family. */
#define ADDR_HOST_BYTES 16u
bool addr_host(const struct sockaddr *, uint8_t out[ADDR_HOST_BYTES]);
/* Spreads hosts over a table; with a seed that nobody knows, nobody chooses their places. */
uint64_t addr_host_hash(const uint8_t host[ADDR_HOST_BYTES], uint64_t seed);
/* Whether a socket of this host may have the address, whatever the port: takes a free one for a
 * moment.  0 or -errno; -EADDRNOTAVAIL: it is not this host's. */
int addr_is_local(const struct sockaddr *);
bool addr_is_loopback(const struct sockaddr *sa); /* 127/8, ::1, ::ffff:127/104 */

#endif
