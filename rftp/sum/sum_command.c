/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sum_command: see sum_command.h.
 */
#include "rftp/sum/sum_command.h"

#include "proto/message_sum.h"
#include "rftp/copy/rules.h"
#include "rftp/remote/remote_path.h"
#include "rftp/remote/url.h"
#include "rftp/sum/sum_list.h"
#include "rftp/sum/sums.h"
#include "rftp/ui/escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sum_state {
	struct client *client;
	struct sums sums;
	bool tag;
	struct sum_list_line *lines; /* of a list, one an item; NULL: sums are printed */
	size_t told;
	uint64_t failed, unreadable, bad_lines;
};

static const char *sum_why(const struct sums_item *item)
{
	return item->text                            ? item->text
	       : item->status == STATUS_IS_DIRECTORY ? "is a directory (-r: all files in it)"
						     : NULL;
}

/* An error of one file; one that was cancelled was told of as a whole. */
static void sum_error(struct client *c, const struct sums_item *item)
{
	if (item->status != STATUS_CANCELLED)
		report_error(&c->report, EXIT_CODE_OK, item->status, item->shown, sum_why(item));
}

static void sum_json(struct sum_state *s, const struct sums_item *item, const char *result)
{
	struct text json = {0}, hex = {0};

	sum_list_hex(&hex, item->sum, item->status ? 0 : sum_bytes(s->sums.algorithm));
	report_json_begin(&json, "sum");
	report_json_string(&json, "name", item->shown);
	report_json_string(&json, "algorithm", sum_name(s->sums.algorithm));
	report_json_string(&json, "sum", item->status ? NULL : text_str(&hex));
	report_json_number(&json, "bytes", item->size);
	report_json_string(&json, "status", status_name(item->status));
	report_json_string(&json, "result", result);
	report_json_end(&s->client->report, &json);
	text_fini(&hex);
}

static void sum_print(struct sum_state *s, const struct sums_item *item)
{
	struct report *r = &s->client->report;
	struct text line = {0};

	if (report_json(r)) {
		sum_json(s, item, NULL);
	} else if (!item->status) {
		sum_list_write(&line, &(struct sum_list_sum){s->sums.algorithm, s->tag, item->sum},
			item->shown);
		report_write(r, text_str(&line), line.len);
		text_fini(&line);
	}
	if (item->status)
		sum_error(s->client, item);
	report_flush(r);
}

static void sum_check(struct sum_state *s, const struct sums_item *item)
{
	const struct sum_list_line *wanted = &s->lines[s->told++];
	struct report *r = &s->client->report;
	bool same = !item->status && wanted->bytes == sum_bytes(s->sums.algorithm) &&
		    !memcmp(wanted->sum, item->sum, wanted->bytes);
	const char *result = item->status ? "unreadable" : same ? "ok" : "failed";
	struct text line = {0};

	s->unreadable += item->status != 0;
	s->failed += !item->status && !same;
	if (report_json(r)) {
		sum_json(s, item, result);
	} else if (s->client->settings.verbosity >= 0 || !same) {
		escape_display(&line, item->shown, strlen(item->shown));
		text_puts(&line, same           ? ": OK\n"
				 : item->status ? ": FAILED open or read\n"
						: ": FAILED\n");
		report_write(r, text_str(&line), line.len);
		text_fini(&line);
	}
	if (item->status)
		sum_error(s->client, item);
	report_flush(r);
}

static void sum_done(void *ctx, const struct sums_item *item)
{
	struct sum_state *s = ctx;

	if (s->lines)
		sum_check(s, item);
	else
		sum_print(s, item);
}

static int sum_add(struct sum_state *s, bool shell, const char *name)
{
	if (shell)
		return sums_add(&s->sums, name, name, true);
	if (!strcmp(name, "-") && !s->lines)
		return sums_add_stream(&s->sums);
	return url_is(name) ? sums_add_url(&s->sums, name) : sums_add(&s->sums, name, name, false);
}

