/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/failures: see failures.h.
 */
#include "rftp/copy/failures.h"

#include "rftp/copy/again.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 100u                /* more are only counted */
#define KEPT_BYTES_MAX (64ull << 20) /* of names */

void failures_fini(struct failures *f)
{
	text_fini(&f->names);
	text_fini(&f->shown);
	f->count = 0;
}

void failures_add(struct failures *f, const struct failure *failure)
{
	const struct wire_bytes name = failure->name;

	f->count++;
	if (f->names.len + name.len > KEPT_BYTES_MAX)
		return;
	if (name.len)
		text_add(&f->names, (const char *)name.data, name.len);
	else if (failure->source)
		again_source(&f->names, failure->source);
	text_putc(&f->names, '\0');
	if (f->count > TOLD_MAX)
		return;
	text_printf(&f->shown, "%s: %s", failure->shown, failure->why);
	text_putc(&f->shown, '\0');
}

void failures_tell(const struct failures *f, struct report *r, bool several)
{
	const char *line = text_str(&f->shown);
	unsigned told = 0;

	if (!f->count || !several || report_json(r) || f->shown.failed)
		return;
	report_note(r, "%ju failed:", (uintmax_t)f->count);
	for (; line < f->shown.data + f->shown.len; line += strlen(line) + 1, told++)
		report_note(r, "  %s", line);
	if (f->count > told)
		report_note(r, "  and %ju more", (uintmax_t)f->count - told);
}

int failures_write(const struct failures *f, const char *path, struct report *r)
{
	const char *name = text_str(&f->names), *end = name + f->names.len;
	FILE *out = fopen(path, "w");
	uint64_t left_out = f->names.failed ? f->count : 0;
	int err = 0;

	for (; out && !f->names.failed && name < end; name += strlen(name) + 1) {
		/* neither a name with a line's end in it, nor one that says nothing */
		if (!*name || strchr(name, '\n'))
			left_out++;
		else if (fprintf(out, "%s\n", name) < 0)
			break;
	}
	if (!out || ferror(out) || fflush(out))
		err = errno ? -errno : -EIO;
	if (out && fclose(out) && !err)
		err = -errno;
	if (err)
		report_errorf(r, err, path, "writing the names of what failed: %s", strerror(-err));
	else if (left_out)
		report_note(
			r, "%s: %ju names that failed are not in it", path, (uintmax_t)left_out);
	return err;
}
