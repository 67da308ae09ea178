/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_data: STORE and RETRIEVE: checks what is asked for and makes the transfer's
 * job of it.
 *
 * What the path names is opened by a task.  What is wrong with it is told in the reply; what is
 * wrong with single files beneath it is the transfer's to tell.
 */
#include "proto/status.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_task.h"
#include "rftpd/jobs/transfer_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening what a transfer is about ---- */

struct open_task {
	struct session_task base; /* first */
	struct transfer_job *job;
	int error;
};

static void work_open(struct session_task *task)
{
	struct open_task *t = (struct open_task *)task;

	t->error = transfer_job_open(t->job);
}

static void forget_open(struct session_task *task)
{
	struct open_task *t = (struct open_task *)task;

	transfer_job_free(t->job);
	free(t);
}

static int answer_open(struct session_task *task)
{
	struct open_task *t = (struct open_task *)task;
	struct daemon_session *s = task->session;
	int err = 0;

	if (t->error) {
		err = handle_refuse_path(
			s, transfer_job_type(t->job), t->error, transfer_job_path(t->job));
	} else {
		session_transfers_start(s, t->job);
		t->job = NULL;
	}
	forget_open(task);
	return err;
}

int handle_open_job(struct daemon_session *s, struct transfer_job *job)
{
	struct open_task *t = calloc(1, sizeof *t);

	if (!t) {
		transfer_job_free(job);
		return -ENOMEM;
	}
	t->base = (struct session_task){
		.session = s, .work = work_open, .answer = answer_open, .forget = forget_open};
	t->job = job;
	return session_task_start(&t->base, transfer_job_type(job));
}

/* ---- requests ---- */

int handle_refuse_transfer(struct daemon_session *s, uint16_t type)
{
	int err;

	if (daemon_session_is_ending(s))
		err = daemon_session_refuse(s, type, STATUS_SHUTDOWN, "the daemon ends");
	else if (!session_transfers_asked(s)->channels_accepted &&
		 !session_transfers_channels(s, s->asked))
		err = daemon_session_refuse(s, type, STATUS_INVALID, "no data channel is open");
	else
		return 0;
	return err ? err : 1;
}

/* What both requests are refused for: 1 and answered; 0; -errno. */
static int refuse_request(
	struct daemon_session *s, uint16_t type, const struct message_data_request *request)
{
	unsigned open = session_transfers_channels(s, s->asked);
	int err = 0;

	if (request->kind == MESSAGE_DATA_FILES && !message_path_ok(request->path))
		err = daemon_session_refuse(s, type, STATUS_NAME, "no path is named");
	else if (request->engine && !(s->engines & 1u << request->engine))
		err = daemon_session_refuse(s, type, STATUS_UNSUPPORTED,
			"engine %u is not what was agreed", request->engine);
	else if (request->channels > open &&
		 request->channels > session_transfers_asked(s)->channels_accepted)
		err = daemon_session_refuse(s, type, STATUS_INVALID,
			"%u data channels are asked for, %u are open", request->channels, open);
	else if (request->block > s->max_block || request->depth > s->max_depth)
		err = daemon_session_refuse(s, type, STATUS_INVALID,
			"%u blocks of %u bytes are over what was agreed: %u of %u", request->depth,
			request->block, s->max_depth, s->max_block);
	else
		return handle_refuse_transfer(s, type);
	return err ? err : 1;
}

/*
 * The name that what lies at `path` has beneath the client's directory: the last component, or ""
 * for the export's top.  false: it is "..".
 */
static bool last_component(const char *path, char name[MESSAGE_NAME_MAX + 1])
{
	size_t end = strlen(path), start;

	for (;;) {
		while (end && path[end - 1] == '/')
			end--;
		for (start = end; start && path[start - 1] != '/'; start--)
			;
		if (end - start != 1 || path[start] != '.')
			break;
		end = start; /* "." is where it stands */
	}
	if ((end - start == 2 && !memcmp(path + start, "..", 2)) || end - start > MESSAGE_NAME_MAX)
		return false;
	memcpy(name, path + start, end - start);
	name[end - start] = '\0';
	return true;
}

int handle_store(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_data_request request;
	struct transfer_job *job;
	int err = message_get_data_request(&request, data, len);

	if (!err &&
		(request.more_count || request.rule_count || request.flags & MESSAGE_DATA_SELECTED))
		err = -EBADMSG; /* these are a RETRIEVE's */
	if (!err && request.flags & MESSAGE_DATA_EARLY)
		err = session_transfers_early(s);
	if (!err)
		err = refuse_request(s, MESSAGE_STORE, &request);
	if (!err && s->grant)
		err = handle_use_grant(s, &request);
	if (err)
		return err < 0 ? err : 0;
	handle_path(path, request.path);
	err = transfer_job_new_store(s, &request, path, &job);
	return err ? handle_refuse_path(s, MESSAGE_STORE, err, path) : handle_open_job(s, job);
}

/* One path of them: 0; 1: refused, and answered; -errno. */
static int add_path(struct daemon_session *s, uint16_t type,
	const struct message_data_request *request, const char *path, struct transfer_job *job)
{
	char name[MESSAGE_NAME_MAX + 1] = "";
	int err;

	if (request->kind == MESSAGE_DATA_FILES && request->flags & MESSAGE_DATA_INTO &&
		!last_component(path, name)) {
		err = daemon_session_refuse(s, type, STATUS_NAME,
			"%.400s: has no name of its own to arrive under", path);
		return err ? err : 1;
	}
	return transfer_job_add(job, path, name);
}

int handle_add_paths(struct daemon_session *s, uint16_t type,
	const struct message_data_request *request, struct transfer_job *job)
{
	struct wire_bytes more = request->more, next;
	char path[MESSAGE_PATH_MAX + 1];
	int err;

	handle_path(path, request->path);
	err = add_path(s, type, request, path, job);
	while (!err && message_next_path(&more, &next)) {
		if (request->flags & MESSAGE_DATA_SELECTED) {
			if (next.len == 1 && *next.data == '/')
				job->selected_itself = true;
			else
				err = selection_add(
					&job->selection, (const char *)next.data, next.len);
			continue;
		}
		handle_path(path, next);
		err = add_path(s, type, request, path, job);
	}
	return err ? err : handle_rules(&job->filter, request->rules);
}

int handle_retrieve(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_data_request request;
	struct transfer_job *job;
	int err = message_get_data_request(&request, data, len);

	if (!err && ((request.kind == MESSAGE_DATA_FILES && request.size) ||
			    (request.resume && !(request.flags & MESSAGE_DATA_EARLY)) ||
			    request.flags & MESSAGE_DATA_IN_PLACE))
		err = -EBADMSG; /* that is a STORE's */
	if (!err && request.flags & MESSAGE_DATA_EARLY)
		err = request.engine && request.engine != MESSAGE_ENGINE_PULL && request.channels &&
				      request.block && request.depth
			      ? session_transfers_early(s)
			      : -EBADMSG;
	if (!err)
		err = refuse_request(s, MESSAGE_RETRIEVE, &request);
	if (err)
		return err < 0 ? err : 0;
	handle_path(path, request.path);
	err = transfer_job_new_retrieve(s, &request, path, &job);
	if (err)
		return handle_refuse_path(s, MESSAGE_RETRIEVE, err, path);
	err = handle_add_paths(s, MESSAGE_RETRIEVE, &request, job);
	if (!err)
		return handle_open_job(s, job);
	transfer_job_free(job);
	return err < 0 ? handle_refuse_path(s, MESSAGE_RETRIEVE, err, path) : 0;
}
