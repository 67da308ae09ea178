/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sums: see sums.h.
 *
 * The main thread asks the servers, one after the other, while threads read what is here; each
 * file's record is its thread's until it is marked as done, under the lock.
 */
#include "rftp/sum/sums.h"

#include "base/clock.h"
#include "base/worker.h"
#include "proto/message_sum.h"
#include "rftp/remote/remote_path.h"
#include "rftp/remote/visit.h"
#include "rftp/sum/sums_tree.h"
#include "rftp/shell/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUMS_THREADS_MAX 4u
#define SUMS_SLICE_NS (NS_PER_MS * 100)
#define SUMS_LIST_BYTES 60000u /* of paths in a request */

struct sums_run {
	struct sums *sums;
	bool *known;         /* of each item; under the lock */
	_Atomic size_t next; /* item that no thread has looked at */
	atomic_bool stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct worker threads[SUMS_THREADS_MAX];
	void (*done)(void *, const struct sums_item *);
	void *ctx;
	size_t told;
	size_t first, asked; /* of the request that is being answered */
};

void sums_fini(struct sums *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->items[i].shown);
		free(s->items[i].path);
		free(s->items[i].text);
	}
	for (size_t i = 0; i < s->servers_count; i++)
		free(s->servers[i]);
	free(s->servers);
	free(s->items);
	s->items = NULL;
	s->servers = NULL;
	s->count = s->room = s->servers_count = 0;
}

int sums_add_item(struct sums *s, const struct sums_item *item)
{
	struct sums_item *items = s->items;

	if (s->count == s->room) {
		items = realloc(items, (s->room * 2 + 16) * sizeof *items);
		if (!items)
			return client_no_memory(s->client);
		s->items = items;
		s->room = s->room * 2 + 16;
	}
	items[s->count] = (struct sums_item){.shown = strdup(item->shown),
		.path = strdup(item->path),
		.server = item->server,
		.remote = item->remote,
		.stream = item->stream};
	if (!items[s->count].shown || !items[s->count].path) {
		free(items[s->count].shown);
		free(items[s->count].path);
		return client_no_memory(s->client);
	}
	s->count++;
	return 0;
}

/* One file, or, if that is wanted, all of a directory. */
static int sums_add_any(struct sums *s, const struct sums_item *item)
{
	return s->recursive ? sums_tree_add(s, item) : sums_add_item(s, item);
}

int sums_add(struct sums *s, const char *shown, const char *path, bool remote)
{
	return sums_add_any(
		s, &(struct sums_item){
			   .shown = (char *)shown, .path = (char *)path, .remote = remote});
}

static bool sums_is_server(const struct url *a, const struct url *b)
{
	return a->ssh == b->ssh && a->port == b->port && !strcmp(a->user, b->user) &&
	       !strcmp(a->host, b->host);
}

/* The server is the one that is open, or will be. */
static int sums_open(struct client *c, const struct url *url)
{
	if (c->session && c->host && c->user && c->ssh == url->ssh && c->port == url->port &&
		!strcmp(c->user, url->user) && !strcmp(c->host, url->host))
		return 0;
	return client_open(c, url);
}

/* One record for each server.  NULL: no memory, reported. */
static const struct url *sums_server(struct sums *s, const struct url *url)
{
	struct url **servers;

	for (size_t i = 0; i < s->servers_count; i++)
		if (sums_is_server(s->servers[i], url))
			return s->servers[i];
	servers = realloc(s->servers, (s->servers_count + 1) * sizeof(struct url *));
	if (servers) {
		s->servers = servers;
		servers[s->servers_count] = malloc(sizeof *url);
	}
	if (!servers || !servers[s->servers_count]) {
		client_no_memory(s->client);
		return NULL;
	}
	*servers[s->servers_count] = *url;
	servers[s->servers_count]->path = servers[s->servers_count]->pattern = NULL;
	return servers[s->servers_count++];
}

static int sums_add_at(struct sums *s, const struct url *url, const char *shown, const char *path)
{
	const struct url *server = sums_server(s, url);

	return server ? sums_add_any(s, &(struct sums_item){.shown = (char *)shown,
						.path = (char *)path,
						.server = server,
						.remote = true})
		      : -ENOMEM;
}

