/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/text_server: see text_server.h.
 */
#include "rftpd/serve/text_server.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void hang_up(struct text_connection *c)
{
	if (c->fd < 0)
		return;
	poller_remove(c->server->poller, &c->watch);
	close(c->fd);
	free(c->answer);
	c->fd = -1;
	c->answer = NULL;
}

/* As much of the answer as it takes now. */
static void send_on(struct text_connection *c)
{
	while (c->sent < c->answer_len) {
		ssize_t n = send(c->fd, c->answer + c->sent, c->answer_len - c->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			if (poller_want_room(c->server->poller, &c->watch))
				hang_up(c);
			return;
		}
		if (n < 0)
			break;
		c->sent += (size_t)n;
	}
	hang_up(c);
}

static void answer(struct text_connection *c)
{
	FILE *out = open_memstream(&c->answer, &c->answer_len);

	if (!out) {
		hang_up(c);
		return;
	}
	c->server->answer(c->server->owner, c->fd, c->question, out);
	if (fclose(out) || !c->answer) {
		log_error("no memory for an answer");
		hang_up(c);
		return;
	}
	c->sent = 0;
	send_on(c);
}

static void read_on(struct text_connection *c)
{
	ssize_t n =
		recv(c->fd, c->question + c->len, sizeof c->question - 1 - c->len, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* it went, or asks without end: recv of no bytes gives none */
		hang_up(c);
		return;
	}
	c->len += (size_t)n;
	c->question[c->len] = '\0';
	if (strstr(c->question, c->server->end))
		answer(c);
}

static void connection_ready(void *owner)
{
	struct text_connection *c = owner;

	if (c->fd >= 0 && c->answer)
		send_on(c);
	else if (c->fd >= 0)
		read_on(c);
}

static void take_connection(void *owner)
{
	struct text_server *t = owner;
	struct text_connection *c = &t->connections[0];
	int fd = accept4(t->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (unsigned i = 1; i < TEXT_CONNECTIONS_MAX && c->fd >= 0; i++)
		if (t->connections[i].fd < 0 || t->connections[i].number < c->number)
			c = &t->connections[i];
	hang_up(c);
	c->fd = fd;
	c->number = ++t->count;
	c->len = 0;
	if (poller_add(t->poller, &c->watch, fd, connection_ready, c))
		hang_up(c);
}

int text_server_open(struct text_server *t, struct poller *poller, int fd, const char *end,
	void (*answer_fn)(void *owner, int fd, char *question, FILE *out), void *owner)
{
	int err;

	*t = (struct text_server){
		.poller = poller, .fd = fd, .end = end, .answer = answer_fn, .owner = owner};
	for (unsigned i = 0; i < TEXT_CONNECTIONS_MAX; i++)
		t->connections[i] =
			(struct text_connection){.server = t, .fd = -1, .watch = {.fd = -1}};
	err = poller_add(poller, &t->watch, fd, take_connection, t);
	if (err) {
		close(fd);
		*t = (struct text_server){.fd = -1};
	}
	return err;
}

void text_server_close(struct text_server *t)
{
	if (!t->poller)
		return;
	for (unsigned i = 0; i < TEXT_CONNECTIONS_MAX; i++)
		hang_up(&t->connections[i]);
	poller_remove(t->poller, &t->watch);
	close(t->fd);
	*t = (struct text_server){.fd = -1};
}
