/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/utf8: see utf8.h.
 */
#include "base/utf8.h"

size_t utf8_decode(const char *s, size_t n, uint32_t *code)
{
	const unsigned char *u = (const unsigned char *)s;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t bytes;
	uint32_t c;

	if (u[0] < 0x80) {
		*code = u[0];
		return 1;
	}
	if (u[0] >= 0xc2 && u[0] <= 0xdf)
		bytes = 2;
	else if ((u[0] & 0xf0) == 0xe0)
		bytes = 3;
	else if (u[0] >= 0xf0 && u[0] <= 0xf4)
		bytes = 4;
	else
		return 0;
	if (bytes > n)
		return 0;
	c = u[0] & (0xffu >> (bytes + 1));
	for (size_t i = 1; i < bytes; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return bytes;
}

bool utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}
