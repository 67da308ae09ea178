/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle: what each message means: one row a message in handle.c, its handler in
 * handle_*.c.
 *
 * A handler answers by daemon_session_reply or _refuse.  It returns 0, or -errno, which ends the
 * session: -EBADMSG for data that is not of the message's form.
 */
#ifndef RFTPD_HANDLE_H
#define RFTPD_HANDLE_H

#include "rftpd/serve/daemon_session.h"

/* One frame from the client: 0 or -errno as above.  A violation was answered. */
int handle_frame(struct daemon_session *, const struct message_header *, const uint8_t *data);

/* handle_login.c */
int handle_login(struct daemon_session *, const uint8_t *data, size_t len);
/* The refusal that was held back.  0 or -errno. */
int handle_login_refuse(struct daemon_session *);
/* What is under way of a login goes. */
void handle_login_forget(struct daemon_session *);

/* handle_session.c */
int handle_hello(struct daemon_session *, const uint8_t *data, size_t len);
int handle_bye(struct daemon_session *, const uint8_t *data, size_t len);
int handle_ping(struct daemon_session *, const uint8_t *data, size_t len);
int handle_channels(struct daemon_session *, const uint8_t *data, size_t len);
int handle_admit(struct daemon_session *, const uint8_t *data, size_t len);
int handle_ring(struct daemon_session *, const uint8_t *data, size_t len);
int handle_abort(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_names.c */
int handle_stat(struct daemon_session *, const uint8_t *data, size_t len);
int handle_lstat(struct daemon_session *, const uint8_t *data, size_t len);
int handle_mkdir(struct daemon_session *, const uint8_t *data, size_t len);
int handle_rmdir(struct daemon_session *, const uint8_t *data, size_t len);
int handle_remove(struct daemon_session *, const uint8_t *data, size_t len);
int handle_remove_tree(struct daemon_session *, const uint8_t *data, size_t len);
int handle_rename(struct daemon_session *, const uint8_t *data, size_t len);
int handle_statfs(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_change.c */
int handle_set_attr(struct daemon_session *, const uint8_t *data, size_t len);
int handle_make_link(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_list.c */
int handle_list(struct daemon_session *, const uint8_t *data, size_t len);
/* handle_tree.c */
int handle_tree(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_leftovers.c */
int handle_leftovers(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_sum.c */
int handle_sum(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_copy.c */
int handle_grant_copy(struct daemon_session *, const uint8_t *data, size_t len);
int handle_send_copy(struct daemon_session *, const uint8_t *data, size_t len);
/* Of a session that logged in with a grant: whether a request is none of those that it is for. */
bool handle_is_beyond_grant(const struct daemon_session *, uint16_t type);
/* The same of a STORE: 1 and answered; 0: it is what was granted, and the grant is used; -errno. */
int handle_use_grant(struct daemon_session *, const struct message_data_request *);
/* inline_batch.c */
int handle_put(struct daemon_session *, const uint8_t *data, size_t len);
int handle_get(struct daemon_session *, const uint8_t *data, size_t len);

/* handle_data.c */
int handle_store(struct daemon_session *, const uint8_t *data, size_t len);
int handle_retrieve(struct daemon_session *, const uint8_t *data, size_t len);
struct transfer_job;
/* Opens what the job is about in a task, and then starts it, or says why not.  Takes it over. */
int handle_open_job(struct daemon_session *, struct transfer_job *);
/* The paths and rules of a RETRIEVE, or SEND_COPY, go to the job.  0; 1: refused, and answered;
 * -errno. */
int handle_add_paths(struct daemon_session *, uint16_t type, const struct message_data_request *,
	struct transfer_job *);

/* What any transfer is refused for: 1 and answered; 0; -errno. */
int handle_refuse_transfer(struct daemon_session *, uint16_t type);

/* handle_feed.c */
int handle_feed(struct daemon_session *, const uint8_t *data, size_t len);

/* ---- for all of them ---- */

struct stat;
/* A path of a message as a string. */
void handle_path(char out[MESSAGE_PATH_MAX + 1], struct wire_bytes);
/* Refuses with the status of `error` and a text that names the path. */
int handle_refuse_path(struct daemon_session *, uint16_t type, int error, const char *path);
void handle_attr(struct message_attr *, const struct stat *);
struct filter;
/* Rules of a message, which its codec has checked.  0 or -errno. */
int handle_rules(struct filter *, struct wire_bytes rules);

#endif
