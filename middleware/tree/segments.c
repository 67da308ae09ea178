/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/segments: see segments.h.
 *
 * Two threads meet at a device: the I/O worker that writes to it (always the same one) and the
 * closer, which closes segments that are too old.  `writing` says whose the open segment is; the
 * one lock is never held over I/O.
 */
#include "tree/segments.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/worker.h"
#include "tree/beneath.h"
#include "tree/landing.h"
#include "tree/place.h"
#include "tree/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define SEGMENTS_CLOSING_MAX 64 /* closed and not synced: then writers wait */

struct segments_device {
	LIST_ENTRY(segments_device) entry;
	struct segments *all;
	uint32_t file; /* its number in the transfer */
	char name[MESSAGE_NAME_MAX + 1];
	struct segment_dir dir;
	/* the open segment: the worker's while `writing` */
	struct landing *landing; /* NULL: none is open */
	uint64_t bytes;          /* in it */
	uint64_t opened_ns;
	uint32_t next_sequence;
	uint64_t total_bytes;
	/* under the lock */
	bool writing;
	bool over;        /* `done` was told: the last of its segments frees it */
	unsigned closing; /* segments that wait for the closer */
	int error;        /* of the closer */
};

struct segment { /* closed */
	STAILQ_ENTRY(segment) entry;
	struct segments_device *device;
	struct landing *landing;
};

struct segments {
	struct segments_params params;
	char *path;
	int dir; /* what devices' directories are in */
	struct transfer_sink sink;
	struct worker closer;

	pthread_mutex_t lock; /* of what follows, and of parts of the devices */
	pthread_cond_t work, progress;
	LIST_HEAD(, segments_device) devices;
	STAILQ_HEAD(, segment) closed;
	unsigned closing, count;
	bool ending;
};

/* ---- the closer ---- */

static void device_free(struct segments_device *d)
{
	segment_dir_close(&d->dir);
	free(d);
}

/* Gives the device's open segment to the closer.  Under the lock; the caller owns the segment. */
static int detach(struct segments_device *d)
{
	struct segments *s = d->all;
	struct segment *segment;

	if (!d->landing)
		return 0;
	if (!d->bytes) { /* nothing came but empty packets */
		landing_discard(d->landing);
		d->landing = NULL;
		return 0;
	}
	segment = malloc(sizeof *segment);
	if (!segment)
		return -ENOMEM; /* it stays open, and the next try may do better */
	*segment = (struct segment){.device = d, .landing = d->landing};
	STAILQ_INSERT_TAIL(&s->closed, segment, entry);
	d->landing = NULL;
	d->bytes = 0;
	d->closing++;
	s->closing++;
	pthread_cond_signal(&s->work);
	return 0;
}

static bool is_due(const struct segments_device *d, uint64_t now)
{
	return d->landing && d->bytes && d->all->params.segment_ns &&
	       now - d->opened_ns >= d->all->params.segment_ns;
}

/* Under the lock: when the next open segment is due; UINT64_MAX: there is none. */
static uint64_t detach_due(struct segments *s)
{
	uint64_t now = clock_now_ns(), next = UINT64_MAX;
	struct segments_device *d;

	LIST_FOREACH(d, &s->devices, entry)
	{
		if (d->writing || !s->params.segment_ns)
			continue; /* its writer looks at the clock itself */
		if (is_due(d, now))
			(void)detach(d);
		/* without a byte in it there is nothing to close when its time comes */
		if (d->landing && d->bytes && d->opened_ns + s->params.segment_ns < next)
			next = d->opened_ns + s->params.segment_ns;
	}
	return next;
}

static void wait_for_work(struct segments *s, uint64_t until_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};

	if (until_ns == UINT64_MAX)
		pthread_cond_wait(&s->work, &s->lock);
	else
		pthread_cond_timedwait(&s->work, &s->lock, &ts);
}

