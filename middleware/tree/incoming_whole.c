/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_whole.c: a small file that is all there: it lands as any other, at once, or goes
 * to a stream behind those before it.
 *
 * Errors and their texts are those of the other ways, so that nobody sees which one it was.
 */
#include "tree/incoming_impl.h"
#include "tree/incoming_room.h"

#include "tree/beneath.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int incoming_write(struct landing *landing, const struct landing_params *lp, const uint8_t *data,
	uint64_t bytes, char text[512])
{
	int err;

	if (!lp->unsynced)
		return landing_fill(landing, data, bytes, text);
	err = landing_write(landing_own_fd(landing), data, bytes);
	if (err)
		snprintf(text, 512, "writing at offset 0: %s", strerror(-err));
	return err;
}

static int incoming_whole_land(
	const struct landing_params *lp, const uint8_t *data, uint64_t bytes, char text[512])
{
	struct landing *landing;
	int err = landing_open(lp, &landing);

	if (err)
		return err;
	err = incoming_write(landing, lp, data, bytes, text);
	if (err) {
		landing_discard(landing);
		return err;
	}
	err = landing_commit(landing, text);
	if (err && !*text)
		snprintf(text, 512, "giving it its name: %s", strerror(-err));
	return err;
}

/* Some of the bytes, once the stream takes them: how many, 0: again, or -errno.  A pipe that is
 * ready takes as much as a piece of that size without making us wait. */
static ssize_t stream_write(const struct incoming *in, const uint8_t *data, uint64_t bytes)
{
	struct pollfd fds[] = {{in->params.fd, POLLOUT, 0}, {in->params.cancel_fd, POLLIN, 0}};
	ssize_t n;

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[1].revents)
		return -ECANCELED;
	n = write(in->params.fd, data, bytes < PIPE_BUF ? bytes : PIPE_BUF);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	return n ? n : -EIO;
}

int incoming_whole_stream(
	void *ctx, const struct transfer_file *file, const uint8_t *data, char text[512])
{
	struct incoming *in = ctx;
	uint64_t done = 0;

	/* each was asked for by itself, and answered in its turn; a pipe that nobody reads any more
	 * takes none of those behind */
	while (!in->stream_error && done < file->size) {
		ssize_t n = stream_write(in, data + done, file->size - done);

		if (n >= 0)
			done += (uint64_t)n;
		else
			in->stream_error = (int)n;
	}
	if (in->stream_error) {
		snprintf(text, 512, "writing at offset %ju: %s", (uintmax_t)done,
			strerror(-in->stream_error));
		return in->stream_error;
	}
	if (in->params.fsync != INCOMING_FSYNC_NEVER) /* of a pipe or terminal it is no error */
		in->stream_error = beneath_sync(in->params.fd);
	if (in->stream_error)
		snprintf(text, 512, "fsync: %s", strerror(-in->stream_error));
	return in->stream_error;
}

int incoming_whole(void *ctx, const struct transfer_file *file, const uint8_t *data, char text[512])
{
	struct incoming *in = ctx;
	const char *name = (const char *)file->name.data;
	struct landing_params lp;
	int err;

	if (in->params.asked && !asked_take(in->params.asked, file)) {
		in->refused = true;
		snprintf(text, 512, "the server sent what was not asked for");
		return -EBADMSG;
	}
	err = incoming_aim(in, file, name, &lp);
	/* there is no end of a transfer, so what is to be flushed is now */
	lp.unsynced = in->params.fsync == INCOMING_FSYNC_NEVER;
	if (!err)
		err = incoming_whole_land(&lp, data, file->size, text);
	/* a transfer had asked before, and would have been told so */
	if (err == -ENOSPC || err == -EDQUOT)
		incoming_room_say(in, file->size, text);
	return err ? incoming_refuse(in, name, err, text) : 0;
}
