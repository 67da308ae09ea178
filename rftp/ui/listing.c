/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/ui/listing.c: owns nothing.  On a terminal names are written as rftp's shell reads them, so
 * that no byte of a name reaches the terminal as a command; elsewhere they are the bytes
 * themselves.
 */
#include "rftp/ui/listing.h"

#include "rftp/ui/escape.h"
#include "rftp/ui/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const char *listing_type(uint8_t type)
{
	switch (type) {
	case MESSAGE_FILE:
		return "file";
	case MESSAGE_DIRECTORY:
		return "directory";
	case MESSAGE_SYMLINK:
		return "symlink";
	default:
		return "other";
	}
}

static void listing_mode(const struct message_attr *attr, char out[11])
{
	static const char letters[] = "rwxrwxrwx";

	out[0] = attr->type == MESSAGE_DIRECTORY ? 'd'
		 : attr->type == MESSAGE_SYMLINK ? 'l'
		 : attr->type == MESSAGE_FILE    ? '-'
						 : '?';
	for (int i = 0; i < 9; i++)
		out[1 + i] = attr->mode & (0400u >> i) ? letters[i] : '-';
	if (attr->mode & 04000)
		out[3] = out[3] == 'x' ? 's' : 'S';
	if (attr->mode & 02000)
		out[6] = out[6] == 'x' ? 's' : 'S';
	if (attr->mode & 01000)
		out[9] = out[9] == 'x' ? 't' : 'T';
	out[10] = '\0';
}

/* Local time; a time that has no calendar date stands as its seconds. */
static void listing_time(
	const struct message_attr *attr, const char *format, char *out, size_t size)
{
	time_t t = (time_t)attr->mtime_s;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, size, format, &tm))
		snprintf(out, size, "%jd", (intmax_t)attr->mtime_s);
}

static void listing_json_attr(struct text *json, const struct message_attr *attr)
{
	report_json_string(json, "type", listing_type(attr->type));
	report_json_number(json, "size", attr->size);
	report_json_number(json, "mode", attr->mode);
	report_json_number(json, "uid", attr->uid);
	report_json_number(json, "gid", attr->gid);
	text_printf(
		json, ",\"mtime\":%jd,\"mtime_ns\":%u", (intmax_t)attr->mtime_s, attr->mtime_ns);
}

static bool listing_shown(const struct listing_params *p, const struct calls_entry *e)
{
	return p->all || !p->directory || e->name[0] != '.';
}

static void listing_name(struct text *out, const struct calls_entry *e, bool terminal)
{
	if (terminal)
		escape_shell(out, e->name, strlen(e->name));
	else
		text_puts(out, e->name);
	if (terminal && e->attr.type == MESSAGE_DIRECTORY &&
		!strchr("/", e->name[strlen(e->name) - 1]))
		text_putc(out, '/');
}

static void listing_target(struct text *out, const char *target, bool terminal)
{
	text_puts(out, " -> ");
	if (terminal)
		escape_shell(out, target, strlen(target));
	else
		text_puts(out, target);
}

static void listing_json(
	struct report *r, const struct listing_params *p, const struct calls_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct text json = {0};

		if (!listing_shown(p, &list->entries[i]))
			continue;
		report_json_begin(&json, "entry");
		report_json_string(&json, "directory", p->directory);
		report_json_string(&json, "name", list->entries[i].name);
		listing_json_attr(&json, &list->entries[i].attr);
		if (list->entries[i].target)
			report_json_bytes(&json, "target", list->entries[i].target,
				strlen(list->entries[i].target));
		report_json_end(r, &json);
	}
}

static void listing_details(struct text *out, const struct listing_params *p,
	const struct calls_list *list, bool terminal)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct calls_entry *e = &list->entries[i];
		char mode[11], when[32], size[UNITS_TEXT_MAX];

		if (!listing_shown(p, e))
			continue;
		listing_mode(&e->attr, mode);
		listing_time(&e->attr, "%Y-%m-%d %H:%M", when, sizeof when);
		if (p->human)
			units_format_short(e->attr.size, size);
		else
			snprintf(size, sizeof size, "%ju", (uintmax_t)e->attr.size);
		text_printf(out, "%s %5u %5u %*s %s ", mode, e->attr.uid, e->attr.gid,
			p->human ? 5 : 12, size, when);
		listing_name(out, e, terminal);
		if (e->target)
			listing_target(out, e->target, terminal);
		text_putc(out, '\n');
	}
}

