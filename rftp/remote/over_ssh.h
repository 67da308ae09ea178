/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/over_ssh: a server that is started for one session, through the user's own ssh:
 * `rftpd --serve-once` at the other side, as its user there.
 *
 * What it says on its standard output, a port, the fingerprint of its host key and a key for one
 * login, came through ssh, so nobody else has it.  It serves until its standard input ends, that is
 * until this side lets go of it or is gone.
 */
#ifndef RFTP_OVER_SSH_H
#define RFTP_OVER_SSH_H

#include "proto/message.h"
#include "proto/message_login.h"
#include "rftp/remote/url.h"
#include "session/tls_key.h"

#include <sys/types.h>

#define OVER_SSH_WHY_MAX 512u

struct over_ssh {
	pid_t pid;      /* of ssh; 0: none */
	int input;      /* its standard input */
	char host[256]; /* to connect to */
	uint16_t port;
	char fingerprint[TLS_FINGERPRINT_MAX];
	uint8_t key[MESSAGE_LOGIN_ONCE_BYTES];
};

struct over_ssh_line { /* what the other side says */
	uint16_t port;
	char fingerprint[TLS_FINGERPRINT_MAX];
	uint8_t key[MESSAGE_LOGIN_ONCE_BYTES];
	char address[64]; /* that ssh came to, there */
};
/* One line, without its end.  -ENOENT: it is not that one; -EPROTO: of another version, or wrong.
 */
int over_ssh_parse(const char *line, struct over_ssh_line *);

/*
 * Starts it for the host, user and port of an ssh:// URL, with `ssh` for the command (as for sh,
 * with its options) and `rftpd` at the other side.  Ends when it listens; `cancel_fd` ends that. 0;
 * or -ECANCELED, -ECONNREFUSED (`why` says what ssh's output had) and nothing is left.
 */
int over_ssh_start(struct over_ssh *, const struct url *, const char *ssh, const char *rftpd,
	int cancel_fd, char why[OVER_SSH_WHY_MAX]);
/* Lets go of it, and waits until ssh has ended.  Does nothing when there is none. */
void over_ssh_end(struct over_ssh *);

#endif
