/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/json_string: any bytes as a JSON string that no terminal takes for a command.
 */
#ifndef RFTPD_JSON_STRING_H
#define RFTPD_JSON_STRING_H

#include <stdio.h>

/* With its quotes.  Control characters are escaped, also those of ISO 8859; a byte 0xNN that is no
 * UTF-8 becomes the lone surrogate \udcNN, as in what rftp --json says. */
void json_string_put(const char *text, FILE *);

#endif
