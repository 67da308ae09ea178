/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/space: see space.h.
 *
 * While it is measured names come and go, which the measuring has seen or not: what it found is
 * wrong by that much at most.  So the count that was kept meanwhile is believed as far as that
 * goes.
 */
#include "tree/space.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void space_init(struct space *s)
{
	*s = (struct space){0};
	pthread_mutex_init(&s->lock, NULL);
}

void space_fini(struct space *s)
{
	pthread_mutex_destroy(&s->lock);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct space *space_of(struct space_share *share)
{
	return share ? atomic_load(&share->space) : NULL;
}

/* ---- counting ---- */

static bool is_over(uint64_t used, uint64_t claimed, uint64_t more, uint64_t max)
{
	return more && max != SPACE_NO_MAX &&
	       (used > max || claimed > max - used || more > max - used - claimed);
}

int space_claim(struct space_share *share, uint64_t bytes, uint64_t files)
{
	struct space *s = space_of(share);
	int err = 0;

	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	if (s->known &&
		(is_over(s->bytes, s->claimed_bytes, bytes, atomic_load(&share->max_bytes)) ||
			is_over(s->files, s->claimed_files, files,
				atomic_load(&share->max_files)))) {
		err = -EDQUOT;
	} else {
		s->claimed_bytes += bytes;
		s->claimed_files += files;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

void space_unclaim(struct space_share *share, uint64_t bytes, uint64_t files)
{
	struct space *s = space_of(share);

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->claimed_bytes = less(s->claimed_bytes, bytes);
	s->claimed_files = less(s->claimed_files, files);
	pthread_mutex_unlock(&s->lock);
}

static void change(uint64_t *count, uint64_t *came, uint64_t *went, uint64_t before, uint64_t now)
{
	*count = less(*count + now, before);
	*came += less(now, before);
	*went += less(before, now);
}

void space_change(
	struct space_share *share, const struct space_item *before, const struct space_item *now)
{
	struct space *s = space_of(share);

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	change(&s->bytes, &s->came_bytes, &s->went_bytes, before->bytes, now->bytes);
	change(&s->files, &s->came_files, &s->went_files, before->files, now->files);
	pthread_mutex_unlock(&s->lock);
}

void space_say_bytes(uint64_t bytes, char out[SPACE_TEXT_BYTES])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned unit = 0;

	for (; value >= 1024 && unit < 6; unit++)
		value /= 1024;
	snprintf(out, SPACE_TEXT_BYTES, "%.*f %s", unit ? 1 : 0, value, units[unit]);
}

void space_left(struct space_share *share, uint64_t *bytes, uint64_t *files)
{
	struct space *s = space_of(share);
	uint64_t max_bytes, max_files;

	*bytes = *files = SPACE_NO_MAX;
	if (!s)
		return;
	max_bytes = atomic_load(&share->max_bytes);
	max_files = atomic_load(&share->max_files);
	pthread_mutex_lock(&s->lock);
	if (s->known && max_bytes != SPACE_NO_MAX)
		*bytes = less(max_bytes, s->bytes + s->claimed_bytes);
	if (s->known && max_files != SPACE_NO_MAX)
		*files = less(max_files, s->files + s->claimed_files);
	pthread_mutex_unlock(&s->lock);
}

void space_say(struct space_share *share, char *text, unsigned size)
{
	uint64_t bytes, files;
	char most[SPACE_TEXT_BYTES], left[SPACE_TEXT_BYTES];
	int n = 0;

	space_left(share, &bytes, &files);
	space_say_bytes(atomic_load(&share->max_bytes), most);
	space_say_bytes(bytes, left);
	snprintf(text, size, "quota");
	if (bytes != SPACE_NO_MAX)
		n = snprintf(text, size, "quota: %s of %s are left", left, most);
	if (files != SPACE_NO_MAX && n >= 0 && (unsigned)n < size)
		snprintf(text + n, size - (unsigned)n,
			"%s%" PRIu64 " of %" PRIu64 " files are left", n ? ", " : "quota: ", files,
			atomic_load(&share->max_files));
}

/* ---- looking ---- */

uint64_t space_disk_bytes(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512; /* whatever the file system's blocks are */
}

uint64_t space_name_bytes(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? space_disk_bytes(st) / (st->st_nlink ? st->st_nlink : 1) : 0;
}

/* Of a file with several names the last one takes its bytes with it. */
static void weigh(const struct stat *st, struct space_item *item)
{
	item->files = 1;
	item->bytes = st->st_nlink > 1 ? 0 : space_name_bytes(st);
}

void space_look(struct space_share *share, int dir, const char *name, struct space_item *item)
{
	struct stat st;

	*item = (struct space_item){0};
	if (!space_of(share) || temporary_is_name(name) ||
		opener_fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	weigh(&st, item);
	if (temporary_is_hidden(name))
		item->files = 0;
}

void space_look_fd(struct space_share *share, int fd, struct space_item *item)
{
	struct stat st;

	*item = (struct space_item){0};
	if (space_of(share) && !fstat(fd, &st))
		weigh(&st, item);
}

/* ---- measuring ---- */

/* Directories that are still to be read: their paths, each with its NUL. */
struct paths {
	char *text;
	size_t length, room;
};

static int push(struct paths *p, const char *dir, const char *name)
{
	size_t need = p->length + strlen(dir) + strlen(name) + 2;
	char *grown;

	if (need > p->room) {
		grown = realloc(p->text, need * 2);
		if (!grown)
			return -ENOMEM;
		p->text = grown;
		p->room = need * 2;
	}
	p->length += (size_t)sprintf(p->text + p->length, "%s%s%s", dir, *dir ? "/" : "", name) + 1;
	return 0;
}

/* NULL: none is left, or (and then some is) no memory. */
static char *pop(struct paths *p)
{
	size_t start = p->length;

	if (!start)
		return NULL;
	for (start--; start && p->text[start - 1]; start--)
		;
	p->length = start;
	return strdup(p->text + start);
}

static int add_entry(
	int dir, const char *path, const char *name, struct paths *paths, struct space_item *sum)
{
	struct stat st;

	/* those that are arriving are claimed */
	if (!strcmp(name, ".") || !strcmp(name, "..") || temporary_is_name(name) ||
		opener_fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	sum->bytes += space_name_bytes(&st);
	sum->files += !temporary_is_hidden(name);
	return S_ISDIR(st.st_mode) ? push(paths, path, name) : 0;
}

static int add_directory(int top, const char *path, struct paths *paths, const atomic_bool *stop,
	struct space_item *sum)
{
	int fd = beneath_open(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), err = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return 0; /* it is gone, or may not be read */
	}
	while (!err && (entry = readdir(stream)))
		err = atomic_load_explicit(stop, memory_order_relaxed)
			      ? -ECANCELED
			      : add_entry(fd, path, entry->d_name, paths, sum);
	closedir(stream);
	return err;
}

static int add_all(int top, const atomic_bool *stop, struct space_item *sum)
{
	struct paths paths = {0};
	char *path = strdup("");
	int err = path ? 0 : -ENOMEM;

	while (path && !err) {
		err = add_directory(top, path, &paths, stop, sum);
		free(path);
		path = err ? NULL : pop(&paths);
		if (!path && paths.length && !err)
			err = -ENOMEM;
	}
	free(path);
	free(paths.text);
	return err;
}

static uint64_t within(uint64_t kept, uint64_t found, uint64_t came, uint64_t went)
{
	uint64_t low = less(found, went), high = found + came;

	return kept < low ? low : kept > high ? high : kept;
}

int space_measure(struct space *s, int top, const atomic_bool *stop)
{
	struct space_item found = {0};
	int err;

	pthread_mutex_lock(&s->lock);
	s->came_bytes = s->went_bytes = s->came_files = s->went_files = 0;
	pthread_mutex_unlock(&s->lock);
	err = add_all(top, stop, &found);
	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	s->bytes = s->known ? within(s->bytes, found.bytes, s->came_bytes, s->went_bytes)
			    : found.bytes;
	s->files = s->known ? within(s->files, found.files, s->came_files, s->went_files)
			    : found.files;
	s->known = true;
	pthread_mutex_unlock(&s->lock);
	return 0;
}
