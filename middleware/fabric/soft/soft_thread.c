/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_thread: the progress threads of the soft fabric: each an epoll loop over the
 * sockets of its channels and listeners.
 *
 * A round: take what user threads left (calls, kicked channels), wait for the sockets (not at all
 * while some channel has more to do), note what is ready, drop who is late, give every channel with
 * something to do one bounded turn.  Sockets are watched edge-triggered and registered once: that a
 * socket may be read or written is remembered in the channel until it says EAGAIN.
 *
 * Knows channels only by their turns; nothing of FPDUs.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/soft/soft_impl.h"

#define EVENTS_MAX 64

static void thread_wake(struct soft_thread *thread)
{
	const uint64_t one = 1;

	/* Could only fail if the counter were full, after 2^64 wakings. */
	if (write(thread->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void wake_ready(struct soft_source *source, uint32_t events)
{
	/* Edge-triggered, so every write wakes; the counter is never read and never full. */
	(void)source;
	(void)events;
}

int soft_thread_watch(
	struct soft_thread *thread, int fd, uint32_t events, struct soft_source *source)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void soft_thread_call(
	struct soft_thread *thread, void (*run)(struct soft_thread *, void *arg), void *arg)
{
	struct soft_call call = {.run = run, .arg = arg};
	bool asleep;

	pthread_mutex_lock(&thread->lock);
	STAILQ_INSERT_TAIL(&thread->calls, &call, link);
	asleep = thread->asleep;
	thread->asleep = false;
	if (asleep)
		thread_wake(thread);
	while (!call.done)
		pthread_cond_wait(&thread->called, &thread->lock);
	pthread_mutex_unlock(&thread->lock);
}

void soft_chan_kick(struct soft_chan *chan)
{
	struct soft_thread *thread = chan->thread;
	bool asleep = false;

	/* Who sets it sees to it that the thread looks; it is cleared before the thread looks. */
	if (atomic_exchange(&chan->kicked, true))
		return;
	pthread_mutex_lock(&thread->lock);
	TAILQ_INSERT_TAIL(&thread->kicked, chan, kick_link);
	asleep = thread->asleep;
	thread->asleep = false;
	pthread_mutex_unlock(&thread->lock);
	if (asleep)
		thread_wake(thread);
}

void soft_thread_run_soon(struct soft_thread *thread, struct soft_chan *chan)
{
	if (chan->running)
		return;
	chan->running = true;
	TAILQ_INSERT_TAIL(&thread->run, chan, run_link);
}

/* Takes what user threads have left.  May the thread sleep afterwards? */
static bool thread_take(struct soft_thread *thread, bool *stop)
{
	bool idle = TAILQ_EMPTY(&thread->run);
	struct soft_call *call;
	struct soft_chan *chan;

	pthread_mutex_lock(&thread->lock);
	while ((call = STAILQ_FIRST(&thread->calls))) {
		STAILQ_REMOVE_HEAD(&thread->calls, link);
		pthread_mutex_unlock(&thread->lock);
		call->run(thread, call->arg);
		pthread_mutex_lock(&thread->lock);
		call->done = true;
		pthread_cond_broadcast(&thread->called);
		idle = false;
	}
	while ((chan = TAILQ_FIRST(&thread->kicked))) {
		TAILQ_REMOVE(&thread->kicked, chan, kick_link);
		atomic_store(&chan->kicked, false);
		pthread_mutex_unlock(&thread->lock);
		soft_chan_kicked(chan);
		pthread_mutex_lock(&thread->lock);
		idle = false;
	}
	*stop = thread->stop;
	thread->asleep = idle;
	pthread_mutex_unlock(&thread->lock);
	return idle;
}

/* One turn for each channel that is on the list now. */
static void thread_turns(struct soft_thread *thread)
{
	struct soft_chan *last = TAILQ_LAST(&thread->run, soft_chan_list);
	struct soft_chan *chan;

	while (last && (chan = TAILQ_FIRST(&thread->run))) {
		TAILQ_REMOVE(&thread->run, chan, run_link);
		chan->running = false;
		if (soft_chan_turn(chan))
			soft_thread_run_soon(thread, chan);
		if (chan == last)
			break;
	}
}

static void thread_bury(struct soft_thread *thread)
{
	struct soft_chan *chan;

	while ((chan = TAILQ_FIRST(&thread->doomed))) {
		TAILQ_REMOVE(&thread->doomed, chan, list_link);
		soft_chan_free_now(chan);
	}
}

static void thread_run(void *arg)
{
	struct soft_thread *thread = arg;
	struct epoll_event events[EVENTS_MAX];
	bool stop;

	for (;;) {
		bool idle = thread_take(thread, &stop);
		int timeout = soft_cm_timers(thread);
		int count;

		thread_bury(thread);
		if (stop)
			return;
		count = epoll_wait(thread->epoll_fd, events, EVENTS_MAX, idle ? timeout : 0);
		if (idle) {
			pthread_mutex_lock(&thread->lock);
			thread->asleep = false;
			pthread_mutex_unlock(&thread->lock);
		}
		for (int i = 0; i < count; i++) {
			struct soft_source *source = events[i].data.ptr;

			source->ready(source, events[i].events);
		}
		if (count < 0 && errno != EINTR)
			log_error("soft: epoll_wait: error %d", errno);
		thread_turns(thread);
	}
}

static void lists_init(struct soft_thread *thread)
{
	STAILQ_INIT(&thread->calls);
	TAILQ_INIT(&thread->kicked);
	TAILQ_INIT(&thread->run);
	TAILQ_INIT(&thread->half_open);
	TAILQ_INIT(&thread->connecting);
	TAILQ_INIT(&thread->linger);
	TAILQ_INIT(&thread->unheard);
	TAILQ_INIT(&thread->doomed);
	TAILQ_INIT(&thread->others);
	LIST_INIT(&thread->paused);
}

int soft_thread_start(struct soft_thread *thread, struct soft *soft)
{
	int err;

	thread->soft = soft;
	thread->wake.ready = wake_ready;
	lists_init(thread);
	thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (thread->epoll_fd < 0)
		return -errno;
	thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (thread->wake_fd < 0) {
		err = -errno;
		goto err_epoll;
	}
	err = soft_thread_watch(thread, thread->wake_fd, EPOLLIN | EPOLLET, &thread->wake);
	if (err)
		goto err_wake;
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->called, NULL);
	err = worker_start(&thread->worker, "rftp-soft", thread_run, thread);
	if (err)
		goto err_lock;
	return 0;

err_lock:
	pthread_cond_destroy(&thread->called);
	pthread_mutex_destroy(&thread->lock);
err_wake:
	close(thread->wake_fd);
err_epoll:
	close(thread->epoll_fd);
	return err;
}

void soft_thread_stop(struct soft_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	thread->stop = true;
	thread_wake(thread);
	pthread_mutex_unlock(&thread->lock);
	worker_stop(&thread->worker);
}

/* What nobody owns any more: peers that never finished, and last words that were not taken. */
static void thread_clear(struct soft_thread *thread)
{
	struct soft_chan_list *lists[] = {&thread->half_open, &thread->connecting, &thread->linger,
		&thread->unheard, &thread->others};
	struct soft_chan *chan;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		while ((chan = TAILQ_FIRST(lists[i])))
			soft_chan_dispose(chan);
	/* Accepted by another thread just before the end, and not adopted here. */
	while ((chan = TAILQ_FIRST(&thread->kicked)))
		soft_chan_dispose(chan);
	thread_bury(thread);
}

void soft_thread_fini(struct soft_thread *thread)
{
	thread_clear(thread);
	pthread_cond_destroy(&thread->called);
	pthread_mutex_destroy(&thread->lock);
	close(thread->wake_fd);
	close(thread->epoll_fd);
}
