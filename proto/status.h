/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/status: reply codes <-> errno <-> text, in one table.
 *
 * A status is what crosses the wire in the response field of a frame (16 bits).  0 is success.  The
 * numbers are part of the protocol and never change their meaning.
 */
#ifndef PROTO_STATUS_H
#define PROTO_STATUS_H

#include <stdint.h>

enum status {
	STATUS_OK = 0,
	/* the request, 1xx */
	STATUS_PROTOCOL = 100,    /* malformed, or not allowed in this state: the session ends */
	STATUS_VERSION = 101,     /* no common version */
	STATUS_UNSUPPORTED = 102, /* a request, engine or option that this side does not have */
	STATUS_INVALID = 103,     /* an argument is out of range */
	STATUS_LIMIT = 104,       /* over a limit of this side: sessions, channels, memory */
	STATUS_REFUSED = 105,     /* policy: token, address */
	STATUS_TIMEOUT = 106,
	STATUS_SHUTDOWN = 107,     /* the daemon is ending */
	STATUS_CANCELLED = 108,    /* the user stopped the transfer */
	STATUS_DISCONNECTED = 109, /* the session broke (local only) */
	STATUS_LOGIN = 110,        /* not logged in: what was shown is not taken */
	/* names and files, 2xx */
	STATUS_NOT_FOUND = 200,
	STATUS_DENIED = 201,    /* permission */
	STATUS_READ_ONLY = 202, /* export or file system */
	STATUS_EXISTS = 203,
	STATUS_IS_DIRECTORY = 204,
	STATUS_NOT_DIRECTORY = 205,
	STATUS_NOT_EMPTY = 206,
	STATUS_NAME = 207,        /* a name that is not allowed: empty, NUL, too long */
	STATUS_OUTSIDE = 208,     /* leaves the export, by .. or by a symbolic link */
	STATUS_NOT_REGULAR = 209, /* device, socket, FIFO */
	STATUS_BUSY = 210,
	STATUS_CROSS_DEVICE = 211,
	STATUS_LOOP = 212,  /* too many symbolic links */
	STATUS_THERE = 213, /* the file is there, from a transfer that this one goes on with */
	/* data, 3xx */
	STATUS_NO_SPACE = 300, /* disk full or quota */
	STATUS_IO = 301,
	STATUS_TOO_LARGE = 302,
	STATUS_CHANGED = 303,    /* the source file changed while it was read */
	STATUS_CHECKSUM = 304,   /* a block's checksum is wrong */
	STATUS_DIGEST = 305,     /* the file's digest is wrong */
	STATUS_INCOMPLETE = 306, /* ranges are missing or overlap */
	STATUS_NO_MEMORY = 307,
	STATUS_UNSYNCED = 308, /* a file has its name, but may lose it when the host crashes */
	STATUS_OTHER = 399,    /* an errno without a row here */
};

/* Text for people, "no such file or directory"; never NULL. */
const char *status_text(uint16_t status);
/* Name for scripts and logs, "not-found"; "unknown" for a number without a row. */
const char *status_name(uint16_t status);
/* errno (positive or negative) -> status; STATUS_OTHER when there is no row. */
uint16_t status_from_errno(int error);
/* status -> negative errno; -EPROTO for an unknown number; 0 for STATUS_OK.  Every status with a
 * row maps to an errno of its own, so that status_from_errno(status_to_errno(s)) == s. */
int status_to_errno(uint16_t status);

#endif