static void run_closer(void *arg)
{
	struct segments *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct segment *segment;
		struct segments_device *d;
		uint64_t next = detach_due(s);
		int err;

		segment = STAILQ_FIRST(&s->closed);
		if (!segment && s->ending)
			break;
		if (!segment) {
			wait_for_work(s, next);
			continue;
		}
		STAILQ_REMOVE_HEAD(&s->closed, entry);
		pthread_mutex_unlock(&s->lock);
		err = segment_close(segment->landing);
		d = segment->device;
		if (err)
			log_warning("a segment of %s in %s %s: %s", d->name, s->path,
				err == -ENOTRECOVERABLE ? "may not survive a crash" : "is lost",
				strerror(-err));
		free(segment);
		pthread_mutex_lock(&s->lock);
		if (err && !d->error)
			d->error = err;
		s->closing--;
		if (!--d->closing && d->over)
			device_free(d);
		pthread_cond_broadcast(&s->progress);
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- writing: a device's I/O worker ---- */

static int open_segment(struct segments_device *d)
{
	int err = segment_open(&d->dir, &d->landing);

	d->bytes = 0;
	d->opened_ns = clock_now_ns();
	return err;
}

static int append(struct segments_device *d, const struct block *b)
{
	int err = segment_append(d->landing, d->bytes, b->payload, b->length, d->name);

	if (err)
		return err;
	d->bytes += b->length;
	d->total_bytes += b->length;
	return 0;
}

/* Closes the open segment, and waits while too many wait for the closer. */
static int rotate(struct segments_device *d)
{
	struct segments *s = d->all;
	int err;

	pthread_mutex_lock(&s->lock);
	while (s->closing >= SEGMENTS_CLOSING_MAX)
		pthread_cond_wait(&s->progress, &s->lock);
	err = detach(d);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int write_packet(struct segments_device *d, const struct block *b)
{
	uint64_t most = d->all->params.segment_bytes;
	int err = 0;

	if (b->sequence != d->next_sequence)
		return -EILSEQ; /* one before it was bad: nothing goes behind the gap */
	d->next_sequence++;
	if (d->landing && d->bytes &&
		((most && d->bytes + b->length > most) || is_due(d, clock_now_ns())))
		err = rotate(d);
	if (!err && !d->landing)
		err = open_segment(d);
	if (!err)
		err = append(d, b);
	if (err && d->landing && !d->bytes) { /* the first write failed: no segment is open */
		segment_drop(&d->dir, d->landing);
		d->landing = NULL;
	}
	if (!err && most && d->bytes >= most)
		err = rotate(d);
	return err;
}

static int device_write(void *ctx, const struct block *b)
{
	struct segments_device *d = ctx;
	struct segments *s = d->all;
	uint64_t opened_ns;
	int err;

	pthread_mutex_lock(&s->lock);
	err = d->error;
	opened_ns = d->opened_ns;
	d->writing = !err;
	pthread_mutex_unlock(&s->lock);
	if (err)
		return err;
	err = write_packet(d, b);
	pthread_mutex_lock(&s->lock);
	d->writing = false;
	if (err && !d->error) /* what waits behind it must not be written: there is a gap now */
		d->error = err;
	if (is_due(d, clock_now_ns())) /* the closer may have gone by meanwhile */
		(void)detach(d);
	else if (d->opened_ns != opened_ns && s->params.segment_ns) /* it has to know when */
		pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int device_release(void *ctx)
{
	(void)ctx; /* commit or discard comes next */
	return 0;
}

static const struct end_calls device_calls = {.write = device_write, .free = device_release};

/* ---- devices ---- */

static int segments_open(void *ctx, const struct transfer_file *file, struct end **end,
	void **cookie, char text[512])
{
	struct segments *s = ctx;
	struct segments_device *d;
	int err;

	*end = NULL;
	*cookie = NULL;
	if (file->kind != TRANSFER_FILE_STREAM || !message_name_ok(file->name) ||
		s->count == TRANSFER_FEED_MAX) {
		snprintf(text, 512, "%s",
			s->count == TRANSFER_FEED_MAX
				? "too many devices at once"
				: "a feed is made of streams, and their names have one component");
		return -EINVAL;
	}
	d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->all = s;
	d->file = file->file;
	memcpy(d->name, file->name.data, file->name.len);
	d->dir.space = s->params.space;
	err = segment_dir_open(&d->dir, s->dir, d->name, text);
	if (!err)
		err = end_calls_open(&device_calls, d, end);
	if (err) {
		if (!text[0])
			snprintf(text, 512, "directory %.255s", d->name);
		segment_dir_close(&d->dir);
		free(d);
		return err;
	}
	pthread_mutex_lock(&s->lock);
	LIST_INSERT_HEAD(&s->devices, d, entry);
	s->count++;
	pthread_mutex_unlock(&s->lock);
	*cookie = d;
	return 0;
}

/* No more comes: waits until all that came is safe. */
static int segments_commit(
	void *ctx, void *cookie, const struct transfer_file *file, uint64_t size, char text[512])
{
	struct segments *s = ctx;
	struct segments_device *d = cookie;
	int err;

	(void)file;
	(void)size;
	(void)text;
	pthread_mutex_lock(&s->lock);
	err = detach(d);
	while (d->closing)
		pthread_cond_wait(&s->progress, &s->lock);
	if (d->error)
		err = d->error;
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* The same without waiting: segments_free does. */
static void segments_discard(void *ctx, void *cookie)
{
	struct segments *s = ctx;

	if (!cookie)
		return;
	pthread_mutex_lock(&s->lock);
	(void)detach(cookie);
	pthread_mutex_unlock(&s->lock);
}

static void segments_done(
	void *ctx, const struct transfer_file *file, uint16_t status, const char *text)
{
	struct segments *s = ctx;
	struct segments_device *d;
	struct outcome outcome;
	char path[MESSAGE_PATH_MAX + MESSAGE_NAME_MAX + 2];
	uint64_t bytes = 0;

	pthread_mutex_lock(&s->lock);
	LIST_FOREACH(d, &s->devices, entry)
	if (d->file == file->file)
		break;
	if (d) {
		LIST_REMOVE(d, entry);
		s->count--;
		bytes = d->total_bytes;
		landing_discard(d->landing); /* only when there was no memory to close it */
		d->landing = NULL;
		if (d->closing)
			d->over = true;
		else
			device_free(d);
	}
	pthread_mutex_unlock(&s->lock);
	if (!s->params.done)
		return;
	snprintf(path, sizeof path, "%s/%.*s", s->path, (int)file->name.len,
		(const char *)file->name.data);
	outcome = (struct outcome){
		.path = path, .name = file->name, .bytes = bytes, .status = status, .text = text};
	s->params.done(s->params.ctx, &outcome);
}

/* ---- all ---- */

static int open_top(struct segments *s)
{
	const struct place place = {
		.top = s->params.top, .rights = PLACE_WRITE, .space = s->params.space};
	int err;

	s->dir = beneath_open(s->params.top, s->path, O_PATH | O_DIRECTORY, 0);
	if (s->dir != -ENOENT)
		return s->dir < 0 ? s->dir : 0;
	err = place_mkdir(&place, s->path, 0777, true);
	if (err)
		return err;
	s->dir = beneath_open(s->params.top, s->path, O_PATH | O_DIRECTORY, 0);
	return s->dir < 0 ? s->dir : 0;
}

int segments_new(const struct segments_params *params, struct segments **out)
{
	struct segments *s = calloc(1, sizeof *s);
	pthread_condattr_t attr;
	int err;

	if (!s)
		return -ENOMEM;
	s->params = *params;
	s->dir = -1;
	s->sink = (struct transfer_sink){
		.open = segments_open,
		.commit = segments_commit,
		.discard = segments_discard,
		.done = segments_done,
		.ctx = s,
		.keeps = true,
	};
	LIST_INIT(&s->devices);
	STAILQ_INIT(&s->closed);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* as clock_now_ns */
	pthread_cond_init(&s->work, &attr);
	pthread_cond_init(&s->progress, NULL);
	pthread_condattr_destroy(&attr);
	s->path = strdup(params->path);
	err = s->path ? open_top(s) : -ENOMEM;
	if (!err)
		err = worker_start(&s->closer, "rftp-segments", run_closer, s);
	if (err) {
		segments_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void segments_free(struct segments *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	worker_stop(&s->closer);
	if (s->dir >= 0)
		close(s->dir);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->progress);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}

const struct transfer_sink *segments_sink(struct segments *s)
{
	return &s->sink;
}
