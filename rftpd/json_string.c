/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/json_string: see json_string.h.
 */
#include "rftpd/json_string.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

void json_string_put(const char *text, FILE *out)
{
	size_t n, bytes;
	uint32_t code;

	fputc('"', out);
	for (n = strlen(text); n; text += bytes, n -= bytes) {
		bytes = utf8_decode(text, n, &code);
		if (!bytes) {
			fprintf(out, "\\udc%02x", (unsigned char)*text);
			bytes = 1;
		} else if (utf8_is_control(code)) {
			fprintf(out, "\\u%04x", (unsigned)code);
		} else {
			if (*text == '"' || *text == '\\')
				fputc('\\', out);
			fwrite(text, 1, bytes, out);
		}
	}
	fputc('"', out);
}
