/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/rftpd_posts: the daemon, which counts the requests that its threads post and the CPU
 * time that this takes them, in the file that RFTP_TEST_POSTS names: two 64-bit numbers as the
 * machine has them, requests and ns, from the start on.
 *
 * With rxe, and mostly with siw, the device's work is done by who posts, within the post.  So what
 * is left of the daemon's CPU time is its own.  It is linked with --wrap=fabric_post_send.
 */
#include "fabric/fabric.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int __real_fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list);
int __wrap_fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list);

static struct posts {
	_Atomic uint64_t requests, ns;
} unseen, *posts = &unseen;

/* Before the daemon confines itself. */
__attribute__((constructor)) static void show_posts(void)
{
	const char *path = getenv("RFTP_TEST_POSTS");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *map;

	if (fd < 0)
		return;
	map = ftruncate(fd, sizeof *posts)
		      ? MAP_FAILED
		      : mmap(NULL, sizeof *posts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	posts = map;
}

static uint64_t thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int __wrap_fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list)
{
	uint64_t from = thread_ns(), count = 0;
	int r = __real_fabric_post_send(chan, list);

	for (; !r && list; list = list->next)
		count++;
	posts->requests += count;
	posts->ns += thread_ns() - from;
	return r;
}
