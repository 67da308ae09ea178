/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_copy: GRANT_COPY and SEND_COPY: copies between this server and another one.
 *
 * As the destination it gives a grant, and holds a session that logged in with one to that.  As the
 * source it makes a job that is the other server's client, if that may be one.
 */
#include "proto/status.h"
#include "proto/transfer.h"
#include "rftpd/copy_rule.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/handle.h"
#include "rftpd/serve/session_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void audit(const struct daemon_session *s, const char *event, const char *path,
	const char *to, uint16_t status, const char *text)
{
	audit_write(&s->daemon->audit, &(struct audit_event){.event = event,
					       .session = s->number,
					       .peer = s->peer,
					       .user = daemon_session_user(s),
					       .path = path,
					       .to = to,
					       .status = status,
					       .text = text});
}

/* ---- the destination ---- */

/* What would be refused to the session itself is not granted either: 0 or -errno. */
static int check_path(const struct daemon_session *s, const char *path)
{
	const struct view_entry *entry;
	const char *beneath;
	int err = view_find(s->view, path, &entry, &beneath);

	if (err)
		return err == VIEW_TOP ? -EACCES : err;
	return place_allows(&entry->place, PLACE_WRITE);
}

int handle_grant_copy(struct daemon_session *s, const uint8_t *data, size_t len)
{
	const struct daemon_settings *settings = s->daemon->settings;
	uint64_t expires_s = (uint64_t)time(NULL) + settings->grant_lifetime_s;
	uint8_t bytes[GRANTS_BYTES], reply[10 + GRANTS_BYTES];
	char path[MESSAGE_PATH_MAX + 1];
	struct message_grant_copy m;
	int err = message_get_grant_copy(&m, data, len);

	if (err)
		return err;
	handle_path(path, m.path);
	if (!settings->copies_from || s->daemon->once.active) {
		audit(s, "grant", path, NULL, STATUS_DENIED, "copies-from");
		return daemon_session_refuse(s, MESSAGE_GRANT_COPY, STATUS_DENIED,
			"this server takes no copies from other servers (copies-from)");
	}
	err = check_path(s, path);
	if (!err)
		err = grants_give(&s->daemon->grants, s->number, &s->who, s->opener, path, m.flags,
			expires_s, bytes);
	audit(s, "grant", path, NULL, err == -EUSERS ? STATUS_LIMIT : status_from_errno(err), NULL);
	if (err == -EUSERS)
		return daemon_session_refuse(s, MESSAGE_GRANT_COPY, STATUS_LIMIT,
			"the session has as many grants as it may have");
	if (err)
		return handle_refuse_path(s, MESSAGE_GRANT_COPY, err, path);
	session_log(s, LOG_LEVEL_INFO, "grants another server to store once: %.300s", path);
	return daemon_session_reply(s, MESSAGE_GRANT_COPY, reply,
		message_put_grant_copy_reply(
			&(struct message_grant_copy_reply){
				.expires_s = expires_s, .grant = {bytes, sizeof bytes}},
			reply, sizeof reply));
}

bool handle_is_beyond_grant(const struct daemon_session *s, uint16_t type)
{
	(void)s;
	switch (type) {
	case MESSAGE_BYE:
	case MESSAGE_PING:
	case MESSAGE_CHANNELS:
	case MESSAGE_ADMIT:
	case MESSAGE_STORE:
	case TRANSFER_ABORT:
		return false;
	default:
		return true;
	}
}

int handle_use_grant(struct daemon_session *s, const struct message_data_request *request)
{
	struct grant *g = s->grant;
	char path[MESSAGE_PATH_MAX + 1];
	const char *why = NULL;
	int err;

	if (g->used)
		why = "the grant was for one transfer, which there was";
	else if (!daemon_session_find(s->daemon, g->session))
		why = "the session that gave the grant has ended";
	else if (request->kind != MESSAGE_DATA_FILES || request->path.len != strlen(g->path) ||
		 memcmp(request->path.data, g->path, request->path.len) != 0)
		why = "the grant is for another path";
	else if ((request->flags & (MESSAGE_COPY_BOUND | MESSAGE_DATA_IN_PLACE)) != g->flags)
		why = "the grant is for another way of storing";
	if (!why) {
		g->used = true;
		return 0;
	}
	session_log(s, LOG_LEVEL_WARNING, "STORE is not what was granted: %s", why);
	handle_path(path, request->path);
	audit(s, "put", path, NULL, STATUS_DENIED, why);
	err = daemon_session_refuse(s, MESSAGE_STORE, STATUS_DENIED, "%s", why);
	return err ? err : 1;
}

/* ---- the source ---- */

/* Where to: 1: refused, and answered; 0; -errno. */
static int refuse_destination(
	struct daemon_session *s, const struct message_send_copy *m, struct addr *to)
{
	const struct copy_rule *rule = s->daemon->settings->copies_to;
	char host[MESSAGE_COPY_HOST_MAX + 1], shown[ADDR_TEXT_MAX], path[MESSAGE_PATH_MAX + 1];
	size_t count;
	int err;

	snprintf(host, sizeof host, "%.*s", (int)m->host.len, (const char *)m->host.data);
	handle_path(path, m->request.path);
	if (!rule || s->daemon->once.active) {
		audit(s, "copy", path, host, STATUS_DENIED, "copies-to");
		err = daemon_session_refuse(s, MESSAGE_SEND_COPY, STATUS_DENIED,
			"this server sends nothing to other servers (copies-to)");
	} else if (addr_resolve(host, m->port, true, to, 1, &count) || !count) {
		audit(s, "copy", path, host, STATUS_INVALID, "it is no address");
		err = daemon_session_refuse(s, MESSAGE_SEND_COPY, STATUS_INVALID,
			"%s is no address of the destination", host);
	} else if (!copy_rule_allows(rule, (const struct sockaddr *)&to->ss)) {
		addr_format((const struct sockaddr *)&to->ss, shown);
		session_log(s, LOG_LEVEL_WARNING,
			"asks for a copy to %s, which copies-to does not have", shown);
		audit(s, "copy", path, shown, STATUS_DENIED, "copies-to");
		err = daemon_session_refuse(s, MESSAGE_SEND_COPY, STATUS_DENIED,
			"%s is none of the servers that this one may send to (copies-to)", shown);
	} else if (daemon_session_is_ending(s)) {
		err = daemon_session_refuse(
			s, MESSAGE_SEND_COPY, STATUS_SHUTDOWN, "the daemon ends");
	} else {
		return 0;
	}
	return err ? err : 1;
}

int handle_send_copy(struct daemon_session *s, const uint8_t *data, size_t len)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct message_send_copy m;
	struct transfer_job *job;
	struct copy_job *copy;
	struct addr to;
	int err = message_get_send_copy(&m, data, len);

	if (err)
		return err;
	err = refuse_destination(s, &m, &to);
	if (err)
		return err < 0 ? err : 0;
	copy = copy_job_new(&m, (const struct sockaddr *)&to.ss);
	if (!copy)
		return -ENOMEM;
	handle_path(path, m.request.path);
	err = transfer_job_new_copy(s, &m, path, copy, &job);
	if (err)
		return handle_refuse_path(s, MESSAGE_SEND_COPY, err, path);
	err = handle_add_paths(s, MESSAGE_SEND_COPY, &m.request, job);
	if (!err)
		return handle_open_job(s, job);
	transfer_job_free(job);
	return err < 0 ? handle_refuse_path(s, MESSAGE_SEND_COPY, err, path) : 0;
}
