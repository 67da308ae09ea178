/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_journal: what a transfer that was cut off left behind, and anything else that bears its
 * name.
 *
 * Input: records, each without its checksum, which is made here: the length is cut to what there
 * is. Property: what is read is written to the same bytes; with a checksum that is wrong nothing is
 * read.
 */
#include "block/digest.h"
#include "tests/fuzz/fuzz.h"
#include "tree/journal_record.h"

#include <errno.h>
#include <string.h>

static void again(const struct journal_record *r, const uint8_t *record, size_t length)
{
	static struct journal_block blocks[JOURNAL_BLOCKS_MAX];
	static uint8_t out[JOURNAL_RECORD_MAX];
	ssize_t n;

	for (unsigned i = 0; i < r->count; i++)
		blocks[i] = journal_record_block(r, i);
	n = r->type == JOURNAL_TREE ? journal_record_put_tree(r->name, out, sizeof(out))
	    : r->type == JOURNAL_FILE
		    ? journal_record_put_file(&r->file, out, sizeof(out))
		    : journal_record_put_blocks(blocks, r->count, out, sizeof(out));
	must(n == (ssize_t)length && !memcmp(out, record, length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t record[JOURNAL_RECORD_MAX];
	struct journal_record r;

	must(journal_record_get(&r, data, size) <= (ssize_t)size);
	while (size >= JOURNAL_RECORD_HEADER) {
		size_t length = ((size_t)data[2] << 8 | data[3]) + JOURNAL_RECORD_HEADER;
		uint64_t sum;
		ssize_t n;

		length = length < size ? length : size;
		memcpy(record, data, length);
		record[0] = record[1] = 0;
		record[2] = (uint8_t)((length - JOURNAL_RECORD_HEADER) >> 8);
		record[3] = (uint8_t)(length - JOURNAL_RECORD_HEADER);
		sum = digest_leaf(record, length);
		for (int i = 0; i < 8; i++)
			record[length + (size_t)i] = (uint8_t)(sum >> (56 - 8 * i));
		n = journal_record_get(&r, record, length + 8);
		must(n == -EBADMSG || n == (ssize_t)length + 8);
		if (n > 0)
			again(&r, record, (size_t)n);
		record[length] ^= 1;
		must(!journal_record_get(&r, record, length + 8));
		data += length;
		size -= length;
	}
	return 0;
}
