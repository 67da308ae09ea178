/* SPDX-License-Identifier: Apache-2.0 */
/* base/lookup: what other processes answer is what would be answered here; and when they are gone.
 */
#include "base/lookup.h"
#include "base/log.h"
#include "base/opener_wire.h"
#include "tests/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 40u /* some of which have names on every host */
#define THREADS 16u /* that ask at once: more than there are connections */

struct answer {
	int err, back_err;
	char name[LOOKUP_NAME_MAX + 1];
	uint32_t id;
};

static void ask(enum lookup_kind kind, uint32_t number, struct answer *a)
{
	memset(a, 0, sizeof *a);
	a->err = lookup_name(kind, number, a->name);
	a->back_err = lookup_id(kind, a->err ? "nobody-is-called-this" : a->name, &a->id);
}

static void ask_all(struct answer out[2][NUMBERS])
{
	for (uint32_t i = 0; i < NUMBERS; i++) {
		ask(LOOKUP_USER, i, &out[0][i]);
		ask(LOOKUP_GROUP, i, &out[1][i]);
	}
}

static struct answer here[2][NUMBERS];

static void as_here(void)
{
	char name[LOOKUP_NAME_MAX + 1], long_name[LOOKUP_NAME_MAX + 2];
	uint32_t id = 7;

	CHECK_EQ(lookup_name(LOOKUP_USER, 0, name), 0);
	CHECK(!strcmp(name, "root"));
	CHECK_EQ(lookup_id(LOOKUP_USER, "root", &id), 0);
	CHECK_EQ(id, 0);
	CHECK_EQ(lookup_id(LOOKUP_GROUP, "root", &id), 0);
	id = 7;
	CHECK_EQ(lookup_id(LOOKUP_GROUP, "nobody-is-called-this", &id), -ENOENT);
	CHECK_EQ(lookup_id(LOOKUP_USER, "", &id), -ENOENT);
	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	CHECK_EQ(lookup_id(LOOKUP_USER, long_name, &id), -ENOENT);
	CHECK_EQ(id, 7);
	CHECK_EQ(lookup_name(LOOKUP_USER, 4000000000u, name), -ENOENT);
	CHECK_EQ(lookup_name(LOOKUP_GROUP, 4000000000u, name), -ENOENT);
}

#define ENDS_AT 4242u /* who is asked for it ends */

/* A line: what comes is looked at, and answered by lookup_serve. */
static void serve(int fd)
{
	uint32_t question[3]; /* kind, by_name, id */

	for (;;) {
		int ends[2];

		if (recv(fd, question, sizeof question, MSG_PEEK) <= 0 || question[2] == ENDS_AT)
			_exit(0);
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
			abort();
		{
			static char bytes[4096];
			ssize_t n = recv(fd, bytes, sizeof bytes, 0);

			send(ends[0], bytes, (size_t)n, 0);
			shutdown(ends[0], SHUT_WR);
			lookup_serve(ends[1]);
			n = recv(ends[0], bytes, sizeof bytes, 0);
			send(fd, bytes, (size_t)n, 0);
		}
		close(ends[0]);
		close(ends[1]);
	}
}

/* Forks who keeps the lines, and tells where of each process that it starts. */
static pid_t keep(int *keeper, int told[2])
{
	int ends[2];
	pid_t pid;
	char byte;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || pipe(told))
		abort();
	fflush(stdout);
	pid = fork();
	*keeper = ends[0];
	if (pid)
		return close(ends[1]), pid;
	close(ends[0]);
	signal(SIGCHLD, SIG_IGN);
	while (recv(ends[1], &byte, 1, 0) == 1) {
		int line[2];
		pid_t one;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line))
			abort();
		one = fork();
		if (!one) {
			close(ends[1]);
			close(line[0]);
			serve(line[1]);
		}
		if (write(told[1], &one, sizeof one) != sizeof one)
			abort();
		opener_send(ends[1], &byte, 1, line, 1);
		close(line[0]);
		close(line[1]);
	}
	_exit(0);
}

static pid_t next_started(int told)
{
	pid_t pid;

	if (read(told, &pid, sizeof pid) != sizeof pid)
		abort();
	return pid;
}

