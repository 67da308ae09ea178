/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/network: see network.h.
 *
 * IPv4 is kept as IPv6 maps it, so that both are compared alike.
 */
#include "base/network.h"

#include "base/number.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Whether all bits from the `from`-th on are 0. */
static bool is_clear(const uint8_t address[16], unsigned from)
{
	for (unsigned bit = from; bit < 128; bit++)
		if (address[bit / 8] & 0x80u >> bit % 8)
			return false;
	return true;
}

int network_parse(const char *text, size_t len, struct network *out)
{
	char host[INET6_ADDRSTRLEN + 8], *slash;
	uint64_t bits;
	unsigned width;

	if (len >= sizeof host)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	slash = strchr(host, '/');
	if (slash)
		*slash++ = '\0';
	memcpy(out->address, mapped, sizeof mapped);
	if (inet_pton(AF_INET, host, out->address + 12) == 1)
		width = 32;
	else if (inet_pton(AF_INET6, host, out->address) == 1)
		width = 128;
	else
		return -EINVAL;
	bits = width;
	if (slash && number_parse(slash, 0, width, &bits))
		return -EINVAL;
	out->bits = (uint8_t)(128 - width + bits);
	return is_clear(out->address, out->bits) ? 0 : -EINVAL;
}

bool network_has(const struct network *n, const struct sockaddr *sa)
{
	uint8_t address[16];
	unsigned whole = n->bits / 8, rest = n->bits % 8;

	if (sa->sa_family == AF_INET) {
		memcpy(address, mapped, sizeof mapped);
		memcpy(address + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	} else {
		return false;
	}
	if (memcmp(address, n->address, whole) != 0)
		return false;
	return !rest || !((address[whole] ^ n->address[whole]) & (0xff00u >> rest & 0xffu));
}
