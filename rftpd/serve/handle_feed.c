/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_feed: FEED: streams of many devices, kept as segments beneath a directory of
 * the export.
 */
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/jobs/transfer_job.h"

int handle_feed(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_feed request;
	struct transfer_job *job;
	int r = message_get_feed(&request, data, len);

	if (r)
		return r;
	r = handle_refuse_transfer(s, MESSAGE_FEED);
	if (r)
		return r < 0 ? r : 0;
	handle_path(path, request.path);
	r = transfer_job_new_feed(s, &request, path, &job);
	return r ? handle_refuse_path(s, MESSAGE_FEED, r, path) : handle_open_job(s, job);
}
