/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/outgoing.c: what a source sends, in which order, and what it says of each name.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/outgoing.h"

#include <sys/socket.h>
#include <sys/un.h>

static char log_text[4 << 20];

/* Each outcome as a line "path status bytes". */
static void log_done(void *ctx, const struct outcome *o)
{
	const char *path = o->path;
	size_t length = strlen(log_text);
	const char *dir = ctx;

	if (!strncmp(path, dir, strlen(dir)))
		path += strlen(dir);
	snprintf(log_text + length, sizeof(log_text) - length, "%s %u %" PRIu64 "\n", path,
		o->status, o->bytes);
}

static char item_text[4 << 20];

static void name_of(const struct transfer_item *item, char out[20000])
{
	memcpy(out, item->file.name.data, item->file.name.len);
	out[item->file.name.len] = '\0';
}

/* The next item, opened if it is to be. */
static int next_open(const struct transfer_source *source, struct transfer_item *item)
{
	int n = source->next(source->ctx, item);

	if (n == 1 && item->closed && !item->error)
		item->error = source->open(source->ctx, item);
	return n;
}

/* Takes all items; item_text gets a line "name kind size" or "name -errno" for each. */
static int drain(struct outgoing *o)
{
	const struct transfer_source *source = outgoing_source(o);
	struct transfer_item item;
	char name[20000];
	int n, count = 0, err;

	item_text[0] = log_text[0] = '\0';
	while ((n = next_open(source, &item)) == 1) {
		size_t length = strlen(item_text);

		name_of(&item, name);
		if (item.error)
			snprintf(item_text + length, sizeof(item_text) - length, "%s %d\n", name,
				item.error);
		else
			snprintf(item_text + length, sizeof(item_text) - length,
				"%s %c %" PRIu64 "\n", name, "?rdsneloh"[item.file.kind],
				item.file.size);
		err = item.error ? item.error : source->check(source->ctx, &item);
		end_free(item.end);
		source->done(source->ctx, &item, status_from_errno(err), "");
		count++;
	}
	return n ? n : count;
}

static enum walk_links links = WALK_LINKS_FOLLOW;

static struct outgoing *make(const char *dir, int top, bool recursive)
{
	struct outgoing_params params = {.top = top,
		.recursive = recursive,
		.links = links,
		.direct = END_DIRECT_AUTO,
		.done = log_done,
		.ctx = (void *)dir};
	struct outgoing *o;

	return outgoing_new(&params, &o) ? NULL : o;
}

static bool make_tree(const char *dir)
{
	return !mkdir(scratch_path(dir, "t"), 0755) && !mkdir(scratch_path(dir, "t/b"), 0750) &&
	       !mkdir(scratch_path(dir, "t/b/empty"), 0755) &&
	       scratch_write(scratch_path(dir, "t/a"), "1") &&
	       scratch_write(scratch_path(dir, "t/b.txt"), "22") &&
	       scratch_write(scratch_path(dir, "t/b/z"), "333") &&
	       scratch_write(scratch_path(dir, "t/b/y"), "") &&
	       scratch_write(scratch_path(dir, "t/.rftp-0123456789abcdef.part"), "cut") &&
	       scratch_write(scratch_path(dir, "t/\xff\n"), "4444") &&
	       !symlink("a", scratch_path(dir, "t/link"));
}

static void a_tree_in_order(void)
{
	const char *dir = scratch_dir();
	struct outgoing *o = make(dir, AT_FDCWD, true);
	const struct transfer_source *source = outgoing_source(o);
	int fds;

	CHECK(make_tree(dir));
	fds = scratch_open_fds();
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "to"), 0);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t/a"), "a/again"), 0);
	CHECK(source->total_files == MESSAGE_UNKNOWN && source->total_bytes == MESSAGE_UNKNOWN);
	CHECK(source->largest_bytes == MESSAGE_UNKNOWN);
	outgoing_measure(o);
	CHECK_EQ(source->total_files, 7);
	CHECK_EQ(source->total_bytes, 1 + 2 + 3 + 0 + 4 + 1 + 1);
	CHECK_EQ(source->largest_bytes, 4);
	CHECK_EQ(drain(o), 13);
	CHECK(!strcmp(item_text,
		"to d 0\nto/a r 1\nto/b d 0\nto/b/empty d 0\nto/b/empty e 0\nto/b/y r 0\n"
		"to/b/z r 3\nto/b e 0\nto/b.txt r 2\nto/link r 1\nto/\xff\n r 4\nto e 0\n"
		"a/again r 1\n"));
	CHECK(!strcmp(log_text,
		"/t 0 0\n/t/a 0 1\n/t/b 0 0\n/t/b/empty 0 0\n/t/b/y 0 0\n/t/b/z 0 3\n"
		"/t/b.txt 0 2\n/t/link 0 1\n/t/\xff\n 0 4\n/t/a 0 1\n"));
	CHECK_EQ(scratch_open_fds(), fds);
	outgoing_free(o);
}