int sums_add_stream(struct sums *s)
{
	const struct sums_item item = {.shown = "-", .path = "-", .stream = true};

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].stream) {
			report_usage(&s->client->report, "standard input can be read once");
			return -EINVAL;
		}
	return sums_add_item(s, &item);
}

static int sums_add_pattern(struct sums *s, const struct url *url, const char *given)
{
	struct client *c = s->client;
	char **paths;
	size_t count;
	int err = remote_glob(c->session, url->pattern, &paths, &count);

	if (err == -ENOENT)
		report_error(&c->report, EXIT_CODE_OK, STATUS_NOT_FOUND, given, "nothing matches");
	if (err)
		return err == -ENOENT ? err : client_report(c, given, err);
	for (size_t i = 0; i < count && !err; i++) {
		struct text shown = {0};

		client_url(c, paths[i], &shown);
		err = sums_add_at(s, url, text_str(&shown), paths[i]);
		text_fini(&shown);
	}
	remote_glob_free(paths, count);
	return err;
}

int sums_add_url(struct sums *s, const char *given)
{
	struct client *c = s->client;
	struct url url;
	int err = visit_parse(c, given, &url);

	if (err)
		return err;
	/* what matches, what is in a directory, and where a user's home is, only the server knows
	 */
	if (url.ssh || s->recursive || remote_has_magic(url.pattern)) {
		err = sums_open(c, &url);
		if (!err)
			err = client_place(c, &url);
	}
	if (!err)
		err = remote_has_magic(url.pattern) ? sums_add_pattern(s, &url, given)
						    : sums_add_at(s, &url, given, url.path);
	url_fini(&url);
	return err;
}

/* ---- here ---- */

static void sums_mark(struct sums_run *run, size_t i)
{
	pthread_mutex_lock(&run->lock);
	run->known[i] = true;
	pthread_cond_broadcast(&run->changed);
	pthread_mutex_unlock(&run->lock);
}

/* Until standard input has something, or there is an end to it; also if that cannot be known. */
static void sums_wait_stream(void)
{
	struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
}

static int sums_step(struct sums_run *run, const struct sums_item *item, struct sum *sum)
{
	if (item->stream)
		sums_wait_stream();
	if (atomic_load(&run->stop) || (item->stream && interrupt_signal()))
		return -ECANCELED;
	return sum_step(sum, clock_now_ns() + SUMS_SLICE_NS);
}

