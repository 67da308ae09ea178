/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs: opening and closing, and the fabric's thread.
 *
 * The thread takes what the connection manager and the devices report, and looks now and then at
 * channels that wait for something nobody reports: a send queue that runs empty, a queue pair that
 * failed while its user sleeps.
 */
#include <errno.h>
#include <malloc.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <assert.h>
#include <dirent.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/verbs/verbs_impl.h"

#define DEVICES_DIR "/sys/class/infiniband"
#define MANAGER_PATH "/dev/infiniband/rdma_cm"
#define WAKEUPS 16

/* ---- descriptors ---- */

void verbs_fd_raise(int fd)
{
	const uint64_t one = 1;

	/* Cannot fail: the counter is far from its end. */
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void verbs_fd_clear(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
		;
}

int verbs_fd_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* ---- the thread ---- */

void verbs_kick(struct verbs *verbs)
{
	verbs_fd_raise(verbs->kick);
}

/* How long the thread may sleep, in ms; -1: until something is reported. */
static int tick(struct verbs *verbs)
{
	const uint64_t now = clock_now_ns();
	struct verbs_chan *chan;
	int soonest = -1;

	LIST_FOREACH(chan, &verbs->chans, link)
	{
		int ms = verbs_chan_tick(chan, now);

		if (ms >= 0 && (soonest < 0 || ms < soonest))
			soonest = ms;
	}
	return soonest;
}

static void run(void *arg)
{
	struct verbs *verbs = arg;
	struct epoll_event ready[WAKEUPS];
	int timeout_ms = -1;

	while (!atomic_load(&verbs->stop)) {
		struct verbs_device *device;
		struct verbs_eq *eq;

		/* Only wakes: an object may be gone before we have the lock, so all are looked at.
		 */
		if (epoll_wait(verbs->epoll, ready, WAKEUPS, timeout_ms) < 0 && errno != EINTR)
			log_error("verbs: epoll_wait: error %d", errno);
		verbs_fd_clear(verbs->kick);
		pthread_mutex_lock(&verbs->lock);
		LIST_FOREACH(eq, &verbs->eqs, link)
		verbs_cm_events(verbs, eq);
		LIST_FOREACH(device, &verbs->devices, link)
		verbs_device_events(verbs, device);
		timeout_ms = tick(verbs);
		pthread_mutex_unlock(&verbs->lock);
	}
}

/* ---- the fabric ---- */

static void verbs_close(struct fabric *base)
{
	struct verbs *verbs = (struct verbs *)base;

	assert(LIST_EMPTY(&verbs->eqs) && LIST_EMPTY(&verbs->chans) && LIST_EMPTY(&verbs->devices));
	atomic_store(&verbs->stop, true);
	verbs_kick(verbs);
	worker_stop(&verbs->thread);
	close(verbs->kick);
	close(verbs->epoll);
	pthread_mutex_destroy(&verbs->lock);
	free(verbs);
}

static const struct fabric_ops verbs_ops = {
	.name = "verbs",
	.close = verbs_close,
	.eq_new = verbs_eq_new,
	.eq_free = verbs_eq_free,
	.eq_fd = verbs_eq_fd,
	.eq_get = verbs_eq_get,
	.listen = verbs_listen,
	.listener_addr = verbs_listener_addr,
	.listener_free = verbs_listener_free,
	.dial = verbs_dial,
	.chan_setup = verbs_chan_setup,
	.chan_connect = verbs_chan_connect,
	.chan_accept = verbs_chan_accept,
	.chan_reject = verbs_chan_reject,
	.chan_disconnect = verbs_chan_disconnect,
	.chan_free = verbs_chan_free,
	.chan_describe = verbs_chan_describe,
	.pd_new = verbs_pd_new,
	.pd_free = verbs_pd_free,
	.mr_new = verbs_mr_new,
	.mr_free = verbs_mr_free,
	.cq_new = verbs_cq_new,
	.cq_free = verbs_cq_free,
	.cq_poll = verbs_cq_poll,
	.cq_arm = verbs_cq_arm,
	.cq_fd = verbs_cq_fd,
	.cq_ack = verbs_cq_ack,
	.post_send = verbs_post_send,
	.post_recv = verbs_post_recv,
};

/* Asks the kernel first: without a device libibverbs and librdmacm have warnings to print. */
static int look_for_devices(void)
{
	DIR *dir = opendir(DEVICES_DIR);
	const struct dirent *entry;
	int err = -ENODEV;

	if (!dir)
		return -ENODEV;
	while (err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = 0;
	closedir(dir);
	if (!err && access(MANAGER_PATH, R_OK | W_OK) < 0)
		err = errno == EACCES || errno == EPERM ? -EACCES : -ENODEV;
	return err;
}

/*
 * librdmacm before 52 sorts its devices by the low half of the difference of their addresses.  When
 * one comes or goes it thus takes another, from elsewhere in memory, for a new one, and opens it
 * again: the next channel of a session has another device than its first, and cannot share anything
 * with it.  In one arena they lie near enough; the threads that will see devices are started after
 * this.
 */
static void keep_devices_near(void)
{
	mallopt(M_ARENA_MAX, 1);
}

int verbs_open(struct fabric **out)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct verbs *verbs;
	int err = look_for_devices();

	if (err)
		return err;
	verbs = calloc(1, sizeof *verbs);
	if (!verbs)
		return -ENOMEM;
	verbs->base.ops = &verbs_ops;
	keep_devices_near();
	pthread_mutex_init(&verbs->lock, NULL);
	verbs->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (verbs->epoll < 0) {
		err = -errno;
		goto err_verbs;
	}
	verbs->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (verbs->kick < 0) {
		err = -errno;
		goto err_epoll;
	}
	if (epoll_ctl(verbs->epoll, EPOLL_CTL_ADD, verbs->kick, &event) < 0) {
		err = -errno;
		goto err_kick;
	}
	err = worker_start(&verbs->thread, "verbs", run, verbs);
	if (err)
		goto err_kick;
	*out = &verbs->base;
	return 0;

err_kick:
	close(verbs->kick);
err_epoll:
	close(verbs->epoll);
err_verbs:
	pthread_mutex_destroy(&verbs->lock);
	free(verbs);
	return err;
}
