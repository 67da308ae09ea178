/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/escape: bytes from elsewhere, made fit for a terminal, for the shell's own lexer, for
 * JSON.
 *
 * File names and a peer's texts are any bytes.  A terminal must not obey them, and a JSON reader
 * must get valid UTF-8 and still be able to tell the bytes.
 */
#ifndef RFTP_ESCAPE_H
#define RFTP_ESCAPE_H

#include "rftp/ui/text.h"

/* Whether all of it is well-formed UTF-8 without control characters. */
bool escape_printable(const char *s, size_t n);

/* For messages: control characters and bytes that are no UTF-8 as \n, \t, \r or \xNN. */
void escape_display(struct text *, const char *s, size_t n);
/* A word that rftp's shell (rftp/shell/lexer) reads back as these bytes: as it is, '...' or $'...'.
 */
void escape_shell(struct text *, const char *s, size_t n);
/* What goes between the quotes of $'...'. */
void escape_dollar(struct text *, const char *s, size_t n);
/* A JSON string with its quotes.  A byte 0xNN that is no UTF-8 becomes the lone surrogate \udcNN,
 * as Python's "surrogateescape" does, so the bytes can be had back. */
void escape_json(struct text *, const char *s, size_t n);

/* Columns on a terminal of what escape_display or escape_shell wrote. */
size_t escape_columns(const char *s, size_t n);

#endif
