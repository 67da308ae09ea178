/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/delay: a long line: a TCP relay that hands on each byte a fixed time after it came.
 *
 *     delay PORT MILLISECONDS    relays to PORT of 127.0.0.1, half of the time each way; says on
 * which port it listens, until it is ended
 *
 * It limits no rate: whatever is sent meanwhile is under way at the same time, as in a long cable.
 */
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE (256u << 10)
#define LINES_MAX 512u

struct piece {
	struct piece *next;
	uint64_t due_ns;
	size_t at, length; /* length 0: the end */
	uint8_t data[];
};

/* One direction of a connection. */
struct way {
	int from, to;
	struct piece *first, **last;
	bool read_all, written_all;
};

struct line {
	struct way there, back;
};

static struct line lines[LINES_MAX];
static unsigned line_count;
static uint64_t delay_ns;

static void set_up(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void way_init(struct way *w, int from, int to)
{
	*w = (struct way){.from = from, .to = to};
	w->last = &w->first;
}

static void take(struct way *w)
{
	struct piece *p = malloc(sizeof *p + PIECE);
	ssize_t n = p ? read(w->from, p->data, PIECE) : -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		free(p);
		return;
	}
	if (!p)
		exit(1);
	p->next = NULL;
	p->at = 0;
	p->length = n < 0 ? 0 : (size_t)n;
	p->due_ns = clock_now_ns() + delay_ns;
	if (p->length) {
		struct piece *fits = realloc(p, sizeof *p + p->length);

		p = fits ? fits : p;
	}
	w->read_all = !p->length;
	*w->last = p;
	w->last = &p->next;
}

/* Hands on what is due.  Whether the other side takes no more for now. */
static bool give(struct way *w, uint64_t now)
{
	struct piece *p;

	while ((p = w->first) && p->due_ns <= now) {
		ssize_t n = p->length
				    ? send(w->to, p->data + p->at, p->length - p->at, MSG_NOSIGNAL)
				    : 0;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		p->at += n > 0 ? (size_t)n : 0;
		if (n >= 0 && p->at < p->length)
			continue;
		if (!p->length || n < 0) {
			shutdown(w->to, SHUT_WR);
			w->written_all = true;
		}
		w->first = p->next;
		if (!w->first)
			w->last = &w->first;
		free(p);
	}
	return false;
}

static void connect_line(int listener, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int near = accept(listener, NULL, NULL), far = socket(AF_INET, SOCK_STREAM, 0);

	if (near < 0 || far < 0 || line_count == LINES_MAX ||
		connect(far, (struct sockaddr *)&to, sizeof to)) {
		close(near);
		close(far);
		return;
	}
	set_up(near);
	set_up(far);
	way_init(&lines[line_count].there, near, far);
	way_init(&lines[line_count++].back, far, near);
}

/* Drops the lines that are over both ways. */
static void tidy(void)
{
	for (unsigned i = 0; i < line_count; i++) {
		struct line *l = &lines[i];

		if (!l->there.written_all || !l->back.written_all)
			continue;
		close(l->there.from);
		close(l->back.from);
		*l = lines[--line_count];
		/* an empty list ends in the way itself, which has moved */
		if (!l->there.first)
			l->there.last = &l->there.first;
		if (!l->back.first)
			l->back.last = &l->back.first;
		i--;
	}
}

static void add_polls(
	struct pollfd *fds, nfds_t *count, struct way *w, uint64_t now, uint64_t *wake)
{
	bool full = give(w, now);

	if (!w->read_all)
		fds[(*count)++] = (struct pollfd){.fd = w->from, .events = POLLIN};
	if (full)
		fds[(*count)++] = (struct pollfd){.fd = w->to, .events = POLLOUT};
	else if (w->first && w->first->due_ns < *wake)
		*wake = w->first->due_ns;
}

static void relay(int listener, uint16_t port)
{
	static struct pollfd fds[4 * LINES_MAX + 1];

	for (;;) {
		uint64_t now = clock_now_ns(), wake = now + NS_PER_S;
		struct timespec ts;
		nfds_t count = 0;

		fds[count++] = (struct pollfd){.fd = listener, .events = POLLIN};
		for (unsigned i = 0; i < line_count; i++) {
			add_polls(fds, &count, &lines[i].there, now, &wake);
			add_polls(fds, &count, &lines[i].back, now, &wake);
		}
		ts.tv_sec = 0;
		ts.tv_nsec = wake > now ? (long)(wake - now) : 0;
		if (ts.tv_nsec >= (long)NS_PER_S)
			ts = (struct timespec){.tv_sec = 1};
		if (ppoll(fds, count, &ts, NULL) < 0 && errno != EINTR)
			exit(1);
		for (unsigned i = 0; i < line_count; i++) {
			if (!lines[i].there.read_all)
				take(&lines[i].there);
			if (!lines[i].back.read_all)
				take(&lines[i].back);
		}
		tidy();
		if (fds[0].revents)
			connect_line(listener, port);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof addr;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 3 || listener < 0 || bind(listener, (struct sockaddr *)&addr, len) ||
		listen(listener, 64) || getsockname(listener, (struct sockaddr *)&addr, &len)) {
		fprintf(stderr, "usage: delay PORT MILLISECONDS\n");
		return 2;
	}
	delay_ns = (uint64_t)(strtod(argv[2], NULL) * NS_PER_MS / 2);
	printf("%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	relay(listener, (uint16_t)strtoul(argv[1], NULL, 10));
}
