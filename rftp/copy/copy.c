/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/copy.c: owns the URLs of a command line.  Moving the files is rftp/copy/get's and
 * rftp/copy/put's.
 */
#include "rftp/copy/copy.h"

#include "base/clock.h"
#include "rftp/copy/between.h"
#include "rftp/copy/get.h"
#include "rftp/copy/mover_inline.h"
#include "rftp/copy/put.h"
#include "rftp/copy/retry.h"
#include "rftp/remote/remote_path.h"
#include "rftp/remote/visit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* What will be asked for first, as far as it is known before the server has said anything. */
struct copy_ahead {
	const struct client *client;
	const char *path; /* that is looked at; NULL: none */
	const char *file; /* that is had in a request of its own if it is small; NULL: none */
	bool small;       /* all that there is, so that no data channels may be needed */
};

static void copy_ahead(void *ctx, struct calls *calls)
{
	const struct copy_ahead *a = ctx;

	if (a->path)
		calls_stat_ahead(calls, a->path);
	if (a->file)
		mover_inline_get_ahead(&a->client->settings, calls, a->file);
	if (!a->client->settings.dry_run && !a->small)
		calls_channels_ahead(calls, a->client->transfer, a->client->settings.channels);
}

static int copy_open(struct client *c, const struct url *url, struct copy_ahead *ahead)
{
	int err;

	c->ahead = ahead ? copy_ahead : NULL;
	c->ahead_ctx = ahead;
	err = client_open(c, url);
	c->ahead = NULL;
	return err;
}

/* Whether all of it is small files, for single requests. */
static bool copy_is_small(const struct client *c, char *const *names, int count)
{
	const struct settings *s = &c->settings;
	struct stat st;

	if (!mover_inline_suits(s) || s->in_place || count > (int)MOVER_INLINE_FILES)
		return false;
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], "-") || stat(names[i], &st) || !S_ISREG(st.st_mode) ||
			st.st_size > (off_t)s->inline_max)
			return false;
	return true;
}

static int copy_put(struct client *c, char *const *names, int count)
{
	struct copy_ahead ahead = {.client = c};
	struct url url;
	int err = visit_parse(c, names[count - 1], &url);

	if (err)
		return err;
	if (!url.ssh) /* else it begins where the server says */
		ahead.path = url.path;
	ahead.small = copy_is_small(c, names, count - 1);
	err = copy_open(c, &url, url.ssh ? NULL : &ahead);
	if (!err)
		err = client_place(c, &url);
	if (!err)
		err = put_files(c, (const char *const *)names, (size_t)count - 1, url.path);
	url_fini(&url);
	return err;
}

/* The sources' server is open; the destination's is opened beside it. */
static int copy_to_other(
	struct client *c, const char *const *patterns, size_t count, const char *name)
{
	struct client there;
	struct url url;
	int err = visit_parse(c, name, &url);

	if (err)
		return err;
	if (client_init(&there, &c->settings)) {
		err = client_no_memory(c);
	} else {
		err = client_open(&there, &url);
		if (!err)
			err = between_files(c, &there, patterns, count, url.path);
		report_join(&c->report, &there.report);
	}
	client_fini(&there);
	url_fini(&url);
	/* what was lost is taken up anew on both sides */
	if (err && err != -EREMOTEIO)
		client_close(c);
	return err;
}

/* Whether data channels are the first thing that a get asks for, but for what its one source is, or
 * for that one itself. */
static bool copy_knows(const struct client *c, const struct url *urls, size_t n, const char *target,
	struct copy_ahead *ahead)
{
	struct stat st;
	bool there = !strcmp(target, "-") || !stat(target, &st);

	if (url_is(target))
		return false;
	for (size_t i = 0; i < n; i++)
		if (urls[i].ssh || remote_has_magic(urls[i].pattern))
			return false;
	if (n == 1 && strcmp(target, "-") != 0 && get_asks_small(&c->settings) &&
		!c->settings.files_from[0])
		ahead->file = urls[0].path;
	if (there || n > 1 || !c->settings.recursive)
		return there || n == 1;
	ahead->path = urls[0].path;
	return true;
}

