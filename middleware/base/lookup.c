/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/lookup: see lookup.h.
 *
 * Owns the lines to other processes: who asks takes one, and waits while there is none, so that a
 * question needs neither memory nor a descriptor, but for one in whose place another is made.
 */
#include "base/lookup.h"

#include "base/log.h"
#include "base/opener_wire.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LOOKUP_ROOM (16u << 10)     /* for what the services say of one, at first */
#define LOOKUP_ROOM_MAX (16u << 20) /* a group with all its members */

/* Both processes are of one program: they cross as they are. */
struct lookup_question {
	uint32_t kind, by_name, id;
	char name[LOOKUP_NAME_MAX + 1];
};
struct lookup_answer {
	int32_t error; /* errno */
	uint32_t id;
	char name[LOOKUP_NAME_MAX + 1];
};

static struct {
	bool used;
	int keeper;
	pthread_mutex_t lock;
	pthread_cond_t given;
	int lines[LOOKUP_LINES]; /* those that nobody has, first */
	unsigned idle, count;    /* of lines; `count`: with those that somebody has */
	uint64_t since_ns;       /* from then on */
	unsigned lost;           /* so many have ended */
	bool gone;               /* the keeper has, which was said */
	uint64_t short_ns;       /* when it is said again that none can be had */
} elsewhere = {.lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER};

/* ---- here ---- */

/* As getpwnam_r and its like: 0 and *found, or an errno. */
static int lookup_ask(const struct lookup_question *q, char *room, size_t size, bool *found,
	const char **name, uint32_t *id)
{
	struct passwd user, *u = NULL;
	struct group group, *g = NULL;
	int err;

	if (q->kind == LOOKUP_USER) {
		err = q->by_name ? getpwnam_r(q->name, &user, room, size, &u)
				 : getpwuid_r(q->id, &user, room, size, &u);
		*name = u ? u->pw_name : "";
		*id = u ? u->pw_uid : 0;
	} else {
		err = q->by_name ? getgrnam_r(q->name, &group, room, size, &g)
				 : getgrgid_r(q->id, &group, room, size, &g);
		*name = g ? g->gr_name : "";
		*id = g ? g->gr_gid : 0;
	}
	*found = u || g;
	return err;
}

/* POSIX leaves open how it is said that there is nobody of the name. */
static bool lookup_is_nobody(int err)
{
	return err == ENOENT || err == ESRCH || err == EBADF || err == EPERM;
}

static int lookup_here(const struct lookup_question *q, struct lookup_answer *a)
{
	size_t size = LOOKUP_ROOM;
	const char *name = "";
	bool found = false;
	char *room;
	int err;

	do {
		room = malloc(size);
		if (!room)
			return ENOMEM;
		err = lookup_ask(q, room, size, &found, &name, &a->id);
		if (!err && found && strlen(name) <= LOOKUP_NAME_MAX)
			strcpy(a->name, name);
		else if (!err || lookup_is_nobody(err))
			err = ENOENT;
		free(room);
		size *= 4;
	} while (err == ERANGE && size <= LOOKUP_ROOM_MAX);
	return err;
}

/* ---- elsewhere ---- */

/* Under the lock.  Whether one may be made, which is counted then. */
static bool lookup_reserve_line(void)
{
	if (elsewhere.gone || (elsewhere.lost >= LOOKUP_LOST_MAX &&
				      clock_now_ns() - elsewhere.since_ns < LOOKUP_LOST_NS))
		return false;
	elsewhere.count++;
	return true;
}

/* What the keeper's connection says of it; anything else is short of something, or late. */
static bool lookup_is_gone(long n)
{
	return !n || n == -EPIPE || n == -ECONNRESET || n == -ENOTCONN;
}

/* Under the lock: there is none to be had now.  Whoever asks learns the same, the log not. */
static void lookup_say_short(void)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns < elsewhere.short_ns)
		return;
	elsewhere.short_ns = now_ns + LOOKUP_LOST_NS;
	log_warning("no process can be started that looks up users and groups");
}

/* Without the lock: others go on with the lines that there are.  An answer that comes for somebody
 * else is as good.  -1: there is none to be had. */
static int lookup_make_line(void)
{
	char byte = 0;
	int fds[2] = {-1, -1};
	long n = opener_send(elsewhere.keeper, &byte, sizeof byte, NULL, 0);

	if (!n)
		n = opener_recv(elsewhere.keeper, &byte, sizeof byte, fds);
	if (n == sizeof byte && fds[0] >= 0)
		return fds[0];
	pthread_mutex_lock(&elsewhere.lock);
	elsewhere.count--;
	if (!lookup_is_gone(n)) {
		lookup_say_short();
	} else if (!elsewhere.gone) {
		log_error("the process that looks up users and groups has ended: owners are kept "
			  "by number until a new start");
		elsewhere.gone = true;
	}
	pthread_cond_signal(&elsewhere.given); /* whose turn it is finds the same */
	pthread_mutex_unlock(&elsewhere.lock);
	return -1;
}

