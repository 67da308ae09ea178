/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle: see handle.h.
 *
 * Owns the dispatch table: which message is allowed in which state.
 */
#include "rftpd/serve/handle.h"

#include "proto/status.h"
#include "proto/transfer.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/session_log.h"
#include "tree/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define BEHIND_LOGIN_MAX 16u /* requests that may come with a login */
#define SHOWN_PATH_MAX 400u  /* of a path in a text of at most MESSAGE_TEXT_MAX */

#define SESSION_BETWEEN (SESSION_READY | SESSION_RUNNING) /* no request is being worked on */

static const struct row {
	uint16_t type;
	unsigned states;
	int (*run)(struct daemon_session *, const uint8_t *data, size_t len);
} rows[] = {
	{MESSAGE_HELLO, SESSION_NEW, handle_hello},
	{MESSAGE_LOGIN, SESSION_GREETED, handle_login},
	{MESSAGE_BYE, SESSION_NEW | SESSION_GREETED | SESSION_READY | SESSION_WAITING, handle_bye},
	{MESSAGE_PING, SESSION_READY | SESSION_RUNNING | SESSION_WAITING, handle_ping},
	{MESSAGE_CHANNELS, SESSION_BETWEEN, handle_channels},
	{MESSAGE_ADMIT, SESSION_BETWEEN, handle_admit},
	{MESSAGE_RING, SESSION_BETWEEN, handle_ring},
	{MESSAGE_STAT, SESSION_BETWEEN, handle_stat},
	{MESSAGE_LSTAT, SESSION_BETWEEN, handle_lstat},
	{MESSAGE_LIST, SESSION_BETWEEN, handle_list},
	{MESSAGE_MKDIR, SESSION_BETWEEN, handle_mkdir},
	{MESSAGE_RMDIR, SESSION_BETWEEN, handle_rmdir},
	{MESSAGE_REMOVE, SESSION_BETWEEN, handle_remove},
	{MESSAGE_REMOVE_TREE, SESSION_BETWEEN, handle_remove_tree},
	{MESSAGE_RENAME, SESSION_BETWEEN, handle_rename},
	{MESSAGE_STATFS, SESSION_BETWEEN, handle_statfs},
	{MESSAGE_TREE, SESSION_BETWEEN, handle_tree},
	{MESSAGE_SUM, SESSION_BETWEEN, handle_sum},
	{MESSAGE_SETATTR, SESSION_BETWEEN, handle_set_attr},
	{MESSAGE_MAKE_LINK, SESSION_BETWEEN, handle_make_link},
	{MESSAGE_GRANT_COPY, SESSION_BETWEEN, handle_grant_copy},
	{MESSAGE_SEND_COPY, SESSION_BETWEEN, handle_send_copy},
	{MESSAGE_PUT, SESSION_BETWEEN, handle_put},
	{MESSAGE_GET, SESSION_BETWEEN, handle_get},
	{MESSAGE_STORE, SESSION_BETWEEN, handle_store},
	{MESSAGE_RETRIEVE, SESSION_BETWEEN, handle_retrieve},
	{MESSAGE_FEED, SESSION_BETWEEN, handle_feed},
	{MESSAGE_LEFTOVERS, SESSION_BETWEEN, handle_leftovers},
	{TRANSFER_ABORT, SESSION_READY | SESSION_RUNNING | SESSION_WAITING, handle_abort},
};

/* Says what was wrong, in a reply if the message has one; the session then ends. */
static int violate(struct daemon_session *s, uint16_t type, const char *what)
{
	uint16_t answer =
		type & MESSAGE_REPLY || !message_row(type | MESSAGE_REPLY) ? MESSAGE_BYE : type;

	session_log(s, LOG_LEVEL_WARNING, "broke the protocol: %s %s", message_name(type), what);
	admit_blame(
		s->daemon, fabric_chan_peer(control_chan(link_control(s->link))), PENALTY_PROTOCOL);
	daemon_session_refuse(s, answer, STATUS_PROTOCOL, "%s %s", message_name(type), what);
	daemon_session_close(s, "it broke the protocol");
	return 0;
}