static void the_destination_itself(void)
{
	const char *dir = scratch_dir();
	struct outgoing *o;
	int top = -1;

	CHECK(make_tree(dir));
	top = open(dir, O_PATH | O_DIRECTORY);
	o = make("", top, true);
	CHECK_EQ(outgoing_add(o, "/t/b", ""), 0);
	CHECK_EQ(outgoing_add(o, "t/a", ""), 0);
	CHECK_EQ(drain(o), 7);
	CHECK(!strcmp(item_text, " d 0\nempty d 0\nempty e 0\ny r 0\nz r 3\n e 0\n r 1\n"));
	CHECK(!strcmp(log_text, "/t/b 0 0\n/t/b/empty 0 0\n/t/b/y 0 0\n/t/b/z 0 3\nt/a 0 1\n"));
	outgoing_free(o);
	/* the export itself */
	o = make("", top, true);
	CHECK_EQ(outgoing_add(o, "/", "x"), 0);
	CHECK_EQ(drain(o), 14);
	CHECK(!strncmp(item_text, "x d 0\nx/t d 0\nx/t/a r 1\n", 24));
	outgoing_free(o);
	close(top);
}

static void what_can_not_be_sent(void)
{
	const char *dir = scratch_dir();
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct outgoing *o = make(dir, AT_FDCWD, false);
	char longest[300];
	int top, sock;

	CHECK(make_tree(dir));
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "nothing"), "x"), -ENOENT);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "x"), -EISDIR);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t/a/x"), "x"), -ENOTDIR);
	CHECK_EQ(outgoing_add(o, "/dev/null", "x"), -ENXIO);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t/a"), "../x"), -EINVAL);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t/a"), "/x"), -EINVAL);
	memset(longest, 'x', 256);
	longest[256] = '\0';
	CHECK_EQ(outgoing_add(o, scratch_path(dir, longest), "x"), -ENAMETOOLONG);
	CHECK_EQ(drain(o), 0);
	outgoing_free(o);

	CHECK_EQ(mkdir(scratch_path(dir, "top"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "top/d"), 0755), 0);
	CHECK_EQ(mkfifo(scratch_path(dir, "top/d/fifo"), 0600), 0);
	CHECK_EQ(symlink("../d", scratch_path(dir, "top/d/self")), 0);
	CHECK_EQ(symlink("fifo", scratch_path(dir, "top/d/to-fifo")), 0);
	CHECK_EQ(symlink("nowhere", scratch_path(dir, "top/d/dangling")), 0);
	CHECK_EQ(symlink("../../t/a", scratch_path(dir, "top/d/outside")), 0);
	CHECK_EQ(symlink("../e", scratch_path(dir, "top/d/inside")), 0);
	CHECK(scratch_write(scratch_path(dir, "top/e"), "55555"));
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", scratch_path(dir, "top/d/socket"));
	sock = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(bind(sock, (struct sockaddr *)&sun, sizeof(sun)), 0);
	top = open(scratch_path(dir, "top"), O_PATH | O_DIRECTORY);
	o = make("", top, true);
	CHECK_EQ(outgoing_add(o, "../t", "x"), -EXDEV);
	CHECK_EQ(outgoing_add(o, "d/outside", "x"), -EXDEV);
	CHECK_EQ(outgoing_add(o, "d/fifo", "x"), -ENXIO);
	CHECK_EQ(outgoing_add(o, "d", "d"), 0);
	CHECK_EQ(drain(o), 9);
	snprintf(longest, sizeof(longest),
		"d d 0\nd/dangling %d\nd/fifo o 0\nd/inside r 5\nd/outside %d\nd/self %d\n"
		"d/socket o 0\nd/to-fifo o 0\nd e 0\n",
		-ENOENT, -EXDEV, -ELOOP);
	CHECK(!strcmp(item_text, longest));
	outgoing_free(o);
	close(sock);
	close(top);
}