/* `anew`: one that nobody had; it takes the place of one that waits where there are all. */
static int lookup_take_line(bool anew)
{
	bool reserved = false;
	int fd = -1;

	pthread_mutex_lock(&elsewhere.lock);
	while (!elsewhere.idle && elsewhere.count == LOOKUP_LINES)
		pthread_cond_wait(&elsewhere.given, &elsewhere.lock);
	if (elsewhere.idle && (!anew || elsewhere.count == LOOKUP_LINES))
		fd = elsewhere.lines[--elsewhere.idle];
	if (fd >= 0 && anew) {
		close(fd);
		elsewhere.count--;
		fd = -1;
	}
	if (fd < 0)
		reserved = lookup_reserve_line();
	if (fd < 0 && !reserved)
		pthread_cond_signal(&elsewhere.given); /* whose turn it is finds the same */
	pthread_mutex_unlock(&elsewhere.lock);
	return reserved ? lookup_make_line() : fd;
}

static void lookup_give_line(int fd)
{
	pthread_mutex_lock(&elsewhere.lock);
	elsewhere.lines[elsewhere.idle++] = fd;
	pthread_cond_signal(&elsewhere.given);
	pthread_mutex_unlock(&elsewhere.lock);
}

/* Its process has ended. */
static void lookup_lose_line(int fd)
{
	uint64_t now_ns = clock_now_ns();

	close(fd);
	pthread_mutex_lock(&elsewhere.lock);
	elsewhere.count--;
	if (now_ns - elsewhere.since_ns >= LOOKUP_LOST_NS) {
		elsewhere.since_ns = now_ns;
		elsewhere.lost = 0;
	}
	if (++elsewhere.lost < LOOKUP_LOST_MAX)
		log_warning("a process that looks up users and groups has ended: another one is "
			    "started");
	else if (elsewhere.lost == LOOKUP_LOST_MAX)
		log_error("%u processes that look up users and groups have ended within a minute: "
			  "owners are kept by number for the rest of it",
			LOOKUP_LOST_MAX);
	pthread_cond_signal(&elsewhere.given);
	pthread_mutex_unlock(&elsewhere.lock);
}

/* What ends at every question is not started again and again: each is asked twice at most. */
static int lookup_there(const struct lookup_question *q, struct lookup_answer *a)
{
	for (unsigned i = 0; i < 2; i++) {
		int fd = lookup_take_line(i), fds[2];
		long n = 0;

		if (fd < 0)
			break;
		if (!opener_send(fd, q, sizeof *q, NULL, 0))
			n = opener_recv(fd, a, sizeof *a, fds);
		if (n == (long)sizeof *a) {
			lookup_give_line(fd);
			return a->error;
		}
		lookup_lose_line(fd);
	}
	return ECONNRESET;
}

static int lookup(const struct lookup_question *q, struct lookup_answer *a)
{
	return -(elsewhere.used ? lookup_there(q, a) : lookup_here(q, a));
}

int lookup_name(enum lookup_kind kind, uint32_t id, char out[LOOKUP_NAME_MAX + 1])
{
	const struct lookup_question q = {.kind = kind, .id = id};
	struct lookup_answer a = {0};
	int err = lookup(&q, &a);

	if (!err)
		memcpy(out, a.name, sizeof a.name);
	return err;
}

int lookup_id(enum lookup_kind kind, const char *name, uint32_t *id)
{
	struct lookup_question q = {.kind = kind, .by_name = true};
	struct lookup_answer a = {0};
	int err;

	if (strlen(name) > LOOKUP_NAME_MAX)
		return -ENOENT;
	strcpy(q.name, name);
	err = lookup(&q, &a);
	if (!err)
		*id = a.id;
	return err;
}

void lookup_elsewhere(int keeper)
{
	const struct timeval limit = {.tv_sec = LOOKUP_LINE_S};

	elsewhere.used = true;
	elsewhere.keeper = keeper;
	setsockopt(keeper, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(keeper, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	elsewhere.since_ns = clock_now_ns();
	for (unsigned i = 0; i < LOOKUP_LINES; i++) {
		int fd = lookup_reserve_line() ? lookup_make_line() : -1;

		if (fd >= 0)
			elsewhere.lines[elsewhere.idle++] = fd;
	}
}

/* ---- the other process ---- */

void lookup_serve(int fd)
{
	struct lookup_question q;
	struct lookup_answer a;
	int fds[2];

	for (;;) {
		long n = opener_recv(fd, &q, sizeof q, fds);

		for (unsigned i = 0; i < 2; i++) /* no question has one */
			if (n >= 0 && fds[i] >= 0)
				close(fds[i]);
		if (n != (long)sizeof q || q.kind > LOOKUP_GROUP ||
			!memchr(q.name, '\0', sizeof q.name))
			return;
		memset(&a, 0, sizeof a);
		a.error = lookup_here(&q, &a);
		if (opener_send(fd, &a, sizeof a, NULL, 0))
			return;
	}
}
