/* SPDX-License-Identifier: Apache-2.0 */
/* base/lookup: what another process answers is what would be answered here; and when it is gone. */
#include "base/lookup.h"
#include "base/log.h"
#include "tests/harness.h"

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

static pid_t serve(int fds[LOOKUP_LINES])
{
	int pairs[LOOKUP_LINES][2];
	pid_t pid;

	for (unsigned i = 0; i < LOOKUP_LINES; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]))
			abort();
	fflush(stdout);
	pid = fork();
	for (unsigned i = 0; i < LOOKUP_LINES; i++) {
		close(pairs[i][!pid ? 0 : 1]);
		fds[i] = pairs[i][!pid ? 1 : 0];
	}
	if (pid)
		return pid;
	for (unsigned i = 1; i < LOOKUP_LINES; i++)
		if (!fork()) {
			for (unsigned k = 0; k < LOOKUP_LINES; k++)
				if (k != i)
					close(fds[k]);
			lookup_serve(fds[i]);
			_exit(0);
		}
	for (unsigned k = 1; k < LOOKUP_LINES; k++)
		close(fds[k]);
	lookup_serve(fds[0]);
	while (wait(NULL) > 0)
		;
	_exit(0);
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
	int fds[LOOKUP_LINES], differ[THREADS], status;
	char name[LOOKUP_NAME_MAX + 1] = "as it was";
	uint32_t id;
	pid_t pid = serve(fds);

	ask_all(here);
	CHECK(pid > 0);
	lookup_elsewhere(fds);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, in_thread, &differ[i]));
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(differ[i], 0);
	}
	/* with the process goes the answer, and nobody waits for one */
	for (unsigned i = 0; i < LOOKUP_LINES; i++)
		shutdown(fds[i], SHUT_WR);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	log_setup("test", LOG_LEVEL_ERROR);
	for (unsigned i = 0; i < 2 * LOOKUP_LINES; i++) {
		CHECK_EQ(lookup_name(LOOKUP_USER, 0, name), -ECONNRESET);
		CHECK_EQ(lookup_id(LOOKUP_GROUP, "root", &id), -ECONNRESET);
	}
	CHECK(!strcmp(name, "as it was"));
}

HARNESS_MAIN({"as here", as_here}, {"what is no question", no_question},
	{"known elsewhere", known_elsewhere})
