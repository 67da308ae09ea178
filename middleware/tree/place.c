/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/place: see place.h.
 *
 * Owns which operation needs which right.  How names are kept beneath the directory is
 * tree/beneath's.
 */
#include "tree/place.h"

#include "base/opener.h"
#include "tree/beneath.h"
#include "tree/removal.h"
#include "tree/space.h"
#include "tree/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int place_open(struct place *p, const char *directory, unsigned rights)
{
	*p = (struct place){.top = -1};
	if (!beneath_supported())
		return -ENOSYS;
	p->top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->top < 0)
		return -errno;
	p->rights = rights;
	return 0;
}

void place_close(struct place *p)
{
	if (p->top >= 0)
		close(p->top);
	*p = (struct place){.top = -1};
}

int place_allows(const struct place *p, unsigned rights)
{
	const unsigned changing = PLACE_WRITE | PLACE_DELETE | PLACE_APPEND;

	if (!(rights & ~p->rights))
		return 0;
	return rights & ~p->rights & changing && !(p->rights & changing) ? -EROFS : -EACCES;
}

int place_top(const struct place *p, unsigned rights, int *top)
{
	*top = p->top;
	return place_allows(p, rights);
}

int place_stat(const struct place *p, const char *path, bool follow, struct stat *st)
{
	int err = place_allows(p, PLACE_LIST);

	return err ? err : beneath_stat(p->top, path, follow, st);
}

