/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/utf8: which bytes are well-formed UTF-8: names and a peer's texts are any bytes.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed character at s (n >= 1 bytes are there) and its code; 0: none. */
size_t utf8_decode(const char *s, size_t n, uint32_t *code);
/* Whether it is none to be shown: a control character, or one that ends a line or turns the
 * direction of the text around it, which can forge a name. */
bool utf8_is_control(uint32_t code);

#endif