/* A client sends its first requests with its login and does not wait: each is refused as that was.
 * Some only, or the login could be left out. */
static bool came_with_refused_login(struct daemon_session *s, const struct row *row)
{
	return s->state == SESSION_GREETED && s->login_tries && row->states & SESSION_READY &&
	       message_row(row->type | MESSAGE_REPLY) && row->type != MESSAGE_BYE &&
	       s->refused_requests++ < BEHIND_LOGIN_MAX;
}

int handle_frame(struct daemon_session *s, const struct message_header *h, const uint8_t *data)
{
	const struct row *row = NULL;
	int err;

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].type == h->type)
			row = &rows[i];
	if (!row)
		return violate(s, h->type, "is not allowed between transfers");
	if (came_with_refused_login(s, row))
		return daemon_session_refuse(s, h->type, STATUS_LOGIN,
			"%s came with a login that was refused", message_name(h->type));
	if (!(row->states & s->state))
		return violate(s, h->type,
			s->state == SESSION_NEW ? "came before HELLO"
			: s->state == SESSION_GREETED && h->type != MESSAGE_HELLO
				? "came before LOGIN"
			: s->state == SESSION_WAITING ? "came while a transfer waits"
						      : "came again");
	if (!message_has_number(h->type) && h->response)
		return violate(s, h->type, "has a response code");
	if (message_has_number(h->type) && h->response >= s->max_transfers)
		return violate(s, h->type, "is of more transfers than was agreed on");
	if (s->grant && handle_is_beyond_grant(s, h->type))
		return daemon_session_refuse(s, h->type, STATUS_DENIED,
			"who logged in with a grant may store what was granted, and do no more");
	s->asked = h->response;
	err = row->run(s, data, h->length);
	if (err == -EBADMSG || err == -EMSGSIZE)
		return violate(s, h->type, "is malformed");
	return err;
}

/* ---- for all handlers ---- */

void handle_path(char out[MESSAGE_PATH_MAX + 1], struct wire_bytes path)
{
	if (path.len)
		memcpy(out, path.data, path.len); /* its codec has bounded it and let no NUL pass */
	out[path.len] = '\0';
}

int handle_refuse_path(struct daemon_session *s, uint16_t type, int error, const char *path)
{
	uint16_t status = status_from_errno(error);
	size_t len = strlen(path);
	const char *cut = "", *beneath;
	const struct view_entry *entry;
	int found = view_find(s->view, path, &entry, &beneath);

	if (error == -EACCES && found == VIEW_TOP)
		return daemon_session_refuse(
			s, type, status, "/ lists the exports: name what is beneath one of them");
	if (error == -EUSERS && !found)
		return daemon_session_refuse(
			s, type, status, "the export has as many sessions as it may have");
	if (error == -EROFS && !found && place_allows(&entry->place, PLACE_WRITE) == error)
		return daemon_session_refuse(s, type, status, "the export is read-only");
	if (len > SHOWN_PATH_MAX) {
		path += len - SHOWN_PATH_MAX;
		cut = "...";
	}
	return daemon_session_refuse(s, type, status, "%s%s: %s", cut, path,
		status == STATUS_OTHER ? strerror(error < 0 ? -error : error)
				       : status_text(status));
}

int handle_rules(struct filter *filter, struct wire_bytes rules)
{
	char pattern[MESSAGE_PATH_MAX + 1], why[FILTER_WHY_MAX];
	struct message_rule rule;
	int err = 0;

	while (!err && message_next_rule(&rules, &rule)) {
		handle_path(pattern, rule.pattern);
		err = filter_add_pattern(filter, rule.include, pattern, why);
	}
	return err;
}

void handle_attr(struct message_attr *attr, const struct stat *st)
{
	*attr = (struct message_attr){
		.type = S_ISREG(st->st_mode)   ? MESSAGE_FILE
			: S_ISDIR(st->st_mode) ? MESSAGE_DIRECTORY
			: S_ISLNK(st->st_mode) ? MESSAGE_SYMLINK
					       : MESSAGE_OTHER,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.holes = S_ISREG(st->st_mode) && st->st_blocks * 512 < st->st_size,
	};
}