/* The paths that a remote pattern of the shell stands for. */
static int sum_add_pattern(struct sum_state *s, const char *pattern)
{
	struct client *c = s->client;
	struct calls *session = client_session(c);
	char **paths;
	size_t count;
	int err = session ? remote_glob(session, pattern, &paths, &count) : -ENOTCONN;

	if (!session)
		return err;
	if (err == -ENOENT)
		report_error(
			&c->report, EXIT_CODE_OK, STATUS_NOT_FOUND, pattern, "nothing matches");
	if (err)
		return err == -ENOENT ? err : client_report(c, pattern, err);
	for (size_t i = 0; i < count && !err; i++)
		err = sums_add(&s->sums, paths[i], paths[i], true);
	remote_glob_free(paths, count);
	return err;
}

/* ---- lists ---- */

/* The name of a line, beneath where relative names begin. */
static int sum_add_listed(struct sum_state *s, const struct sum_params *p, const char *base,
	const struct sum_list_line *line)
{
	struct text path = {0};
	int err;

	if (!base || url_is(line->name) || (*line->name == '/' && !p->shell))
		return sum_add(s, p->shell, line->name);
	text_puts(&path, base);
	if (path.len && text_str(&path)[path.len - 1] != '/')
		text_putc(&path, '/');
	for (const char *at = line->name; *at; at++) {
		if (!p->shell && url_is(base) && strchr("%*?[\\", *at))
			text_printf(&path, "%%%02X", (unsigned char)*at);
		else
			text_putc(&path, *at);
	}
	err = sum_add(s, p->shell, text_str(&path));
	text_fini(&path);
	return err;
}

/* What the first sum's length says; nobody can tell xxh128 and md5 apart by it. */
static uint8_t sum_guess(unsigned bytes)
{
	for (uint8_t i = MESSAGE_SUM_XXH128; i <= MESSAGE_SUM_MD5; i++)
		if (sum_bytes(i) == bytes)
			return i;
	return 0;
}

static int sum_take_line(struct sum_state *s, const struct sum_params *p, const char *base,
	const char *line, size_t *room)
{
	struct sum_list_line parsed, *lines = s->lines;
	int err = sum_list_parse(line, &parsed);

	if (err == -ENOMEM)
		return client_no_memory(s->client);
	if (!err && !s->sums.algorithm)
		s->sums.algorithm = parsed.algorithm ? parsed.algorithm : sum_guess(parsed.bytes);
	if (err || parsed.bytes != sum_bytes(s->sums.algorithm) ||
		(parsed.algorithm && parsed.algorithm != s->sums.algorithm)) {
		free(parsed.name);
		s->bad_lines++;
		return 0;
	}
	if (s->sums.count == *room) {
		lines = realloc(lines, (*room * 2 + 64) * sizeof *lines);
		if (!lines) {
			free(parsed.name);
			return client_no_memory(s->client);
		}
		s->lines = lines;
		*room = *room * 2 + 64;
	}
	err = sum_add_listed(s, p, base, &parsed);
	free(parsed.name);
	parsed.name = NULL;
	if (!err)
		s->lines[s->sums.count - 1] = parsed;
	return err == -ENOMEM ? err : 0;
}

static int sum_read_list(struct sum_state *s, const struct sum_params *p, const char *base)
{
	bool standard = !strcmp(p->list, "-");
	FILE *f = standard ? stdin : fopen(p->list, "re");
	size_t size = 0, room = 0;
	char *line = NULL;
	ssize_t n;
	int err = 0;

	if (!f) {
		err = -errno;
		report_errorf(&s->client->report, err, p->list, "%s",
			status_text(status_from_errno(err)));
		return err;
	}
	while (!err && (n = getline(&line, &size, f)) >= 0) {
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = '\0';
		if (n && *line != '#')
			err = sum_take_line(s, p, base, line, &room);
	}
	if (!err && ferror(f)) {
		err = -EIO;
		report_error(&s->client->report, EXIT_CODE_OK, STATUS_IO, p->list, NULL);
	}
	free(line);
	if (!standard)
		fclose(f);
	if (!err && !s->sums.count) {
		report_error(&s->client->report, EXIT_CODE_USAGE, STATUS_INVALID, p->list,
			"no line of it is a sum and a name");
		err = -EINVAL;
	}
	return err;
}