static void links_are_kept_or_left_out(void)
{
	const char *dir = scratch_dir();
	const struct transfer_source *source;
	struct transfer_item item;
	struct outgoing *o;

	CHECK_EQ(mkdir(scratch_path(dir, "t"), 0755), 0);
	CHECK_EQ(symlink("nowhere at all", scratch_path(dir, "t/a")), 0);
	CHECK_EQ(symlink("/", scratch_path(dir, "t/b")), 0);
	CHECK_EQ(symlink(".", scratch_path(dir, "t/c")), 0);
	links = WALK_LINKS_KEEP;
	o = make(dir, AT_FDCWD, true);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "t"), 0);
	outgoing_measure(o);
	CHECK_EQ(outgoing_source(o)->total_files, 3);
	CHECK_EQ(outgoing_source(o)->total_bytes, 0);
	CHECK_EQ(drain(o), 5);
	CHECK(!strcmp(item_text, "t d 0\nt/a l 0\nt/b l 0\nt/c l 0\nt e 0\n"));
	outgoing_free(o);
	o = make(dir, AT_FDCWD, true);
	source = outgoing_source(o);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "t"), 0);
	CHECK_EQ(next_open(source, &item), 1);
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(next_open(source, &item), 1);
	CHECK_EQ(item.file.target.len, 14);
	CHECK(!memcmp(item.file.target.data, "nowhere at all", 14));
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(unlink(scratch_path(dir, "t/b")), 0);
	CHECK(scratch_write(scratch_path(dir, "t/b"), "no link any more"));
	CHECK_EQ(next_open(source, &item), 1);
	CHECK_EQ(item.error, -ESTALE);
	source->done(source->ctx, &item, 0, "");
	outgoing_free(o);
	links = WALK_LINKS_SKIP;
	o = make(dir, AT_FDCWD, true);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "t"), 0);
	CHECK_EQ(drain(o), 3);
	CHECK(!strcmp(item_text, "t d 0\nt/b r 16\nt e 0\n"));
	outgoing_free(o);
	links = WALK_LINKS_FOLLOW;
}

static void links_to_directories_are_followed(void)
{
	const char *dir = scratch_dir();
	struct outgoing *o = make(dir, AT_FDCWD, true);
	char want[300];

	CHECK_EQ(mkdir(scratch_path(dir, "t"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "t/d"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "t/d/f"), "1"));
	CHECK_EQ(symlink("d", scratch_path(dir, "t/e")), 0);
	CHECK_EQ(symlink("..", scratch_path(dir, "t/d/up")), 0);
	CHECK_EQ(symlink("../..", scratch_path(dir, "t/d/out")), 0);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "t"), 0);
	CHECK_EQ(drain(o), 12);
	snprintf(want, sizeof(want),
		"t d 0\nt/d d 0\nt/d/f r 1\nt/d/out %d\nt/d/up %d\nt/d e 0\nt/e d 0\nt/e/f r 1\n"
		"t/e/out %d\nt/e/up %d\nt/e e 0\nt e 0\n",
		-EXDEV, -ELOOP, -EXDEV, -ELOOP);
	CHECK(!strcmp(item_text, want));
	outgoing_free(o);
}

/* A name that was listed and is something else when its turn comes. */
static void names_that_change_before_their_turn(void)
{
	const char *dir = scratch_dir();
	const struct transfer_source *source;
	struct transfer_item item;
	char name[20000], want[200];
	struct outgoing *o = make(dir, AT_FDCWD, true);

	CHECK_EQ(mkdir(scratch_path(dir, "d"), 0755), 0);
	for (const char *c = "abcdef"; *c; c++) {
		char path[8] = {'d', '/', *c, '\0'};

		CHECK(scratch_write(scratch_path(dir, path), "x"));
	}
	CHECK(scratch_write(scratch_path(dir, "root"), "x"));
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "d"), "d"), 0);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "root"), "root"), 0);
	source = outgoing_source(o);
	CHECK_EQ(next_open(source, &item), 1);
	name_of(&item, name);
	CHECK(!strcmp(name, "d"));
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(unlink(scratch_path(dir, "d/a")), 0);
	CHECK_EQ(unlink(scratch_path(dir, "d/b")), 0);
	CHECK_EQ(mkfifo(scratch_path(dir, "d/b"), 0600), 0);
	CHECK_EQ(unlink(scratch_path(dir, "d/c")), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "d/c"), 0700), 0);
	CHECK_EQ(unlink(scratch_path(dir, "d/d")), 0);
	CHECK_EQ(symlink("e", scratch_path(dir, "d/d")), 0);
	CHECK_EQ(unlink(scratch_path(dir, "root")), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "root"), 0700), 0);
	CHECK_EQ(drain(o), 8);
	snprintf(want, sizeof(want),
		"d/a %d\nd/b %d\nd/c %d\nd/d %d\nd/e r 1\nd/f r 1\nd e 0\nroot %d\n", -ENOENT,
		-ENXIO, -EISDIR, -ELOOP, -EISDIR);
	CHECK(!strcmp(item_text, want));
	outgoing_free(o);
}

