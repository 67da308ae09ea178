/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/mode: permission bits as chmod(1) takes them: "644", "u+x,go-w", "a=rX".
 */
#ifndef RFTP_MODE_H
#define RFTP_MODE_H

#include <stdbool.h>
#include <sys/types.h>

/* 1: it is a number, *mode; 0: it is symbolic, and mode_apply says what it means for a file;
 * -EINVAL: it is neither. */
int mode_parse(const char *text, mode_t *mode);
/* What a file of mode `old` gets.  Without "u", "g", "o" or "a" in front of a sign, what is in
 * `mask` stays as it is.  `text` is one that mode_parse gave 0 for. */
mode_t mode_apply(const char *text, mode_t old, bool directory, mode_t mask);

#endif
