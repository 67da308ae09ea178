/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/status.c: the one table of reply codes.
 *
 * Owns the numbers' names, texts and errnos.
 */
#include "proto/status.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>

struct status_row {
	uint16_t status;
	int error; /* status_to_errno */
	const char *name, *text;
};

/* Each row has an errno of its own, so that status_from_errno gives the row back. */
static const struct status_row status_rows[] = {
	{STATUS_OK, 0, "ok", "success"},

	{STATUS_PROTOCOL, EPROTO, "protocol", "malformed message, or not allowed now"},
	{STATUS_VERSION, EPROTONOSUPPORT, "version", "no common version of the protocol"},
	{STATUS_UNSUPPORTED, EOPNOTSUPP, "unsupported", "not supported by this side"},
	{STATUS_INVALID, EINVAL, "invalid", "argument out of range"},
	{STATUS_LIMIT, EUSERS, "limit", "over a limit of this side"},
	{STATUS_REFUSED, ECONNREFUSED, "refused", "refused"},
	{STATUS_TIMEOUT, ETIMEDOUT, "timeout", "timed out"},
	{STATUS_SHUTDOWN, ESHUTDOWN, "shutdown", "ended by the server"},
	{STATUS_CANCELLED, ECANCELED, "cancelled", "cancelled"},
	{STATUS_DISCONNECTED, ECONNRESET, "disconnected", "connection lost"},
	{STATUS_LOGIN, ENOKEY, "login", "the login is refused"},

	{STATUS_NOT_FOUND, ENOENT, "not-found", "no such file or directory"},
	{STATUS_DENIED, EACCES, "denied", "permission denied"},
	{STATUS_READ_ONLY, EROFS, "read-only", "read-only"},
	{STATUS_EXISTS, EEXIST, "exists", "exists already"},
	{STATUS_IS_DIRECTORY, EISDIR, "is-directory", "is a directory"},
	{STATUS_NOT_DIRECTORY, ENOTDIR, "not-directory", "not a directory"},
	{STATUS_NOT_EMPTY, ENOTEMPTY, "not-empty", "directory not empty"},
	{STATUS_NAME, ENAMETOOLONG, "name", "name is empty, too long or not allowed"},
	/* openat2 says EXDEV when a path leaves its root; a rename's EXDEV is told apart as EREMOTE
	 */
	{STATUS_OUTSIDE, EXDEV, "outside", "leads outside of the exported or copied directory"},
	{STATUS_NOT_REGULAR, ENXIO, "not-regular", "not a regular file"},
	{STATUS_BUSY, EBUSY, "busy", "in use"},
	{STATUS_CROSS_DEVICE, EREMOTE, "cross-device", "on another file system"},
	{STATUS_LOOP, ELOOP, "loop", "symbolic links in a circle, or too many of them"},

	{STATUS_THERE, EALREADY, "there", "is there already, from the transfer that was cut off"},
	{STATUS_NO_SPACE, ENOSPC, "no-space", "no space left, or over quota"},
	{STATUS_IO, EIO, "io", "input/output error"},
	{STATUS_TOO_LARGE, EFBIG, "too-large", "too large"},
	{STATUS_CHANGED, ESTALE, "changed", "the source file changed while it was read"},
	{STATUS_CHECKSUM, EILSEQ, "checksum", "a block's checksum is wrong"},
	{STATUS_DIGEST, EUCLEAN, "digest", "the file's digest is wrong"},
	{STATUS_INCOMPLETE, ENODATA, "incomplete", "parts of the file are missing or overlap"},
	{STATUS_NO_MEMORY, ENOMEM, "no-memory", "out of memory"},
	{STATUS_UNSYNCED, ENOTRECOVERABLE, "unsynced",
		"it is in its place, but a crash of the host may undo that"},
	{STATUS_OTHER, EREMOTEIO, "other", "some other error"},
};

/* Further errnos that mean a status; none of them stands in the table above. */
static const struct {
	int error;
	uint16_t status;
} status_aliases[] = {
	{EBADMSG, STATUS_PROTOCOL},
	{EMSGSIZE, STATUS_PROTOCOL},
	{ENOSYS, STATUS_UNSUPPORTED},
	{EAFNOSUPPORT, STATUS_UNSUPPORTED},
	{ERANGE, STATUS_INVALID},
	{EDOM, STATUS_INVALID},
	{EMFILE, STATUS_LIMIT},
	{ENFILE, STATUS_LIMIT},
	{EMLINK, STATUS_LIMIT},
	{EKEYREJECTED, STATUS_REFUSED},
	{ETIME, STATUS_TIMEOUT},
	{EPIPE, STATUS_DISCONNECTED},
	{ENOTCONN, STATUS_DISCONNECTED},
	{ECONNABORTED, STATUS_DISCONNECTED},
	{EPERM, STATUS_DENIED},
	{ESPIPE, STATUS_NOT_REGULAR},
	{ETXTBSY, STATUS_BUSY},
	{EAGAIN, STATUS_BUSY},
	{EDQUOT, STATUS_NO_SPACE},
	{EOVERFLOW, STATUS_TOO_LARGE},
	{ENOBUFS, STATUS_NO_MEMORY},
	{EBADF, STATUS_IO},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct status_row *status_find(uint16_t status)
{
	for (size_t i = 0; i < COUNT(status_rows); i++)
		if (status_rows[i].status == status)
			return &status_rows[i];
	return NULL;
}

const char *status_text(uint16_t status)
{
	const struct status_row *row = status_find(status);

	return row ? row->text : "unknown status";
}

const char *status_name(uint16_t status)
{
	const struct status_row *row = status_find(status);

	return row ? row->name : "unknown";
}

uint16_t status_from_errno(int error)
{
	if (error == INT_MIN) /* has no positive counterpart, and is no errno */
		return STATUS_OTHER;
	if (error < 0)
		error = -error;
	for (size_t i = 0; i < COUNT(status_rows); i++)
		if (status_rows[i].error == error)
			return status_rows[i].status;
	for (size_t i = 0; i < COUNT(status_aliases); i++)
		if (status_aliases[i].error == error)
			return status_aliases[i].status;
	return STATUS_OTHER;
}

int status_to_errno(uint16_t status)
{
	const struct status_row *row = status_find(status);

	return row ? -row->error : -EPROTO;
}