static void a_file_that_changes_is_stale(void)
{
	enum { SAME, GROWN, SHRUNK, WRITTEN, TOUCHED, CHANGED, LINKED, HIDDEN, REPLACED, KINDS };
	static const int wanted[] = {[SAME] = 0,
		[GROWN] = -ESTALE,
		[SHRUNK] = -ESTALE,
		[WRITTEN] = -ESTALE,
		[TOUCHED] = -ESTALE,
		/* its bytes say more */
		[CHANGED] = -EAGAIN,
		[LINKED] = -EAGAIN,
		[HIDDEN] = -EAGAIN};
	const char *dir = scratch_dir(), *path = scratch_path(dir, "f");
	const struct transfer_source *source;
	struct transfer_item item;
	struct outgoing *o;
	int fd;

	for (int kind = SAME; kind < KINDS; kind++) {
		struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

		unlink(path);
		CHECK(scratch_write(path, "0123456789"));
		/* so that any change shows, however coarse the file system's clock */
		CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
		o = make(dir, AT_FDCWD, false);
		CHECK_EQ(outgoing_add(o, path, "f"), 0);
		source = outgoing_source(o);
		CHECK_EQ(next_open(source, &item), 1);
		CHECK_EQ(item.error, 0);
		CHECK_EQ(item.file.mtime_s, 1000000000);
		CHECK_EQ(item.file.mode, 0644);
		fd = open(path, O_WRONLY | (kind == GROWN ? O_APPEND : 0));
		if (kind == GROWN || kind == WRITTEN)
			CHECK_EQ(write(fd, "x", 1), 1);
		else if (kind == SHRUNK)
			CHECK_EQ(ftruncate(fd, 5), 0);
		else if (kind == TOUCHED)
			CHECK_EQ(futimens(fd, NULL), 0);
		else if (kind == CHANGED)
			CHECK_EQ(fchmod(fd, 0600), 0);
		else if (kind == LINKED)
			CHECK_EQ(link(path, scratch_path(dir, "other")), 0);
		else if (kind == HIDDEN)
			CHECK(write(fd, "x", 1) == 1 && !futimens(fd, old));
		else if (kind == REPLACED) {
			/* what is read is the old file; it lost its last name, which is all that
			 * happened to it, and some file systems call that a change */
			CHECK(scratch_write(scratch_path(dir, "new"), "new"));
			CHECK_EQ(rename(scratch_path(dir, "new"), path), 0);
		}
		close(fd);
		if (kind != REPLACED)
			CHECK_EQ(source->check(source->ctx, &item), wanted[kind]);
		end_free(item.end);
		source->done(source->ctx, &item, 0, "");
		outgoing_free(o);
	}
}

static void files_are_opened_when_asked_for(void)
{
	enum { FILES = 3000 };
	const char *dir = scratch_dir();
	const struct transfer_source *source;
	struct outgoing *o = make(dir, AT_FDCWD, true);
	struct transfer_item items[10];
	char name[32];
	int fds, most;

	CHECK_EQ(mkdir(scratch_path(dir, "d"), 0755), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		CHECK(scratch_write(scratch_path(dir, name), name));
	}
	fds = scratch_open_fds();
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "d"), "d"), 0);
	outgoing_measure(o);
	CHECK_EQ(scratch_open_fds(), fds);
	source = outgoing_source(o);
	CHECK_EQ(source->total_files, FILES);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(next_open(source, &items[i]), 1);
	most = scratch_open_fds() - fds;
	CHECK(most <= 20); /* two for each */
	for (int i = 0; i < 10; i++) {
		end_free(items[i].end);
		source->done(source->ctx, &items[i], STATUS_CANCELLED, "stopped");
	}
	CHECK_EQ(scratch_open_fds(), fds + 1); /* the directory that is walked */
	outgoing_free(o);                      /* in the middle of the walk */
	CHECK_EQ(scratch_open_fds(), fds);
}