/* In columns, down first, as many as the terminal has room for. */
static void listing_columns(struct text *out, const struct listing_params *p,
	const struct calls_list *list, size_t columns)
{
	struct text *names = calloc(list->count + 1, sizeof *names);
	size_t count = 0, widest = 1, across, down;

	if (!names) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		size_t width;

		if (!listing_shown(p, &list->entries[i]))
			continue;
		listing_name(&names[count], &list->entries[i], true);
		width = escape_columns(text_str(&names[count]), names[count].len);
		widest = width > widest ? width : widest;
		count++;
	}
	across = columns / (widest + 2) ? columns / (widest + 2) : 1;
	down = (count + across - 1) / across;
	for (size_t row = 0; row < down; row++) {
		for (size_t i = row; i < count; i += down) {
			size_t width = escape_columns(text_str(&names[i]), names[i].len);

			text_add(out, text_str(&names[i]), names[i].len);
			if (i + down < count)
				text_printf(out, "%*s", (int)(widest + 2 - width), "");
		}
		text_putc(out, '\n');
	}
	for (size_t i = 0; i < count; i++)
		text_fini(&names[i]);
	free(names);
}

void listing_print(struct report *r, const struct listing_params *p, const struct calls_list *list)
{
	bool terminal = isatty(fileno(r->out));
	struct winsize size = {0};
	struct text out = {0};

	if (report_json(r)) {
		listing_json(r, p, list);
		return;
	}
	if (p->details) {
		listing_details(&out, p, list, terminal);
	} else if (terminal && !p->single && !ioctl(fileno(r->out), TIOCGWINSZ, &size)) {
		listing_columns(&out, p, list, size.ws_col ? size.ws_col : 80);
	} else {
		for (size_t i = 0; i < list->count; i++) {
			if (!listing_shown(p, &list->entries[i]))
				continue;
			listing_name(&out, &list->entries[i], terminal);
			text_putc(&out, '\n');
		}
	}
	if (out.failed)
		report_error(r, EXIT_CODE_OK, STATUS_NO_MEMORY, p->directory, NULL);
	else
		report_write(r, text_str(&out), out.len);
	text_fini(&out);
}

void listing_stat(
	struct report *r, const char *path, const struct message_attr *attr, const char *target)
{
	char mode[11], when[64], size[UNITS_TEXT_MAX];
	struct text out = {0};

	if (report_json(r)) {
		report_json_begin(&out, "stat");
		report_json_string(&out, "path", path);
		listing_json_attr(&out, attr);
		if (target)
			report_json_bytes(&out, "target", target, strlen(target));
		report_json_end(r, &out);
		return;
	}
	listing_mode(attr, mode);
	listing_time(attr, "%Y-%m-%d %H:%M:%S", when, sizeof when);
	units_format_size(attr->size, size);
	text_puts(&out, "  name: ");
	escape_display(&out, path, strlen(path));
	if (target) {
		text_puts(&out, " -> ");
		escape_display(&out, target, strlen(target));
	}
	text_printf(&out, "\n  type: %s\n  size: %ju (%s)\n  mode: %04o (%s)\n",
		listing_type(attr->type), (uintmax_t)attr->size, size, attr->mode, mode);
	text_printf(&out, " owner: %u\n group: %u\n mtime: %s.%09u\n", attr->uid, attr->gid, when,
		attr->mtime_ns);
	report_write(r, text_str(&out), out.len);
	text_fini(&out);
}

static void listing_space(uint64_t bytes, bool human, char out[UNITS_TEXT_MAX])
{
	if (human)
		units_format_short(bytes, out);
	else
		snprintf(out, UNITS_TEXT_MAX, "%ju", (uintmax_t)bytes);
}

void listing_statfs(
	struct report *r, const char *path, const struct message_statfs_reply *fs, bool human)
{
	int width = human ? 8 : 16;
	uint64_t used = fs->total_bytes - fs->free_bytes, usable = used + fs->available_bytes;
	char total[UNITS_TEXT_MAX], taken[UNITS_TEXT_MAX], available[UNITS_TEXT_MAX];
	struct text out = {0};

	if (report_json(r)) {
		report_json_begin(&out, "statfs");
		report_json_string(&out, "path", path);
		report_json_number(&out, "total_bytes", fs->total_bytes);
		report_json_number(&out, "free_bytes", fs->free_bytes);
		report_json_number(&out, "available_bytes", fs->available_bytes);
		report_json_number(&out, "total_files", fs->total_files);
		report_json_number(&out, "free_files", fs->free_files);
		report_json_end(r, &out);
		return;
	}
	listing_space(fs->total_bytes, human, total);
	listing_space(used, human, taken);
	listing_space(fs->available_bytes, human, available);
	text_printf(&out, "%*s %*s %*s %5s  %s\n%*s %*s %*s %4.0f%%  ", width, "size", width,
		"used", width, "free", "used", "path", width, total, width, taken, width, available,
		usable ? 100.0 * (double)used / (double)usable : 0.0);
	escape_display(&out, path, strlen(path));
	text_putc(&out, '\n');
	report_write(r, text_str(&out), out.len);
	text_fini(&out);
}
