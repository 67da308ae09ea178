/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/lookup: see lookup.h.
 *
 * Owns the connections to the other process: who asks takes one, and waits while there is none, so
 * that a question needs neither memory nor a descriptor.
 */
#include "base/lookup.h"

#include "base/log.h"
#include "base/opener_wire.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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
	pthread_mutex_t lock;
	pthread_cond_t given;
	int lines[LOOKUP_LINES]; /* those that nobody has, first */
	unsigned idle;
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

static int lookup_take_line(void)
{
	int fd;

	pthread_mutex_lock(&elsewhere.lock);
	while (!elsewhere.idle)
		pthread_cond_wait(&elsewhere.given, &elsewhere.lock);
	fd = elsewhere.lines[--elsewhere.idle];
	pthread_mutex_unlock(&elsewhere.lock);
	return fd;
}

static void lookup_give_line(int fd)
{
	pthread_mutex_lock(&elsewhere.lock);
	elsewhere.lines[elsewhere.idle++] = fd;
	pthread_cond_signal(&elsewhere.given);
	pthread_mutex_unlock(&elsewhere.lock);
}

static int lookup_there(const struct lookup_question *q, struct lookup_answer *a)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	int fd = lookup_take_line(), fds[2], err;
	long n = 0;

	err = opener_send(fd, q, sizeof *q, NULL, 0);
	if (!err)
		n = opener_recv(fd, a, sizeof *a, fds);
	lookup_give_line(fd);
	if (n == (long)sizeof *a)
		return a->error;
	if (!atomic_flag_test_and_set(&told))
		log_error("the process that looks up users and groups has ended: owners are kept "
			  "by number until a new start");
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

void lookup_elsewhere(const int fds[LOOKUP_LINES])
{
	elsewhere.used = true;
	elsewhere.idle = LOOKUP_LINES;
	memcpy(elsewhere.lines, fds, sizeof elsewhere.lines);
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