static void streams_and_nothing(void)
{
	const struct transfer_source *source;
	struct outgoing *o = make("", AT_FDCWD, false);
	struct transfer_item item;
	struct block *block = scratch_block(65536), *done;
	struct end_queue *q;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "abc", 3), 3);
	close(fds[1]);
	CHECK_EQ(outgoing_add_null(o, 1000), 0);
	source = outgoing_source(o);
	CHECK_EQ(source->total_bytes, 1000);
	CHECK_EQ(source->largest_bytes, 1000);
	CHECK_EQ(outgoing_add_stream(o, fds[0], "in"), 0);
	CHECK(source->total_bytes == MESSAGE_UNKNOWN);
	CHECK_EQ(source->total_files, 2);
	outgoing_measure(o);
	CHECK(source->total_bytes == MESSAGE_UNKNOWN && source->largest_bytes == MESSAGE_UNKNOWN);

	log_text[0] = '\0';
	CHECK_EQ(next_open(source, &item), 1);
	CHECK_EQ(item.file.kind, TRANSFER_FILE_NULL);
	CHECK_EQ(item.file.size, 1000);
	CHECK_EQ(source->check(source->ctx, &item), 0);
	end_free(item.end);
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(next_open(source, &item), 1);
	CHECK_EQ(item.file.kind, TRANSFER_FILE_STREAM);
	CHECK(item.file.size == MESSAGE_UNKNOWN);
	CHECK(item.file.mtime_ns < 1000000000);
	CHECK(end_is_stream(item.end));
	CHECK_EQ(end_queue_new(1, &q), 0);
	block->length = 65536;
	end_submit(q, item.end, block);
	CHECK_EQ(end_reap(q, &done, 1, true), 1);
	CHECK_EQ(block->length, 3);
	CHECK_EQ(source->check(source->ctx, &item), 0);
	end_free(item.end);
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(next_open(source, &item), 0);
	CHECK(!strcmp(log_text, " 0 1000\n- 0 0\n"));
	CHECK_EQ(close(fds[0]), 0); /* stayed ours */
	end_queue_free(q);
	scratch_block_free(block);
	outgoing_free(o);
}

/* A tree so deep that its last names are longer than a name on the wire may be. */
static void too_deep_is_an_error_of_the_name(void)
{
	const char *dir = scratch_dir();
	struct outgoing *o;
	char part[201];
	int fd = open(dir, O_RDONLY | O_DIRECTORY), next;

	memset(part, 'd', 200);
	part[200] = '\0';
	for (int i = 0; i < 90; i++) {
		CHECK_EQ(mkdirat(fd, part, 0755), 0);
		next = openat(fd, part, O_RDONLY | O_DIRECTORY);
		CHECK(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	o = make(dir, AT_FDCWD, true);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, part), "d"), 0);
	outgoing_measure(o);
	CHECK(drain(o) > 150);
	snprintf(part, sizeof(part), " %d\n", -ENAMETOOLONG);
	CHECK(strstr(item_text, part));
	outgoing_free(o);
}

/* The user's own tree: a directory in it becomes a link to somewhere else during the walk. */
static void a_swapped_directory_leads_nowhere(void)
{
	const char *dir = scratch_dir();
	struct outgoing *o = make(dir, AT_FDCWD, true);
	const struct transfer_source *source = outgoing_source(o);
	struct transfer_item item;
	int fds = scratch_open_fds();
	char want[300];

	CHECK_EQ(mkdir(scratch_path(dir, "t"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "t/d"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "outside"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "outside/s"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "outside/f"), "secret"));
	CHECK(scratch_write(scratch_path(dir, "outside/s/f"), "secret"));
	CHECK(scratch_write(scratch_path(dir, "t/d/f"), "1"));
	CHECK(scratch_write(scratch_path(dir, "t/g"), "2"));
	CHECK_EQ(mkdir(scratch_path(dir, "t/d/s"), 0755), 0);
	CHECK_EQ(symlink("g", scratch_path(dir, "t/inside")), 0);
	CHECK_EQ(symlink("../outside/f", scratch_path(dir, "t/outside")), 0);
	CHECK_EQ(symlink("t", scratch_path(dir, "named")), 0);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "named"), "t"), 0);
	CHECK_EQ(next_open(source, &item), 1); /* t */
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(next_open(source, &item), 1); /* t/d, and its names are known */
	source->done(source->ctx, &item, 0, "");
	CHECK_EQ(rename(scratch_path(dir, "t/d"), scratch_path(dir, "was")), 0);
	CHECK_EQ(symlink("../outside", scratch_path(dir, "t/d")), 0);
	CHECK_EQ(drain(o), 7);
	snprintf(want, sizeof(want),
		"t/d/f %d\nt/d/s %d\nt/d e 0\nt/g r 1\nt/inside r 1\nt/outside %d\nt e 0\n", -EXDEV,
		-EXDEV, -EXDEV);
	CHECK(!strcmp(item_text, want));
	snprintf(want, sizeof(want), "/named/d/f %u 0\n", STATUS_OUTSIDE);
	CHECK(!strncmp(log_text, want, strlen(want)));
	outgoing_free(o);
	CHECK_EQ(scratch_open_fds(), fds);
}

