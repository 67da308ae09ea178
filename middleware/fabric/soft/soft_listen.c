/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft_listen: the listeners of the soft fabric.  Accepts, hands what it accepted to
 * the thread whose turn it is, and keeps going when the process is out of descriptors.
 *
 * What a peer says after it was accepted is soft_cm's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/soft/soft_impl.h"

#define BACKLOG 4096
#define ACCEPTS_A_TURN 64
#define PAUSE_MS 100u /* of a listener that has no descriptor to accept with */

static void listener_ready(struct soft_source *, uint32_t events);

static void listener_attach(struct soft_thread *thread, void *arg)
{
	struct soft_listener *listener = arg;
	int err = soft_thread_watch(thread, listener->fd, EPOLLIN, &listener->source);

	if (err) {
		/* As when out of descriptors: try again later. */
		log_error("soft: cannot watch a listener: error %d", -err);
		listener->is_paused = true;
		LIST_INSERT_HEAD(&thread->paused, listener, paused_link);
		thread->resume_ns = clock_now_ns() + PAUSE_MS * NS_PER_MS;
	}
}

static void listener_detach(struct soft_thread *thread, void *arg)
{
	struct soft_listener *listener = arg;

	(void)thread;
	if (listener->is_paused)
		LIST_REMOVE(listener, paused_link);
	listener->is_paused = false;
	close(listener->fd);
	listener->fd = -1;
}

/* A copy of the socket that listens on this address already; -ENOENT: none does. */
static int inherited_socket(const struct soft_config *config, const struct sockaddr *sa)
{
	for (unsigned i = 0; i < config->inherited_count; i++) {
		struct sockaddr_storage bound;
		socklen_t len = sizeof(bound);
		int fd;

		memset(&bound, 0, sizeof(bound));
		if (getsockname(config->inherited[i], (struct sockaddr *)&bound, &len) ||
			memcmp(&bound, sa, soft_addr_bytes(sa)) != 0)
			continue;
		fd = fcntl(config->inherited[i], F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

static int new_socket(const struct sockaddr *sa)
{
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;
	const int one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, sa, soft_addr_bytes(sa)) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int soft_listen(struct fabric_eq *eq, const struct sockaddr *sa, socklen_t len,
	struct fabric_listener **out)
{
	struct soft *soft = (struct soft *)eq->fabric;
	struct soft_listener *listener = calloc(1, sizeof(*listener));
	int err;

	(void)len;
	if (!listener)
		return -ENOMEM;
	listener->fd = inherited_socket(&soft->config, sa);
	if (listener->fd == -ENOENT)
		listener->fd = new_socket(sa);
	if (listener->fd < 0) {
		err = listener->fd;
		goto err_listener;
	}
	listener->base.fabric = eq->fabric;
	listener->source.ready = listener_ready;
	listener->soft = soft;
	listener->eq = (struct soft_eq *)eq;
	listener->thread = &soft->threads[atomic_fetch_add(&soft->turn, 1) % soft->thread_count];
	atomic_init(&listener->refs, 1);
	pthread_mutex_init(&listener->lock, NULL);
	soft_thread_call(listener->thread, listener_attach, listener);
	*out = &listener->base;
	return 0;

err_listener:
	free(listener);
	return err;
}

int soft_listener_addr(const struct fabric_listener *listener, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	return getsockname(((const struct soft_listener *)listener)->fd, (struct sockaddr *)out,
		       &len) < 0
		       ? -errno
		       : 0;
}

void soft_listener_put(struct soft_listener *listener)
{
	if (!listener || atomic_fetch_sub(&listener->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&listener->lock);
	free(listener);
}

void soft_listener_free(struct fabric_listener *fabric_listener)
{
	struct soft_listener *listener = (struct soft_listener *)fabric_listener;

	pthread_mutex_lock(&listener->lock);
	listener->closed = true;
	pthread_mutex_unlock(&listener->lock);
	soft_thread_call(listener->thread, listener_detach, listener);
	soft_eq_drop_requests(listener->eq, fabric_listener);
	soft_listener_put(listener);
}

static void listener_pause(struct soft_listener *listener)
{
	struct soft_thread *thread = listener->thread;

	epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, listener->fd, NULL);
	listener->is_paused = true;
	LIST_INSERT_HEAD(&thread->paused, listener, paused_link);
	thread->resume_ns = clock_now_ns() + PAUSE_MS * NS_PER_MS;
}

/* Out of descriptors: he who has said nothing longest makes room, or all wait a little. */
static bool listener_make_room(struct soft_listener *listener, int error)
{
	if (!TAILQ_EMPTY(&listener->thread->half_open)) {
		soft_cm_drop_half_open(listener->thread, "out of descriptors");
		return true;
	}
	if (!listener->has_warned)
		log_warning("soft: cannot accept (error %d), trying again every %u ms", error,
			PAUSE_MS);
	listener->has_warned = true;
	listener_pause(listener);
	return false;
}

static void listener_take(
	struct soft_listener *listener, int fd, const struct sockaddr_storage *peer)
{
	struct soft_chan *chan;

	if (soft_chan_new(listener->soft, &chan) < 0) {
		close(fd);
		return;
	}
	soft_socket_tune(fd);
	chan->fd = fd;
	chan->base.peer = *peer;
	chan->orphan = true; /* until the user has the request */
	atomic_fetch_add(&listener->refs, 1);
	chan->listener = listener;
	chan->commands = SOFT_COMMAND_ADOPT;
	soft_chan_kick(chan);
}

static void listener_ready(struct soft_source *source, uint32_t events)
{
	struct soft_listener *listener =
		(struct soft_listener *)((char *)source - offsetof(struct soft_listener, source));

	(void)events;
	for (int i = 0; i < ACCEPTS_A_TURN && !listener->is_paused; i++) {
		struct sockaddr_storage peer = {0};
		socklen_t len = sizeof(peer);
		int fd = accept4(
			listener->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			listener->has_warned = false;
			listener_take(listener, fd, &peer);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			if (!listener_make_room(listener, errno))
				return;
		}
		/* Else the peer is gone already, or its network: on to the next. */
	}
}

void soft_listeners_resume(struct soft_thread *thread, uint64_t now)
{
	struct soft_listener *listener;

	if (thread->resume_ns > now)
		return;
	while ((listener = LIST_FIRST(&thread->paused))) {
		LIST_REMOVE(listener, paused_link);
		listener->is_paused = false;
		listener_attach(thread, listener);
		if (listener->is_paused)
			return;
	}
}
