/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/text_server: questions and answers in text over a listening stream socket: one of
 * each a connection, in the event loop, which never waits for them.
 *
 * There are few connections at a time; who comes when all are taken takes the place of the oldest.
 */
#ifndef RFTPD_TEXT_SERVER_H
#define RFTPD_TEXT_SERVER_H

#include "rftpd/serve/poller.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_CONNECTIONS_MAX 16u
#define TEXT_QUESTION_MAX 4096u /* bytes, with a NUL */

struct text_server;

struct text_connection {
	struct text_server *server;
	int fd; /* -1: free */
	struct watch watch;
	uint64_t number; /* of the connection: the least is the oldest */
	char question[TEXT_QUESTION_MAX];
	size_t len;
	char *answer; /* NULL: not asked yet */
	size_t answer_len, sent;
};

struct text_server {
	struct poller *poller;
	int fd; /* -1: not open */
	struct watch watch;
	const char *end; /* of a question: "\n" */
	/* Writes the answer.  `fd` is the connection, to see who asks. */
	void (*answer)(void *owner, int fd, char *question, FILE *out);
	void *owner;
	uint64_t count;
	struct text_connection connections[TEXT_CONNECTIONS_MAX];
};

/* Takes over `fd`, which listens.  0 or -errno: it is closed. */
int text_server_open(struct text_server *, struct poller *, int fd, const char *end,
	void (*answer)(void *owner, int fd, char *question, FILE *out), void *owner);
/* Does nothing to one that is zeroed or closed. */
void text_server_close(struct text_server *);

#endif