int place_open_file(const struct place *p, const char *path)
{
	int err = place_allows(p, PLACE_READ);

	return err ? err : beneath_open(p->top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

int place_statfs(const struct place *p, const char *path, struct statvfs *fs)
{
	int fd, err = place_allows(p, PLACE_LIST);

	if (err)
		return err;
	fd = beneath_open(p->top, path, O_PATH, 0);
	if (fd < 0)
		return fd;
	err = fstatvfs(fd, fs) ? -errno : 0;
	close(fd);
	return err;
}

int place_list(const struct place *p, const char *path, DIR **out)
{
	int fd, err = place_allows(p, PLACE_LIST);

	if (err)
		return err;
	fd = beneath_open(p->top, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	*out = fdopendir(fd);
	if (*out)
		return 0;
	err = -errno;
	close(fd);
	return err;
}

/* What bears a name; nothing, where nobody counts. */
static void place_look(const struct place *p, const char *path, struct space_item *item)
{
	char last[256];
	int dir;

	*item = (struct space_item){0};
	dir = p->space && atomic_load(&p->space->space) ? beneath_open_parent(p->top, path, last)
							: -EBADF;
	if (dir < 0)
		return;
	space_look(p->space, dir, last, item);
	close(dir);
}

static int place_claim_name(const struct place *p, const char *path, struct space_item *old)
{
	place_look(p, path, old);
	return space_claim(p->space, 0, !old->files);
}

static void place_has_name(const struct place *p, const struct space_item *old, int err)
{
	if (!err && !old->files)
		space_change(p->space, old, &(struct space_item){.files = 1});
	space_unclaim(p->space, 0, !old->files);
}

static void place_loses(const struct place *p, const struct space_item *old)
{
	space_change(p->space, old, &(struct space_item){0});
}

static int place_make_one(const struct place *p, const char *path, mode_t mode, bool parents)
{
	struct space_item old;
	int err = place_claim_name(p, path, &old);

	if (err)
		return err;
	err = p->unsynced ? beneath_mkdir_unsynced(p->top, path, mode, parents)
			  : beneath_mkdir(p->top, path, mode, parents);
	place_has_name(p, &old, err);
	return err;
}

/* Each on the way by itself, so that it counts. */
static int place_make_parents(const struct place *p, const char *path)
{
	char *part = strdup(path), *slash = part;
	int err = part ? 0 : -ENOMEM;

	while (!err && (slash = strchr(slash + strspn(slash, "/"), '/')) && slash[1]) {
		*slash = '\0';
		err = place_make_one(p, part, 0777, true);
		err = err == -EINVAL ? 0 : err; /* "..": whoever opens it says more */
		*slash = '/';
	}
	free(part);
	return err;
}

int place_mkdir(const struct place *p, const char *path, mode_t mode, bool parents)
{
	int err = place_allows(p, PLACE_WRITE);
	struct stat st;

	if (!err && parents && p->space && atomic_load(&p->space->space) &&
		beneath_stat(p->top, path, true, &st) == -ENOENT)
		err = place_make_parents(p, path);
	return err ? err : place_make_one(p, path, mode, parents);
}

int place_rmdir(const struct place *p, const char *path)
{
	const struct space_item one = {.files = 1};
	int err = place_allows(p, PLACE_DELETE), fd;

	if (err)
		return err;
	err = beneath_rmdir(p->top, path);
	if (!err)
		place_loses(p, &one);
	if (err != -ENOTEMPTY)
		return err;
	/* what nobody sees must not keep it for ever */
	fd = beneath_open(p->top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err;
	err = temporary_clear(fd);
	close(fd);
	err = err ? -ENOTEMPTY : beneath_rmdir(p->top, path);
	if (!err)
		place_loses(p, &one);
	return err;
}

int place_remove(const struct place *p, const char *path)
{
	int err = place_allows(p, PLACE_DELETE);
	struct space_item old;

	if (err)
		return err;
	place_look(p, path, &old);
	err = beneath_unlink(p->top, path);
	if (!err)
		place_loses(p, &old);
	return err;
}

int place_remove_tree(
	const struct place *p, const char *path, uint64_t until_ns, struct removal *removal)
{
	int err = place_allows(p, PLACE_DELETE);

	*removal = (struct removal){0};
	return err ? err : removal_run(p->top, path, until_ns, p->space, removal);
}

int place_rename(const struct place *p, const char *from, const char *to, bool replace)
{
	int err = place_allows(p, PLACE_WRITE | PLACE_DELETE);
	struct space_item old, still;

	if (err)
		return err;
	place_look(p, to, &old);
	err = beneath_rename(p->top, from, to, replace);
	if (!err && old.files)
		place_look(p, from, &still); /* of one file already: nothing was done */
	if (!err && old.files && !still.files)
		place_loses(p, &old);
	return err;
}

int place_change(const struct place *p, const char *path, const struct change *change)
{
	struct change allowed = *change;
	int err = place_allows(p, PLACE_WRITE);

	struct space_item old;

	allowed.set_id = false;
	allowed.but_top = true;
	if (!err && allowed.create)
		err = place_claim_name(p, path, &old);
	if (err)
		return err;
	err = change_run(p->top, path, &allowed);
	if (allowed.create)
		place_has_name(p, &old, err);
	return err;
}

int place_make_link(const struct place *p, const char *target, const char *path)
{
	int err = place_allows(p, PLACE_WRITE);
	struct space_item old;

	if (!err)
		err = place_claim_name(p, path, &old);
	if (err)
		return err;
	err = change_make_link(p->top, target, path);
	place_has_name(p, &old, err);
	return err;
}

int place_check_readable(const struct place *p, const char *path)
{
	int fd, err = place_allows(p, PLACE_READ);

	if (err)
		return err;
	/* a FIFO must not be waited for, a terminal not become ours */
	fd = beneath_open(p->top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static bool place_is_ours_beneath(const struct place *p, int fd)
{
	struct stat st, top;

	return !fstat(fd, &st) && !fstat(p->top, &top) && st.st_uid == opener_uid() &&
	       (st.st_dev != top.st_dev || st.st_ino != top.st_ino);
}

int place_check_writable(const struct place *p, const char *path)
{
	int fd, err = place_allows(p, PLACE_WRITE);
	char last[256];

	if (err)
		return err;
	fd = beneath_open(p->top, path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		fd = beneath_open_parent(p->top, path, last);
	if (fd < 0)
		return fd == -EINVAL ? 0 : fd;
	err = opener_faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	/* a copy of a tree opens a directory of ours for what goes into it */
	if (err == -EACCES && place_is_ours_beneath(p, fd))
		err = 0;
	close(fd);
	return err;
}
