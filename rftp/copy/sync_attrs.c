/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/sync_attrs.c: see sync_attrs.h.
 */
#include "rftp/copy/sync_attrs.h"

#include "rftp/remote/changes.h"
#include "rftp/remote/remote_path.h"
#include "rftp/shell/interrupt.h"
#include "tree/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int attrs_remote(
	struct client *c, const struct sync_params *p, const struct compare_pairs *pairs)
{
	struct changes *changes = changes_new(c);
	int err = changes ? 0 : -ENOMEM;

	for (size_t i = 0; i < pairs->count && !err; i++) {
		const struct compare_pair *pair = &pairs->entries[i];
		const struct compare_entry *e = pair->from;
		const bool link = e->type == MESSAGE_SYMLINK;
		const struct message_change change = {
			.flags = (uint8_t)((pair->mode ? MESSAGE_CHANGE_MODE : 0) |
					   (pair->mtime ? MESSAGE_CHANGE_MTIME : 0) |
					   (link ? MESSAGE_CHANGE_LINK : 0)),
			.mode = !pair->mode               ? 0
				: e->type == MESSAGE_FILE ? e->mode & p->mode_mask
							  : e->mode,
			.mtime_s = pair->mtime ? e->mtime_s : 0,
			.mtime_ns = pair->mtime ? e->mtime_ns : 0,
		};
		/* the directory itself has no name in it */
		char *path = *e->name ? remote_join(p->remote, e->name) : strdup(p->remote);

		err = path ? changes_add(changes, path, change) : client_no_memory(c);
		free(path);
	}
	if (!err)
		changes_end(changes);
	changes_free(changes);
	return err ? err : c->session ? 0 : -ENOTCONN;
}

static int attrs_local(
	struct client *c, const struct sync_params *p, const struct compare_pairs *pairs)
{
	int top = open(p->local, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0) {
		int err = -errno;

		report_errorf(&c->report, err, p->local, "%s", status_text(status_from_errno(err)));
		return err;
	}
	for (size_t i = 0; i < pairs->count && !interrupt_signal(); i++) {
		const struct compare_pair *pair = &pairs->entries[i];
		const struct compare_entry *e = pair->from;
		const struct change change = {
			.has_mode = pair->mode,
			.has_mtime = pair->mtime,
			.link = e->type == MESSAGE_SYMLINK,
			.set_id = true,
			.mode = e->mode,
			.mtime_s = e->mtime_s,
			.mtime_ns = e->mtime_ns,
		};
		int err = change_run(top, e->name, &change);
		struct text path = {0};

		if (!err)
			continue;
		text_printf(&path, "%s%s%s", p->local, *e->name ? "/" : "", e->name);
		report_errorf(&c->report, err, text_str(&path), "%s",
			status_text(status_from_errno(err)));
		text_fini(&path);
	}
	close(top);
	return interrupt_signal() ? -ECANCELED : 0;
}

int sync_attrs(struct client *c, const struct sync_params *p, const struct compare_pairs *pairs)
{
	if (!pairs->count)
		return 0;
	return p->to_server ? attrs_remote(c, p, pairs) : attrs_local(c, p, pairs);
}