/* A second name is sent as a link to the first, and counts no bytes. */
static void hard_links_once(void)
{
	const char *dir = scratch_dir();
	struct outgoing_params params = {.top = AT_FDCWD, .recursive = true, .hard_links = true};
	struct transfer_item item;
	const struct transfer_source *source;
	struct outgoing *o;
	uint32_t number = 0, first = 0;
	unsigned links_met = 0;

	CHECK_EQ(mkdir(scratch_path(dir, "t"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "t/a"), "22"));
	CHECK(scratch_write(scratch_path(dir, "t/other"), "333"));
	CHECK_EQ(link(scratch_path(dir, "t/a"), scratch_path(dir, "t/b")), 0);
	CHECK_EQ(link(scratch_path(dir, "t/a"), scratch_path(dir, "t/c")), 0);
	CHECK_EQ(link(scratch_path(dir, "t/a"), scratch_path(dir, "outside")), 0);
	CHECK_EQ(outgoing_new(&params, &o), 0);
	CHECK_EQ(outgoing_add(o, scratch_path(dir, "t"), "t"), 0);
	outgoing_measure(o);
	source = outgoing_source(o);
	CHECK_EQ(source->total_files, 4);
	CHECK_EQ(source->total_bytes, 5);
	for (;;) {
		item.file.file = ++number;
		if (source->next(source->ctx, &item) != 1)
			break;
		item.file.file = number;
		if (item.closed)
			item.error = source->open(source->ctx, &item);
		CHECK_EQ(item.error, 0);
		if (item.file.has & TRANSFER_HAS_NAMES) {
			CHECK_EQ(item.file.kind, TRANSFER_FILE_REGULAR);
			first = number;
		}
		if (item.file.kind == TRANSFER_FILE_HARD_LINK) {
			CHECK(first && item.file.first == first && !item.end);
			CHECK(item.file.target.len == 3 &&
				!memcmp(item.file.target.data, "t/a", 3));
			links_met++;
		}
		end_free(item.end);
		source->done(source->ctx, &item, 0, "");
	}
	CHECK_EQ(links_met, 2);
	outgoing_free(o);
}

