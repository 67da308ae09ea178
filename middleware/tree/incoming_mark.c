/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/incoming_mark: see incoming_mark.h.
 */
#include "tree/incoming_mark.h"

#include "base/log.h"
#include "tree/beneath.h"
#include "tree/tree_mark.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void incoming_mark_init(struct incoming_mark *m)
{
	*m = (struct incoming_mark){0};
	clock_gettime(CLOCK_REALTIME_COARSE, &m->began); /* as file systems have it */
}

void incoming_mark_meet(struct incoming_mark *m, int dir, const struct transfer_file *file,
	const char *name, bool wanted)
{
	int err;

	if (file->file == 1)
		snprintf(m->first, sizeof(m->first), "%.*s", (int)strcspn(name, "/"), name);
	if (m->tried || !wanted || dir < 0 ||
		(file->kind != TRANSFER_FILE_DIRECTORY && file->file == 1))
		return;
	m->tried = true;
	err = tree_mark_open(dir, m->first, &m->began, &m->mark);
	m->busy = err == -EBUSY;
	if (err)
		log_debug("the transfer cannot be marked: if it is cut off, files that have "
			  "landed will come again");
}

bool incoming_mark_covers(
	const struct incoming_mark *m, const struct transfer_file *file, int top, const char *path)
{
	struct stat st;

	/* of one with other names, these are made of what has come */
	return file->kind == TRANSFER_FILE_REGULAR && m->mark &&
	       !(file->has & TRANSFER_HAS_NAMES) && !beneath_stat(top, path, false, &st) &&
	       tree_mark_covers(m->mark, &st) && (uint64_t)st.st_size == file->size &&
	       st.st_mtim.tv_sec == file->mtime_s &&
	       (uint32_t)st.st_mtim.tv_nsec == file->mtime_ns &&
	       (st.st_mode & 0777) == (file->mode & 0777);
}

static void unmark(struct incoming_mark *m, bool over)
{
	tree_mark_close(m->mark, over);
	m->mark = NULL;
}

void incoming_mark_drop(struct incoming_mark *m)
{
	unmark(m, true);
}

void incoming_mark_end(struct incoming_mark *m, int dir, bool over, bool kept)
{
	/* one that somebody else had, who was just being cut off */
	if (over && m->busy && tree_mark_open(dir, m->first, &m->began, &m->mark))
		m->mark = NULL;
	unmark(m, !kept);
	m->busy = false;
}