static void no_question(void)
{
	static const size_t sizes[] = {1, 4, 100, 1024};

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char byte, junk[1024];
		int fds[2];

		memset(junk, 0xff, sizeof junk);
		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
		CHECK_EQ(send(fds[0], junk, sizes[i], 0), sizes[i]);
		lookup_serve(fds[1]); /* comes back */
		close(fds[1]);
		CHECK_EQ(recv(fds[0], &byte, 1, 0), 0);
		close(fds[0]);
	}
}

static void *in_thread(void *arg)
{
	static _Thread_local struct answer there[2][NUMBERS];

	ask_all(there);
	*(int *)arg = memcmp(there, here, sizeof here);
	return NULL;
}

static void known_elsewhere(void)
{
	pthread_t threads[THREADS];
	int keeper, told[2], differ[THREADS], status;
	char name[LOOKUP_NAME_MAX + 1] = "as it was";
	unsigned started = 0;
	uint32_t id;
	pid_t pid = keep(&keeper, told);
	struct pollfd more = {told[0], POLLIN, 0};

	ask_all(here);
	CHECK(pid > 0);
	lookup_elsewhere(keeper);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, in_thread, &differ[i]));
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(differ[i], 0);
	}
	/* those that are killed are replaced, and nobody notices */
	log_setup("test", LOG_LEVEL_ERROR);
	for (unsigned i = 0; i < LOOKUP_LINES; i++)
		kill(next_started(told[0]), SIGKILL);
	CHECK_EQ(lookup_name(LOOKUP_USER, 0, name), 0);
	CHECK(!strcmp(name, "root"));
	CHECK_EQ(lookup_id(LOOKUP_GROUP, "root", &id), 0);
	next_started(told[0]);
	/* what ends whoever is asked is asked twice, and after some of it there is nobody for a
	 * while */
	strcpy(name, "as it was");
	for (unsigned i = 0; i < LOOKUP_LOST_MAX; i++)
		CHECK_EQ(lookup_name(LOOKUP_USER, ENDS_AT, name), -ECONNRESET);
	CHECK_EQ(lookup_name(LOOKUP_USER, 0, name), -ECONNRESET);
	CHECK_EQ(lookup_id(LOOKUP_GROUP, "root", &id), -ECONNRESET);
	for (; poll(&more, 1, 0) == 1; started++)
		next_started(told[0]);
	CHECK(started && started <= LOOKUP_LOST_MAX);
	/* nor is there anything without who keeps them */
	shutdown(keeper, SHUT_WR);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK_EQ(lookup_name(LOOKUP_USER, 0, name), -ECONNRESET);
	CHECK(!strcmp(name, "as it was"));
}

static void *ask_and_lose(void *arg)
{
	char name[LOOKUP_NAME_MAX + 1];

	(void)arg;
	lookup_name(LOOKUP_USER, ENDS_AT, name);
	return NULL;
}

/* Who asks: one that needs a new line, and, once the keeper was asked for it, another one. */
static void ask_beside(int keeper, int go, int answered)
{
	char name[LOOKUP_NAME_MAX + 1] = "", byte = 0;
	pthread_t thread;

	log_setup("test", LOG_LEVEL_ERROR);
	lookup_elsewhere(keeper);
	if (pthread_create(&thread, NULL, ask_and_lose, NULL) || read(go, &byte, 1) != 1)
		_exit(2);
	byte = !lookup_name(LOOKUP_USER, 0, name) && !strcmp(name, "root");
	if (write(answered, &byte, 1) != 1)
		_exit(2);
	pthread_join(thread, NULL);
	_exit(0);
}

/* One process fewer than there are lines; answers to those who ask for more come later. */
static void others_ask_while_a_line_is_made(void)
{
	int ends[2], go[2], answered[2], status;
	struct pollfd there;
	pid_t pid, serves[LOOKUP_LINES - 1];
	char byte = 0;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	CHECK(!pipe(go) && !pipe(answered));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		ask_beside(ends[1], go[0], answered[1]);
	}
	close(ends[1]);
	close(answered[1]);
	for (unsigned i = 0; i < LOOKUP_LINES; i++) {
		int line[2];

		CHECK_EQ(recv(ends[0], &byte, 1, 0), 1);
		if (i == LOOKUP_LINES - 1) {
			CHECK(!opener_send(ends[0], &byte, 1, NULL, 0));
			break;
		}
		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line));
		serves[i] = fork();
		if (!serves[i]) {
			close(ends[0]);
			close(line[0]);
			serve(line[1]);
		}
		CHECK(!opener_send(ends[0], &byte, 1, line, 1));
		close(line[0]);
		close(line[1]);
	}
	/* this one is not answered until the other question is */
	CHECK_EQ(recv(ends[0], &byte, 1, 0), 1);
	CHECK_EQ(write(go[1], "", 1), 1);
	there = (struct pollfd){answered[0], POLLIN, 0};
	CHECK_EQ(poll(&there, 1, 60000), 1);
	byte = 0;
	CHECK(there.revents & POLLIN && read(answered[0], &byte, 1) == 1 && byte);
	close(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	for (unsigned i = 0; i < LOOKUP_LINES - 1; i++)
		CHECK_EQ(waitpid(serves[i], &status, 0), serves[i]);
	close(go[0]);
	close(go[1]);
	close(answered[0]);
}