static void sums_file(struct sums_run *run, struct sums_item *item)
{
	/* a FIFO must not be waited for, a terminal not become ours */
	int fd = item->stream ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
			      : open(item->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct sum *sum = NULL;
	int n = fd < 0         ? -errno
		: item->stream ? sum_new_stream(fd, run->sums->algorithm, &sum)
			       : sum_new(fd, run->sums->algorithm, &sum);

	if (!n)
		do
			n = sums_step(run, item, sum);
		while (n > 0);
	item->status = status_from_errno(n);
	if (!n) {
		item->size = sum_done_bytes(sum);
		memcpy(item->sum, sum_result(sum), sum_bytes(run->sums->algorithm));
	}
	sum_free(sum);
}

static void sums_thread(void *arg)
{
	struct sums_run *run = arg;
	size_t i;

	while ((i = atomic_fetch_add(&run->next, 1)) < run->sums->count) {
		if (run->sums->items[i].remote)
			continue;
		sums_file(run, &run->sums->items[i]);
		sums_mark(run, i);
	}
}

/* As many threads as there are files for, and CPUs.  Without any the main thread does it. */
static void sums_start(struct sums_run *run)
{
	unsigned cpus = worker_cpus(), most = cpus < SUMS_THREADS_MAX ? cpus : SUMS_THREADS_MAX;
	size_t here = 0;

	for (size_t i = 0; i < run->sums->count; i++)
		here += !run->sums->items[i].remote;
	for (unsigned i = 0; i < most && i < here; i++)
		if (worker_start(&run->threads[i], "rftp-sum", sums_thread, run))
			break;
	if (here && !run->threads[0].started)
		sums_thread(run);
}

/* Tells what is known, in order. */
static void sums_tell(struct sums_run *run)
{
	while (run->told < run->sums->count) {
		bool known;

		pthread_mutex_lock(&run->lock);
		known = run->known[run->told];
		pthread_mutex_unlock(&run->lock);
		if (!known)
			return;
		run->done(run->ctx, &run->sums->items[run->told++]);
	}
}

/* ---- at a server ---- */

static int sums_found(void *ctx, const struct message_sum *found)
{
	struct sums_run *run = ctx;
	struct sums_item *item;
	size_t at = run->first + found->index;

	if (found->index >= run->asked || run->known[at] ||
		(!found->status && found->sum.len != sum_bytes(run->sums->algorithm)))
		return -EBADMSG;
	item = &run->sums->items[at];
	item->status = found->status;
	item->size = found->size;
	if (found->sum.len)
		memcpy(item->sum, found->sum.data, found->sum.len);
	sums_mark(run, at);
	sums_tell(run);
	return 0;
}

/* What stands together and fits in a request.  How many, in *count.  0 or -errno (reported). */
static int sums_ask(struct sums_run *run, size_t first, size_t *count)
{
	struct sums *s = run->sums;
	struct client *c = s->client;
	uint8_t *list = malloc(SUMS_LIST_BYTES);
	struct message_sum_request request = {.algorithm = s->algorithm};
	size_t len = 0;
	int err = list ? 0 : client_no_memory(c);

	for (*count = 0; !err && first + *count < s->count && *count < MESSAGE_PATHS_MAX;
		(*count)++) {
		const struct sums_item *item = &s->items[first + *count];
		struct wire_bytes path = {(const uint8_t *)item->path, strlen(item->path)};

		if (!item->remote || item->server != s->items[first].server ||
			message_add_path(list, SUMS_LIST_BYTES, &len, path))
			break;
	}
	request.count = (uint16_t)*count;
	request.paths = (struct wire_bytes){list, len};
	if (!err && !*count) { /* a path that cannot cross */
		s->items[first].status = STATUS_NAME;
		sums_mark(run, first);
		*count = 1;
	} else if (!err) {
		run->first = first;
		run->asked = *count;
		if (s->items[first].server)
			err = sums_open(c, s->items[first].server);
		else if (!client_session(c))
			err = -ENOTCONN;
		if (!err) {
			err = calls_sum(c->session, &request, sums_found, run);
			if (err)
				client_report(c, s->items[first].shown, err);
		}
	}
	free(list);
	return err;
}

/* Those of a server that failed stay without a sum; the others have theirs.  The first error. */
static int sums_ask_all(struct sums_run *run)
{
	struct sums *s = run->sums;
	int first = 0;

	for (size_t i = 0, count = 1; i < s->count && !interrupt_signal(); i += count) {
		int err = 0;

		count = 1;
		if (s->items[i].remote)
			err = sums_ask(run, i, &count);
		count = count ? count : 1; /* without memory it did not come to count */
		for (size_t k = i; err && k < i + count; k++)
			if (!run->known[k]) {
				s->items[k].status = STATUS_CANCELLED; /* it was said why */
				sums_mark(run, k);
			}
		first = first ? first : err;
		sums_tell(run);
	}
	return first;
}

/* Until the threads are done, or the user has enough of it. */
static void sums_wait(struct sums_run *run)
{
	struct timespec until;

	while (run->told < run->sums->count && !interrupt_signal()) {
		pthread_mutex_lock(&run->lock);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 100 * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (!run->known[run->told])
			pthread_cond_timedwait(&run->changed, &run->lock, &until);
		pthread_mutex_unlock(&run->lock);
		sums_tell(run);
	}
}

int sums_run(struct sums *s, void (*done)(void *ctx, const struct sums_item *), void *ctx)
{
	struct sums_run run = {.sums = s, .done = done, .ctx = ctx};
	int err;

	if (!s->count)
		return 0;
	run.known = calloc(s->count, sizeof *run.known);
	if (!run.known)
		return client_no_memory(s->client);
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.changed, NULL);
	sums_start(&run);
	err = sums_ask_all(&run);
	sums_wait(&run);
	atomic_store(&run.stop, true);
	for (unsigned i = 0; i < SUMS_THREADS_MAX; i++)
		worker_stop(&run.threads[i]);
	pthread_cond_destroy(&run.changed);
	pthread_mutex_destroy(&run.lock);
	free(run.known);
	return interrupt_signal() ? -ECANCELED : err;
}