/* From a server: here, or to another one. */
static int copy_get(struct client *c, char *const *names, int count)
{
	size_t n = (size_t)count - 1;
	struct copy_ahead ahead = {.client = c};
	struct url *urls = calloc(n, sizeof *urls);
	const char **patterns = calloc(n, sizeof *patterns);
	int err = urls && patterns ? 0 : client_no_memory(c);

	for (size_t i = 0; i < n && !err; i++) {
		err = visit_parse(c, names[i], &urls[i]);
		if (err)
			break;
		patterns[i] = urls[i].pattern;
		if (strcmp(urls[i].host, urls[0].host) || urls[i].port != urls[0].port ||
			strcmp(urls[i].user, urls[0].user) || urls[i].ssh != urls[0].ssh) {
			report_usage(&c->report,
				"the sources must be on one server: %s and %s differ", names[0],
				names[i]);
			err = -EINVAL;
		}
	}
	if (!err)
		err = copy_open(c, &urls[0],
			copy_knows(c, urls, n, names[count - 1], &ahead) ? &ahead : NULL);
	for (size_t i = 0; i < n && !err; i++) {
		err = client_place(c, &urls[i]);
		patterns[i] = urls[i].pattern;
	}
	if (!err && url_is(names[count - 1]))
		err = copy_to_other(c, patterns, n, names[count - 1]);
	else if (!err)
		err = get_files(c, patterns, n, names[count - 1]);
	for (size_t i = 0; i < n && urls; i++)
		url_fini(&urls[i]);
	free(urls);
	free(patterns);
	return err;
}

/* A stream cannot be had, or given, a second time; and what was added to a file would be there
 * twice. */
static bool copy_repeats(const struct client *c, char *const *names, int count)
{
	if ((c->settings.in_place && c->settings.offset == MESSAGE_UNKNOWN) ||
		!strcmp(c->settings.files_from, "-"))
		return false;
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], "-"))
			return false;
	return true;
}

static int copy_with_retries(struct client *c, char *const *names, int count, bool to)
{
	uint64_t began_ns = clock_now_ns();
	unsigned done = 0;
	int err;

	do {
		err = to ? copy_put(c, names, count) : copy_get(c, names, count);
	} while (copy_repeats(c, names, count) && retry_again(c, err, done++, began_ns));
	return err;
}

/* From one server to another. */
static int copy_between(struct client *c, char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (!strncasecmp(names[i], "ssh:", 4)) {
			report_usage(&c->report,
				"%s: a server that ssh starts is there for one session, and takes "
				"no part in copies between servers: name two of rftp://",
				names[i]);
			return -EINVAL;
		}
	return copy_with_retries(c, names, count, false);
}

int copy_run(struct client *c, char *const *names, int count)
{
	bool to = url_is(names[count - 1]);
	const char *foreign = NULL;
	int remote = 0;

	for (int i = 0; i < count; i++) {
		remote += url_is(names[i]);
		if (url_is_foreign(names[i]))
			foreign = names[i];
		if (!names[i][0]) {
			report_usage(&c->report, "a name is empty");
			return -EINVAL;
		}
	}
	if (!remote && foreign) {
		report_usage(&c->report, "%s: only rftp:// and ssh:// are supported", foreign);
		return -EINVAL;
	}
	if (!remote) {
		report_usage(&c->report,
			"all names are local: one side must be rftp://HOST[:PORT]/PATH, or ssh://");
		return -EINVAL;
	}
	if (to && remote == count)
		return copy_between(c, names, count);
	if (to ? remote > 1 : remote != count - 1) {
		report_usage(&c->report, "the sources must be all local or all remote");
		return -EINVAL;
	}
	return copy_with_retries(c, names, count, to);
}
