/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/serve/poller and rftpd/detach's pid file. */
#include "rftpd/detach.h"
#include "rftpd/serve/poller.h"
#include "tests/harness.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct bell {
	struct poller *poller;
	struct watch watch;
	struct watch *other; /* is removed when this one rings */
	int fd;
	unsigned rung;
};

static void ring(void *owner)
{
	struct bell *b = owner;

	b->rung++;
	if (b->other)
		poller_remove(b->poller, b->other);
}

static void each_ready_one_is_called(void)
{
	struct bell bells[3] = {0};
	struct poller p;

	CHECK_EQ(poller_init(&p), 0);
	for (int i = 0; i < 3; i++) {
		bells[i].poller = &p;
		bells[i].fd = eventfd(i < 2, EFD_CLOEXEC);
		bells[i].watch.fd = -1;
		CHECK(!poller_has(&bells[i].watch));
		CHECK_EQ(poller_add(&p, &bells[i].watch, bells[i].fd, ring, &bells[i]), 0);
		CHECK(poller_has(&bells[i].watch));
	}
	CHECK_EQ(poller_wait(&p, -1), 0);
	CHECK_EQ(bells[0].rung, 1);
	CHECK_EQ(bells[1].rung, 1);
	CHECK_EQ(bells[2].rung, 0);

	/* whichever comes first removes the other, whose event waits already */
	bells[0].other = &bells[1].watch;
	bells[1].other = &bells[0].watch;
	CHECK_EQ(poller_wait(&p, -1), 0);
	CHECK_EQ(bells[0].rung + bells[1].rung, 3);

	for (int i = 0; i < 3; i++) {
		poller_remove(&p, &bells[i].watch);
		poller_remove(&p, &bells[i].watch);
		close(bells[i].fd);
	}
	CHECK_EQ(poller_wait(&p, 0), 0);
	CHECK_EQ(bells[0].rung + bells[1].rung + bells[2].rung, 3);
	poller_fini(&p);
}

static void one_process_holds_the_pid_file(void)
{
	const char *top = getenv("TMPDIR");
	struct pid_file ours, theirs;
	char dir[256], path[300];
	long number = 0;
	FILE *f;

	snprintf(dir, sizeof dir, "%s/rftp-pid-XXXXXX", top ? top : "/tmp");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/pid", dir);
	/* one that a crash has left is taken over */
	f = fopen(path, "w");
	fputs("123456789 and more\n", f);
	fclose(f);
	CHECK_EQ(pid_file_open(&ours, path), 0);
	CHECK_EQ(pid_file_open(&theirs, path), -EEXIST);
	pid_file_close(&theirs); /* must not remove ours */
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%ld\n", &number) == 1 && feof(f));
	fclose(f);
	CHECK_EQ(number, getpid());
	pid_file_close(&ours);
	pid_file_close(&ours);
	CHECK(access(path, F_OK) < 0);
	rmdir(dir);
	CHECK_EQ(pid_file_open(&ours, path), -ENOENT);
	CHECK_EQ(ours.fd, -1);
}

/* What the process that started a daemon learns: 0 by its word, else its exit code. */
static int detached(int (*child)(int fd))
{
	int fd, code = -1, r = detach_start(&fd, &code);

	if (!r)
		_exit(child(fd));
	return r == 1 ? code : -1;
}

static int serves(int fd)
{
	return detach_finish(fd) ? 1 : 5;
}

static int fails(int fd)
{
	close(fd);
	return 7;
}

static int ends_without_a_word(int fd)
{
	(void)fd;
	return 0;
}

static void the_starter_learns_how_it_went(void)
{
	fflush(stdout);
	CHECK_EQ(detached(serves), 0);
	CHECK_EQ(detached(fails), 7);
	CHECK_EQ(detached(ends_without_a_word), 1);
	while (wait(NULL) > 0)
		;
}

HARNESS_MAIN({"each ready one is called", each_ready_one_is_called},
	{"one process holds the pid file", one_process_holds_the_pid_file},
	{"the starter learns how it went", the_starter_learns_how_it_went})