/* Of a selected file with a '/' behind all but its bytes: where that is asked for. */
static void attributes_of_selected_files(void)
{
	const char *dir = scratch_dir();
	struct outgoing_params params = {.top = AT_FDCWD, .recursive = true, .hard_links = true};
	const uint8_t wanted[][8] = {
		{TRANSFER_FILE_ATTRIBUTES, TRANSFER_FILE_HARD_LINK, TRANSFER_FILE_DIRECTORY,
			TRANSFER_FILE_ATTRIBUTES, TRANSFER_FILE_DIRECTORY_END,
			TRANSFER_FILE_DIRECTORY_END},
		{0, TRANSFER_FILE_REGULAR, TRANSFER_FILE_DIRECTORY, 0, TRANSFER_FILE_DIRECTORY_END,
			TRANSFER_FILE_DIRECTORY_END}};

	CHECK_EQ(mkdir(scratch_path(dir, "t"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "t/d"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "t/a"), "22"));
	CHECK(scratch_write(scratch_path(dir, "t/d/f"), "333"));
	CHECK_EQ(link(scratch_path(dir, "t/a"), scratch_path(dir, "t/b")), 0);
	for (unsigned round = 0; round < 2; round++) {
		struct selection names = {0};
		struct outgoing_selected from = {.top = AT_FDCWD,
			.directory = scratch_path(dir, "t"),
			.selection = &names,
			.itself = true};
		const struct transfer_source *source;
		struct transfer_item item;
		struct outgoing *o;
		unsigned n = 0;

		params.attributes = !round;
		CHECK_EQ(selection_add(&names, "a/", 2), 0);
		CHECK_EQ(selection_add(&names, "b", 1), 0);
		CHECK_EQ(selection_add(&names, "d/f/", 4), 0);
		CHECK_EQ(selection_sort(&names), 0);
		CHECK_EQ(outgoing_new(&params, &o), 0);
		CHECK_EQ(outgoing_add_selected(o, &from), 0);
		source = outgoing_source(o);
		for (;; n++) {
			item = (struct transfer_item){.file.file = n + 1};
			if (source->next(source->ctx, &item) != 1)
				break;
			item.file.file = n + 1;
			if (item.error ==
				-ENOTDIR) { /* entered, which it is told of, but not left */
				CHECK(round && !wanted[round][n]);
				source->done(source->ctx, &item, STATUS_NOT_DIRECTORY, "");
				continue;
			}
			if (item.closed)
				item.error = source->open(source->ctx, &item);
			CHECK_EQ(item.error, 0);
			CHECK_EQ(item.file.kind, wanted[round][n]);
			if (item.file.kind == TRANSFER_FILE_ATTRIBUTES)
				CHECK_EQ(item.file.there.size, n ? 3 : 2);
			end_free(item.end);
			source->done(source->ctx, &item, 0, "");
		}
		CHECK_EQ(n, 6);
		outgoing_free(o);
	}
}

/* A file that was written to after it was compared does not give its time to what was there. */
static void attributes_of_what_was_listed(void)
{
	const char *dir = scratch_dir();
	struct compare_list listed = {0};
	struct selection names = {0};
	const struct outgoing_params params = {
		.top = AT_FDCWD, .attributes = true, .listed = &listed};
	const struct outgoing_selected from = {
		.top = AT_FDCWD, .directory = dir, .selection = &names};
	const int wanted[] = {0, -ESTALE};
	const struct transfer_source *source;
	struct outgoing *o;

	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "b" : "a";
		struct compare_entry e = {.name = strdup(name), .type = MESSAGE_FILE, .size = 1};
		struct stat st;

		CHECK(scratch_write(scratch_path(dir, name), "1"));
		CHECK_EQ(stat(scratch_path(dir, name), &st), 0);
		e.mtime_s = st.st_mtim.tv_sec - i;
		e.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
		CHECK_EQ(compare_list_append(&listed, &e), 0);
		CHECK_EQ(selection_add(&names, i ? "b/" : "a/", 2), 0);
	}
	CHECK_EQ(selection_sort(&names), 0);
	CHECK_EQ(outgoing_new(&params, &o), 0);
	CHECK_EQ(outgoing_add_selected(o, &from), 0);
	source = outgoing_source(o);
	for (unsigned i = 0; i < 2; i++) {
		struct transfer_item item = {.file.file = i + 1};

		CHECK_EQ(source->next(source->ctx, &item), 1);
		CHECK_EQ(item.error, wanted[i]);
		source->done(source->ctx, &item, status_from_errno(item.error), "");
	}
	outgoing_free(o);
	compare_list_fini(&listed);
}

HARNESS_MAIN({"attributes_of_what_was_listed", attributes_of_what_was_listed},
	{"attributes_of_selected_files", attributes_of_selected_files},
	{"hard_links_once", hard_links_once}, {"a_tree_in_order", a_tree_in_order},
	{"the_destination_itself", the_destination_itself},
	{"what_can_not_be_sent", what_can_not_be_sent},
	{"links_are_kept_or_left_out", links_are_kept_or_left_out},
	{"links_to_directories_are_followed", links_to_directories_are_followed},
	{"names_that_change_before_their_turn", names_that_change_before_their_turn},
	{"a_file_that_changes_is_stale", a_file_that_changes_is_stale},
	{"files_are_opened_when_asked_for", files_are_opened_when_asked_for},
	{"streams_and_nothing", streams_and_nothing},
	{"too_deep_is_an_error_of_the_name", too_deep_is_an_error_of_the_name},
	{"a_swapped_directory_leads_nowhere", a_swapped_directory_leads_nowhere})
