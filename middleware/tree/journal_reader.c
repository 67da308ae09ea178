/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/journal_reader: see journal_reader.h.
 */
#include "tree/journal_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int journal_reader_init(struct journal_reader *r, int fd)
{
	*r = (struct journal_reader){.fd = fd, .buffer = malloc(JOURNAL_RECORD_MAX)};
	return r->buffer ? 0 : -ENOMEM;
}

void journal_reader_fini(struct journal_reader *r)
{
	free(r->buffer);
	r->buffer = NULL;
}

int journal_reader_next(struct journal_reader *r, struct journal_record *record)
{
	ssize_t length = journal_record_get(record, r->buffer + r->from, r->to - r->from);

	if (!length) { /* it may end behind the buffer */
		ssize_t n = pread(r->fd, r->buffer, JOURNAL_RECORD_MAX, r->at);

		if (n <= 0)
			return n ? -errno : 0;
		r->from = 0;
		r->to = (size_t)n;
		length = journal_record_get(record, r->buffer, r->to);
	}
	if (length <= 0)
		return -EBADMSG;
	r->from += (size_t)length;
	r->at += length;
	return 1;
}