static void ask_once(int keeper, int go, int answered)
{
	char name[LOOKUP_NAME_MAX + 1] = "", byte;

	log_setup("test", LOG_LEVEL_ERROR);
	lookup_elsewhere(keeper);
	byte = !lookup_name(LOOKUP_USER, 0, name) && !strcmp(name, "root");
	_exit(write(answered, &byte, 1) != 1 || read(go, &byte, 1) != 1);
}

/* In place of the one that has ended comes another: the rest stay. */
static void others_stay_where_one_ends(void)
{
	int ends[2], go[2], answered[2], lines[LOOKUP_LINES + 1][2], status;
	pid_t pid, serves;
	char byte = 0;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	CHECK(!pipe(go) && !pipe(answered));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		ask_once(ends[1], go[0], answered[1]);
	}
	close(ends[1]);
	for (unsigned i = 0; i <= LOOKUP_LINES; i++) {
		CHECK_EQ(recv(ends[0], &byte, 1, 0), 1);
		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines[i]));
		CHECK(!opener_send(ends[0], &byte, 1, &lines[i][0], 1));
		close(lines[i][0]);
		if (i == LOOKUP_LINES - 1) /* the one that is asked */
			close(lines[i][1]);
	}
	serves = fork();
	if (!serves)
		serve(lines[LOOKUP_LINES][1]);
	close(lines[LOOKUP_LINES][1]);
	CHECK(read(answered[0], &byte, 1) == 1 && byte);
	for (unsigned i = 0; i < LOOKUP_LINES - 1; i++) {
		CHECK_EQ(recv(lines[i][1], &byte, 1, MSG_DONTWAIT), -1); /* not its end */
		close(lines[i][1]);
	}
	CHECK_EQ(write(go[1], "", 1), 1);
	close(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK_EQ(waitpid(serves, &status, 0), serves);
	for (unsigned i = 0; i < 2; i++) {
		close(go[i]);
		close(answered[i]);
	}
}

/* Asks where nothing can be sent, and then where it can. */
static void ask_while_short(int log)
{
	int none = open("/dev/null", O_RDWR), keeper, told[2];
	char name[LOOKUP_NAME_MAX + 1];

	log_setup("test", LOG_LEVEL_WARNING);
	if (dup2(log, STDERR_FILENO) < 0)
		_exit(2);
	lookup_elsewhere(none); /* -ENOTSOCK, for another that passes */
	for (unsigned i = 0; i < 20; i++)
		if (lookup_name(LOOKUP_USER, 0, name) != -ECONNRESET)
			_exit(3);
	keep(&keeper, told);
	_exit(dup2(keeper, none) < 0 || lookup_name(LOOKUP_USER, 0, name) || strcmp(name, "root"));
}

static void what_is_short_is_not_gone(void)
{
	char log[4096] = "";
	int ends[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	CHECK(!pipe(ends));
	fflush(stdout);
	pid = fork();
	if (!pid)
		ask_while_short(ends[1]);
	close(ends[1]);
	while ((n = read(ends[0], log + len, sizeof log - 1 - len)) > 0)
		len += (size_t)n;
	close(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(strstr(log, "no process can be started"));
	CHECK(strchr(log, '\n') == log + len - 1); /* said once, and nothing else */
}

HARNESS_MAIN({"others ask while a line is made", others_ask_while_a_line_is_made},
	{"others stay where one ends", others_stay_where_one_ends},
	{"what is short is not gone", what_is_short_is_not_gone}, {"as here", as_here},
	{"what is no question", no_question}, {"known elsewhere", known_elsewhere})
