/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/exit_code: how the program ends, by the class of what went wrong.  The numbers are
 * documented in rftp(1) and do not change.
 */
#ifndef RFTP_EXIT_CODE_H
#define RFTP_EXIT_CODE_H

#include "proto/status.h"

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_OTHER = 1, /* errors of different classes, or of none below */
	EXIT_CODE_USAGE = 2,
	EXIT_CODE_CONNECT = 3, /* cannot resolve or connect */
	EXIT_CODE_LOST = 4,    /* connection lost, or the peer no longer answers */
	EXIT_CODE_PROTOCOL = 5,
	EXIT_CODE_NOT_FOUND = 6,
	EXIT_CODE_DENIED = 7, /* permission, read-only, outside the export */
	EXIT_CODE_NO_SPACE = 8,
	EXIT_CODE_INTEGRITY = 9,  /* checksum, digest, missing ranges */
	EXIT_CODE_KIND = 10,      /* exists, wrong kind of file, not empty, bad name */
	EXIT_CODE_CHANGED = 11,   /* the source changed while it was read */
	EXIT_CODE_REFUSED = 12,   /* refused by the peer, or over one of its limits */
	EXIT_CODE_IO = 13,        /* input/output error, out of memory */
	EXIT_CODE_UNTRUSTED = 14, /* the server's key is not known, or has changed */
	EXIT_CODE_INTERRUPTED = 130,
};

enum exit_code exit_code_from_status(uint16_t status);
/* Of two errors: their class when it is one, else EXIT_CODE_OTHER; an interrupt outweighs all. */
enum exit_code exit_code_join(enum exit_code, enum exit_code);

#endif
