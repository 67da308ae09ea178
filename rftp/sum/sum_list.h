/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sum_list: a line of sha256sum(1) and its like: the sum in hexadecimal, a blank, a blank
 * or
 * "*", and the name; or, as BSD has it (--tag), which sum it is, the name in round brackets, and
 * the sum behind "=".  A name with a backslash or an end of line in it has them escaped, and then
 * the line begins with a backslash.
 */
#ifndef RFTP_SUM_LIST_H
#define RFTP_SUM_LIST_H

#include "rftp/ui/text.h"
#include "tree/sum.h"

void sum_list_hex(struct text *, const uint8_t *sum, unsigned bytes);
struct sum_list_sum {
	uint8_t algorithm; /* enum message_sum_algorithm */
	bool tag;          /* as BSD has it */
	const uint8_t *sum;
};
void sum_list_write(struct text *, const struct sum_list_sum *, const char *name);

struct sum_list_line {
	uint8_t sum[SUM_BYTES_MAX];
	unsigned bytes;
	uint8_t algorithm; /* that the line says; 0: it does not */
	char *name;        /* the caller frees it */
};
/* A line without its end.  0; -EBADMSG: it is none; -ENOMEM. */
int sum_list_parse(const char *line, struct sum_list_line *out);

#endif
