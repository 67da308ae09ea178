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
	int err = message_get_feed(&request, data, len);

	if (err)
		return err;
	err = handle_refuse_transfer(s, MESSAGE_FEED);
	if (err)
		return err < 0 ? err : 0;
	handle_path(path, request.path);
	err = transfer_job_new_feed(s, &request, path, &job);
	return err ? handle_refuse_path(s, MESSAGE_FEED, err, path) : handle_open_job(s, job);
}