/* As sha256sum says it, and as an error of integrity. */
static int sum_verdict(struct sum_state *s, const char *list)
{
	struct report *r = &s->client->report;

	if (s->bad_lines)
		report_note(r, "%s: %ju line%s no sum and name", list, (uintmax_t)s->bad_lines,
			s->bad_lines == 1 ? " is" : "s are");
	if (s->failed)
		report_errorf(r, status_to_errno(STATUS_DIGEST), list,
			"%ju of %zu sums did not match", (uintmax_t)s->failed, s->sums.count);
	return s->failed || s->unreadable ? -EREMOTEIO : 0;
}

static int sum_algorithm(struct client *c, const struct sum_params *p, uint8_t *algorithm)
{
	*algorithm = p->algorithm ? sum_by_name(p->algorithm) : p->list ? 0 : MESSAGE_SUM_XXH128;
	if (*algorithm || (!p->algorithm && p->list))
		return 0;
	report_usage(&c->report, "%s: no such sum; there are xxh128, sha256, crc32 and md5",
		p->algorithm);
	return -EINVAL;
}

int sum_command(
	struct client *c, const struct sum_params *p, const char *const *names, size_t count)
{
	struct sum_state s = {.client = c, .sums.client = c};
	struct filter filter = {0};
	int err = sum_algorithm(c, p, &s.sums.algorithm), first = 0;

	if (err)
		return err;
	if (p->list && (p->recursive || p->tag)) {
		report_usage(&c->report,
			p->recursive ? "sum -c takes the names of its list: -r does not go with it"
				     : "sum -c prints no sums: --tag does not go with it");
		return -EINVAL;
	}
	if (p->list ? count > 1 : !count) {
		report_usage(&c->report, p->list ? "sum -c LIST takes one name more: where the "
						   "relative names of the list begin"
						 : "usage: sum [-r] [--tag] [-a xxh128|sha256|"
						   "crc32|md5] FILE..., or sum -c LIST");
		return -EINVAL;
	}
	s.tag = p->tag;
	s.sums.recursive = p->recursive;
	s.sums.filter = &filter;
	err = p->recursive ? rules_read(c, &filter) : 0;
	if (!err && p->list)
		err = sum_read_list(&s, p, count ? names[0] : NULL);
	for (size_t i = 0; i < count && !p->list && !err; i++) {
		int one = p->shell ? sum_add_pattern(&s, names[i]) : sum_add(&s, false, names[i]);

		first = first ? first : one;
		err = one == -ENOMEM ? one : 0;
	}
	if (!err)
		err = sums_run(&s.sums, sum_done, &s);
	if (!err && p->list)
		err = sum_verdict(&s, p->list);
	sums_fini(&s.sums);
	filter_fini(&filter);
	free(s.lines);
	if (!err && !first && c->report.code)
		first = -EREMOTEIO;
	return err ? err : first;
}

/* ---- cmp ---- */

static void cmp_done(void *ctx, const struct sums_item *item)
{
	struct client *c = ctx;

	if (item->status)
		sum_error(c, item);
}

int sum_compare(struct client *c, const struct cmp_file files[2])
{
	struct sums s = {.client = c, .algorithm = MESSAGE_SUM_XXH128};
	struct text json = {0};
	bool same = false, known;
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++) {
		const struct cmp_file *f = &files[i];

		err = !f->remote && url_is(f->path) ? sums_add_url(&s, f->path)
						    : sums_add(&s, f->shown, f->path, f->remote);
	}
	if (!err && s.count != 2) {
		report_usage(&c->report, "cmp compares two files");
		err = -EINVAL;
	}
	if (!err)
		err = sums_run(&s, cmp_done, c);
	known = !err && !s.items[0].status && !s.items[1].status;
	if (known)
		same = s.items[0].size == s.items[1].size &&
		       !memcmp(s.items[0].sum, s.items[1].sum, sum_bytes(s.algorithm));
	if (known && report_json(&c->report)) {
		report_json_begin(&json, "cmp");
		report_json_string(&json, "a", files[0].shown);
		report_json_string(&json, "b", files[1].shown);
		report_json_bool(&json, "same", same);
		report_json_end(&c->report, &json);
	}
	if (known && !same)
		report_errorf(&c->report, status_to_errno(STATUS_DIGEST), files[0].shown,
			"differs from %s (%ju and %ju bytes)", files[1].shown,
			(uintmax_t)s.items[0].size, (uintmax_t)s.items[1].size);
	sums_fini(&s);
	return err ? err : same ? 0 : -EREMOTEIO;
}
