/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/addr: owns nothing; text and socket addresses.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int addr_errno(int gai, bool numeric)
{
	switch (gai) {
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno == ENOMEM ? -ENOMEM : -EAGAIN;
	default:
		return numeric ? -EINVAL : -ENOENT;
	}
}

int addr_resolve(
	const char *host, uint16_t port, bool numeric, struct addr *out, size_t max, size_t *count)
{
	struct addrinfo hints = {0}, *list = NULL;
	char service[8];
	size_t n = 0;
	int gai;

	*count = 0;
	if (host && !*host)
		host = NULL;
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM; /* or each address would come once per socket type */
	hints.ai_flags = AI_NUMERICSERV | (host ? 0 : AI_PASSIVE) | (numeric ? AI_NUMERICHOST : 0);
	snprintf(service, sizeof service, "%u", port);

	gai = getaddrinfo(host, service, &hints, &list);
	if (gai)
		return addr_errno(gai, numeric);
	for (const struct addrinfo *ai = list; ai && n < max; ai = ai->ai_next) {
		if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) ||
			ai->ai_addrlen > sizeof out[n].ss)
			continue;
		memset(&out[n], 0, sizeof out[n]);
		memcpy(&out[n].ss, ai->ai_addr, ai->ai_addrlen);
		out[n].len = ai->ai_addrlen;
		n++;
	}
	freeaddrinfo(list);
	*count = n;
	return n || !max ? 0 : -ENOENT;
}

/* Decimal digits only, to the end of the text. */
static int addr_split_port(const char *text, uint16_t *port)
{
	unsigned value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(*text - '0');
		if (value > UINT16_MAX)
			return -EINVAL;
	}
	*port = (uint16_t)value;
	return 0;
}

/* "::1" or, with a zone, "fe80::1%eth0" */
static bool addr_is_v6_text(const char *text)
{
	struct in6_addr ignored;
	char copy[INET6_ADDRSTRLEN];
	size_t n = strcspn(text, "%");

	if (n >= sizeof copy || (text[n] == '%' && !text[n + 1]))
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return inet_pton(AF_INET6, copy, &ignored) == 1;
}

int addr_split(
	const char *text, char *host, size_t host_size, uint16_t default_port, uint16_t *port)
{
	bool bracket = *text == '[';
	const char *start = text + bracket, *end;
	size_t n;

	if (!*text)
		return -EINVAL;
	end = start + strcspn(start, bracket ? "]" : ":");
	if (bracket && !*end)
		return -EINVAL;
	n = (size_t)(end - start);
	if (n >= host_size)
		return -ENAMETOOLONG;
	memcpy(host, start, n);
	host[n] = '\0';
	if (bracket) {
		if (!addr_is_v6_text(host))
			return -EINVAL;
		end++;
	}
	*port = default_port;
	if (!*end)
		return 0;
	/* the second colon of a bare IPv6 address ends up in the port, and is no digit */
	return *end == ':' ? addr_split_port(end + 1, port) : -EINVAL;
}

void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_MAX])
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip);
		snprintf(out, ADDR_TEXT_MAX, "%s:%u", ip, addr_port(sa));
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)sa;
		char zone[12] = "";

		inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof ip);
		if (in6->sin6_scope_id)
			snprintf(zone, sizeof zone, "%%%u", (unsigned)in6->sin6_scope_id);
		snprintf(out, ADDR_TEXT_MAX, "[%s%s]:%u", ip, zone, addr_port(sa));
	} else {
		snprintf(out, ADDR_TEXT_MAX, "(address family %u)", sa->sa_family);
	}
}

uint16_t addr_port(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
	if (sa->sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)(const void *)sa)->sin6_port);
	return 0;
}

void addr_set_port(struct sockaddr *sa, uint16_t port)
{
	if (sa->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)sa)->sin_port = htons(port);
	else if (sa->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)sa)->sin6_port = htons(port);
}

bool addr_host(const struct sockaddr *sa, uint8_t out[ADDR_HOST_BYTES])
{
	struct in6_addr in6;

	memset(out, 0, ADDR_HOST_BYTES);
	if (sa->sa_family == AF_INET) {
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	in6 = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	memcpy(out, &in6, IN6_IS_ADDR_V4MAPPED(&in6) ? ADDR_HOST_BYTES : 8);
	return true;
}

uint64_t addr_host_hash(const uint8_t host[ADDR_HOST_BYTES], uint64_t seed)
{
	uint64_t h = seed, word;

	for (unsigned i = 0; i < ADDR_HOST_BYTES; i += sizeof word) {
		memcpy(&word, host + i, sizeof word);
		/* splitmix64: every bit of it tells */
		h = ((h ^ word) ^ ((h ^ word) >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
		h ^= h >> 31;
	}
	return h;
}

bool addr_is_loopback(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	if (sa->sa_family == AF_INET6) {
		const struct in6_addr *ip =
			&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(ip) ||
		       (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
	}
	return false;
}

int addr_is_local(const struct sockaddr *sa)
{
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), err = 0;
	struct sockaddr_storage ss = {0};
	socklen_t len = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						  : sizeof(struct sockaddr_in);

	if (fd < 0)
		return -errno;
	memcpy(&ss, sa, len);
	addr_set_port((struct sockaddr *)&ss, 0);
	if (bind(fd, (struct sockaddr *)&ss, len))
		err = -errno;
	close(fd);
	return err;
}
