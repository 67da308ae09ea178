/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/incoming.c: where a peer's names land, and that none lands elsewhere.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/incoming.h"
#include "tree/seen.h"

static char log_text[16384];

static void log_done(void *ctx, const struct outcome *o)
{
	const char *path = o->path;
	size_t length = strlen(log_text);
	const char *dir = ctx;

	if (dir && !strncmp(path, dir, strlen(dir)))
		path += strlen(dir);
	snprintf(log_text + length, sizeof(log_text) - length, "%s %u %" PRIu64 "\n", path,
		o->status, o->bytes);
}

static struct incoming_params params(enum incoming_kind kind, int top, const char *path)
{
	log_text[0] = '\0';
	return (struct incoming_params){.kind = kind,
		.top = top,
		.path = path,
		.fd = -1,
		.replace = true,
		.direct = END_DIRECT_AUTO,
		.done = log_done};
}

/* Kept until the next one is asked for. */
static struct asked *asked_for(const char *name, bool is_tree)
{
	static struct asked asked;

	asked_fini(&asked);
	asked.tree = is_tree;
	if (asked_add(&asked, name, strlen(name), "/a/path"))
		abort();
	return &asked;
}

static uint32_t number;

static struct transfer_file file_of(enum transfer_file_kind kind, const char *name, uint64_t size)
{
	return (struct transfer_file){.file = ++number,
		.kind = (uint8_t)kind,
		.mode = 0644,
		.mtime_s = 1000000000,
		.size = size,
		.name = {(const uint8_t *)name, strlen(name)}};
}

/* What a transfer does with one file of the content `text`; `fail`: it goes wrong on the way. */
static int receive_file(
	struct incoming *in, const struct transfer_file *file, const char *text, int fail)
{
	const struct transfer_sink *sink = incoming_sink(in);
	struct block *block, *done;
	struct end_queue *q;
	char why[512] = "";
	void *cookie;
	struct end *end;
	int err = sink->open(sink->ctx, file, &end, &cookie, why);

	if (!err && end) {
		block = scratch_block(65536);
		block->length = (uint32_t)strlen(text);
		memcpy(block->payload, text, block->length);
		if (end_queue_new(1, &q))
			abort();
		end_submit(q, end, block);
		end_reap(q, &done, 1, true);
		err = block->error ? block->error : end_sync(end);
		end_free(end);
		end_queue_free(q);
		scratch_block_free(block);
		if (fail)
			err = fail;
		if (err)
			sink->discard(sink->ctx, cookie);
		else
			err = sink->commit(sink->ctx, cookie, file, strlen(text), why);
	}
	sink->done(sink->ctx, file, status_from_errno(err), why);
	return err;
}

static int receive(struct incoming *in, const char *name, const char *text)
{
	struct transfer_file file = file_of(TRANSFER_FILE_REGULAR, name, strlen(text));

	return receive_file(in, &file, text, 0);
}

static int receive_directory(struct incoming *in, const char *name, uint32_t mode)
{
	struct transfer_file file = file_of(TRANSFER_FILE_DIRECTORY, name, 0);

	file.mode = mode;
	return receive_file(in, &file, "", 0);
}

static int leave_directory(struct incoming *in, const char *name, uint32_t mode)
{
	struct transfer_file file = file_of(TRANSFER_FILE_DIRECTORY_END, name, 0);

	file.mode = mode;
	file.mtime_ns = 123456789;
	return receive_file(in, &file, "", 0);
}

static bool has(const char *path, mode_t mode, bool time)
{
	struct stat st;

	if (stat(path, &st) || (st.st_mode & 07777) != mode)
		return false;
	return !time || (st.st_mtim.tv_sec == 1000000000 && st.st_mtim.tv_nsec == 123456789);
}

static void directories_get_their_mode_and_time_last(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct incoming *in;
	struct stat before;

	umask(077);
	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, "d", 02575), 0);
	CHECK(has(scratch_path(dir, "in/d"), 0700, false));
	CHECK_EQ(receive(in, "d/f", "one"), 0);
	CHECK(has(scratch_path(dir, "in/d/f"), 0644, false)); /* whatever umask says */
	CHECK_EQ(leave_directory(in, "d", 02575), 0);
	CHECK(has(scratch_path(dir, "in/d"), 02575, true));
	/* it is opened for what goes into it once more, and an existing one gets the mode, too */
	CHECK_EQ(chmod(scratch_path(dir, "in/d"), 0555), 0);
	CHECK_EQ(receive_directory(in, "d", 0511), 0);
	CHECK(has(scratch_path(dir, "in/d"), 0755, false));
	CHECK_EQ(leave_directory(in, "d", 0511), 0);
	CHECK(has(scratch_path(dir, "in/d"), 0511, true));
	/* what was not made was told already; a link leads nowhere */
	CHECK_EQ(leave_directory(in, "no", 0755), 0);
	CHECK_EQ(leave_directory(in, "d/f", 0700), 0);
	CHECK_EQ(symlink("../..", scratch_path(dir, "in/out")), 0);
	CHECK_EQ(leave_directory(in, "out", 0700), -EXDEV);
	CHECK_EQ(leave_directory(in, "", 0750), 0);
	CHECK(has(scratch_path(dir, "in"), 0750, true));
	incoming_free(in);
	CHECK(!strcmp(log_text, "/in/d 0 0\n/in/d/f 0 3\n/in/d 0 0\n/in/out 208 0\n"));
	/* an export's top keeps its own */
	CHECK_EQ(stat(dir, &before), 0);
	p = params(INCOMING_INTO, top, "/");
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(leave_directory(in, "", 0755), 0);
	CHECK(has(dir, before.st_mode & 07777, false));
	CHECK(!has(dir, before.st_mode & 07777, true));
	incoming_free(in);
	close(top);
}

static int receive_link(struct incoming *in, const char *name, const char *target)
{
	struct transfer_file file = file_of(TRANSFER_FILE_LINK, name, 0);

	file.target = (struct wire_bytes){(const uint8_t *)target, strlen(target)};
	return receive_file(in, &file, "", 0);
}

static bool says(const char *path, const char *target)
{
	char now[200] = "";
	struct stat st;

	return readlink(path, now, sizeof(now) - 1) > 0 && !strcmp(now, target) &&
	       !lstat(path, &st) && st.st_mtim.tv_sec == 1000000000;
}

static void links_are_made_and_lead_nobody_out(void)
{
	const char *dir = scratch_dir();
	struct incoming_params p;
	struct incoming *in;

	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "outside"), 0755), 0);
	p = params(INCOMING_INTO, AT_FDCWD, scratch_path(dir, "in"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_link(in, "a", "../outside"), 0);
	CHECK(says(scratch_path(dir, "in/a"), "../outside"));
	/* what comes behind it does not go through it */
	CHECK_EQ(receive(in, "a/f", "x"), -EXDEV);
	CHECK_EQ(receive_directory(in, "a", 0755), -EXDEV);
	CHECK_EQ(receive_link(in, "a/l", "x"), -EXDEV);
	CHECK_EQ(leave_directory(in, "a", 0700), -EXDEV);
	CHECK_EQ(scratch_entries(scratch_path(dir, "outside")), 0);
	/* in place of a link, also one to a directory, of a file, and not of a directory */
	CHECK_EQ(receive_link(in, "a", "elsewhere"), 0);
	CHECK(says(scratch_path(dir, "in/a"), "elsewhere"));
	CHECK_EQ(receive_link(in, "a", "elsewhere"), 0);
	CHECK_EQ(receive_link(in, "x/y/l", "/"), 0);
	CHECK(says(scratch_path(dir, "in/x/y/l"), "/"));
	CHECK_EQ(receive(in, "f", "old"), 0);
	CHECK_EQ(receive_link(in, "f", "new"), 0);
	CHECK(says(scratch_path(dir, "in/f"), "new"));
	CHECK_EQ(receive_link(in, "x", "y"), -EISDIR);
	CHECK_EQ(receive(in, "f", "file"), 0);
	CHECK(scratch_is(scratch_path(dir, "in/f"), "file"));
	CHECK_EQ(scratch_entries(scratch_path(dir, "in")), 3);
	incoming_free(in);
	p.replace = false;
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_link(in, "a", "elsewhere"), -EEXIST);
	CHECK_EQ(receive_link(in, "b", "elsewhere"), 0);
	incoming_free(in);
	p = params(INCOMING_STREAM, AT_FDCWD, NULL);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_link(in, "a", "b"), -EINVAL);
	incoming_free(in);
	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "as"));
	p.asked = asked_for("name", false);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_link(in, "name", "b"), -EBADMSG); /* a file was asked for */
	incoming_free(in);
}

static void into_a_directory(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY), fds;
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct incoming *in;
	struct stat st;

	umask(022);
	fds = scratch_open_fds();
	CHECK_EQ(incoming_new(&p, &in), -ENOENT);
	CHECK(!in);
	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive(in, "a", "one"), 0);
	CHECK_EQ(receive(in, "x/y/z", "two"), 0);
	CHECK_EQ(receive_directory(in, "", 0755), 0);
	CHECK_EQ(receive_directory(in, "d", 0500), 0);
	CHECK_EQ(receive_directory(in, "d", 0500), 0); /* is there */
	CHECK_EQ(receive_directory(in, "d/e/f", 0755), 0);
	CHECK_EQ(receive(in, "d/g", "three"), 0);
	CHECK_EQ(receive(in, "a", "four"), 0);
	CHECK_EQ(receive(in, "", "x"), -EISDIR);
	CHECK_EQ(receive(in, "d", "x"), -EISDIR);
	CHECK_EQ(receive(in, "a/b", "x"), -ENOTDIR);
	CHECK_EQ(receive_directory(in, "a", 0755), -ENOTDIR);
	CHECK(scratch_is(scratch_path(dir, "in/a"), "four"));
	CHECK(scratch_is(scratch_path(dir, "in/x/y/z"), "two"));
	CHECK(scratch_is(scratch_path(dir, "in/d/g"), "three"));
	CHECK_EQ(stat(scratch_path(dir, "in/d"), &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0700);
	CHECK_EQ(stat(scratch_path(dir, "in/a"), &st), 0);
	CHECK_EQ(st.st_mtim.tv_sec, 1000000000);
	CHECK_EQ(st.st_mode & 0777, 0644);
	CHECK_EQ(scratch_entries(scratch_path(dir, "in")), 3);
	CHECK(!strcmp(log_text,
		"/in/a 0 3\n/in/x/y/z 0 3\n/in 0 0\n/in/d 0 0\n/in/d 0 0\n/in/d/e/f 0 0\n"
		"/in/d/g 0 5\n/in/a 0 4\n/in 204 0\n/in/d 204 0\n/in/a/b 205 0\n"
		"/in/a 205 0\n"));
	incoming_free(in);
	CHECK_EQ(scratch_open_fds(), fds);
	CHECK(scratch_write(scratch_path(dir, "file"), "x"));
	p = params(INCOMING_INTO, top, "file");
	CHECK_EQ(incoming_new(&p, &in), -ENOTDIR);
	p = params(INCOMING_INTO, top, "..");
	CHECK_EQ(incoming_new(&p, &in), -EXDEV);
	close(top);
}

static void as_a_name(void)
{
	const char *dir = scratch_dir();
	struct incoming_params p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "new"));
	struct incoming *in;

	p.ctx = (void *)dir;
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive(in, "x", "beneath what?"), -ENOTDIR);
	CHECK_EQ(receive(in, "", "content"), 0);
	CHECK(scratch_is(scratch_path(dir, "new"), "content"));
	incoming_free(in);
	CHECK(!strcmp(log_text, "/new/x 205 0\n/new 0 7\n"));

	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "tree"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, "", 0755), 0);
	CHECK_EQ(receive(in, "a/b", "deep"), 0);
	CHECK_EQ(receive(in, "", "x"), -EISDIR);
	CHECK(scratch_is(scratch_path(dir, "tree/a/b"), "deep"));
	incoming_free(in);

	/* the directory may be there already, a file is in the way */
	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "tree"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive(in, "", "x"), -EISDIR);
	CHECK_EQ(receive_directory(in, "", 0755), 0);
	incoming_free(in);
	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "new"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, "", 0755), -ENOTDIR);
	incoming_free(in);

	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "no/new"));
	CHECK_EQ(incoming_new(&p, &in), -ENOENT);
	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "new/x"));
	CHECK_EQ(incoming_new(&p, &in), -ENOTDIR);
	p = params(INCOMING_AS, AT_FDCWD, "/");
	CHECK_EQ(incoming_new(&p, &in), -EINVAL);
}

static void a_peers_names_stay_beneath(void)
{
	static const char *const bad[] = {
		"..", "../x", "a/../../x", "/etc/x", "a//b", "a/", ".", "./a"};
	static const char *const out[] = {"absolute/x", "dots/x", "dots/new/x", "root/tmp/x"};
	const char *dir = scratch_dir();
	struct incoming_params p;
	struct transfer_file file;
	struct incoming *in;
	static char longest[16500];

	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "outside"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "in/sub"), 0755), 0);
	CHECK_EQ(symlink(scratch_path(dir, "outside"), scratch_path(dir, "in/absolute")), 0);
	CHECK_EQ(symlink("../outside", scratch_path(dir, "in/dots")), 0);
	CHECK_EQ(symlink("/", scratch_path(dir, "in/root")), 0);
	CHECK_EQ(symlink("sub", scratch_path(dir, "in/inside")), 0);
	/* also where the destination is the user's own name: a hostile daemon is a peer too */
	p = params(INCOMING_INTO, AT_FDCWD, scratch_path(dir, "in"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_EQ(receive(in, bad[i], "x"), -ENAMETOOLONG);
		CHECK_EQ(receive_directory(in, bad[i], 0755), -ENAMETOOLONG);
	}
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		CHECK_EQ(receive(in, out[i], "x"), -EXDEV);
		CHECK_EQ(receive_directory(in, out[i], 0755), -EXDEV);
	}
	file = file_of(TRANSFER_FILE_REGULAR, "a", 1);
	file.name.data = (const uint8_t *)"a\0b";
	file.name.len = 3;
	CHECK_EQ(receive_file(in, &file, "x", 0), -ENAMETOOLONG);
	memset(longest, 'n', sizeof(longest));
	for (int i = 200; i < 16500; i += 200)
		longest[i] = '/';
	longest[16499] = '\0';
	CHECK_EQ(receive(in, longest, "x"), -ENAMETOOLONG);
	longest[16383] = '\0';
	CHECK_EQ(receive(in, longest, "deep"), 0);
	CHECK_EQ(receive(in, "inside/x", "x"), 0);
	CHECK(scratch_is(scratch_path(dir, "in/sub/x"), "x"));
	CHECK_EQ(receive(in, "\n\"'\xff", "bytes"), 0);
	CHECK(scratch_is(scratch_path(dir, "in/\n\"'\xff"), "bytes"));
	CHECK_EQ(scratch_entries(scratch_path(dir, "outside")), 0);
	incoming_free(in);
}

/* The destination is what it was when the transfer began, wherever its name leads by now. */
static void a_destination_that_is_moved_keeps_its_files(void)
{
	const char *dir = scratch_dir();
	struct incoming_params p;
	struct incoming *in;

	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "outside"), 0755), 0);
	p = params(INCOMING_INTO, AT_FDCWD, scratch_path(dir, "in"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(rename(scratch_path(dir, "in"), scratch_path(dir, "moved")), 0);
	CHECK_EQ(symlink("outside", scratch_path(dir, "in")), 0);
	CHECK_EQ(receive(in, "a", "one"), 0);
	CHECK_EQ(receive_directory(in, "d", 0755), 0);
	CHECK(scratch_is(scratch_path(dir, "moved/a"), "one"));
	CHECK_EQ(scratch_entries(scratch_path(dir, "outside")), 0);
	incoming_free(in);
}

static void failures_leave_the_old_file(void)
{
	const char *dir = scratch_dir();
	struct incoming_params p = params(INCOMING_INTO, AT_FDCWD, dir);
	const struct transfer_sink *sink;
	struct transfer_file file;
	struct incoming *in;
	char why[512];
	void *cookie;
	struct end *end;

	CHECK(scratch_write(scratch_path(dir, "a"), "old"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	sink = incoming_sink(in);
	file = file_of(TRANSFER_FILE_REGULAR, "a", 3);
	CHECK_EQ(receive_file(in, &file, "new", -EILSEQ), -EILSEQ);
	CHECK(scratch_is(scratch_path(dir, "a"), "old"));
	CHECK_EQ(scratch_entries(dir), 1);
	/* a transfer that is thrown away as a whole */
	file = file_of(TRANSFER_FILE_REGULAR, "a", 3);
	CHECK_EQ(sink->open(sink->ctx, &file, &end, &cookie, why), 0);
	end_free(end);
	incoming_free(in);
	CHECK(scratch_is(scratch_path(dir, "a"), "old"));
	CHECK_EQ(scratch_entries(dir), 1);

	p.replace = false;
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive(in, "a", "new"), -EEXIST);
	CHECK_EQ(receive(in, "b", "new"), 0);
	CHECK(scratch_is(scratch_path(dir, "a"), "old"));
	incoming_free(in);
}

static void a_full_disk_is_said_at_once(void)
{
	const char *dir = scratch_small(1u << 20);
	struct incoming_params p;
	struct transfer_file file;
	struct incoming *in;

	if (!dir)
		SKIP("may not mount a small file system");
	p = params(INCOMING_INTO, AT_FDCWD, dir);
	CHECK_EQ(incoming_new(&p, &in), 0);
	file = file_of(TRANSFER_FILE_REGULAR, "a", 1ull << 30);
	CHECK_EQ(receive_file(in, &file, "x", 0), -ENOSPC);
	CHECK_EQ(scratch_entries(dir), 0);
	incoming_free(in);
}

static void one_file_to_a_stream(void)
{
	struct incoming_params p = params(INCOMING_STREAM, AT_FDCWD, NULL);
	struct transfer_file file;
	struct incoming *in;
	char got[16];
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	p.fd = fds[1];
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, "d", 0755), -EINVAL);
	CHECK_EQ(receive(in, "some/name", "bytes"), 0);
	file = file_of(TRANSFER_FILE_STREAM, "more", MESSAGE_UNKNOWN);
	CHECK_EQ(receive_file(in, &file, "no", 0), -EINVAL);
	incoming_free(in);
	CHECK_EQ(close(fds[1]), 0); /* stayed ours */
	CHECK_EQ(read(fds[0], got, sizeof(got)), 5);
	CHECK(!memcmp(got, "bytes", 5));
	CHECK_EQ(read(fds[0], got, sizeof(got)), 0);
	close(fds[0]);
	CHECK(!strcmp(log_text, "- 103 0\n- 0 5\n- 103 0\n"));
}

static void a_stream_to_a_file(void)
{
	const char *dir = scratch_dir();
	struct incoming_params p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "f"));
	struct transfer_file file = file_of(TRANSFER_FILE_STREAM, "", MESSAGE_UNKNOWN);
	struct incoming *in;
	struct stat st;

	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_file(in, &file, "stream", 0), 0);
	CHECK(scratch_is(scratch_path(dir, "f"), "stream"));
	CHECK_EQ(stat(scratch_path(dir, "f"), &st), 0);
	CHECK(st.st_mtim.tv_sec != 1000000000); /* a stream has no time of its own */
	incoming_free(in);
}

static void nothing_is_discarded(void)
{
	struct incoming_params p = params(INCOMING_NULL, AT_FDCWD, NULL);
	struct transfer_file file = file_of(TRANSFER_FILE_NULL, "", 6);
	const char *dir = scratch_dir();
	struct incoming *in;

	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_file(in, &file, "nobody", 0), 0);
	CHECK_EQ(receive(in, "d/file", "reads"), 0);
	CHECK_EQ(receive_directory(in, "d", 0755), 0);
	incoming_free(in);
	CHECK(!strcmp(log_text, " 0 6\n 0 5\n 0 0\n"));

	p = params(INCOMING_INTO, AT_FDCWD, dir);
	CHECK_EQ(incoming_new(&p, &in), 0);
	file = file_of(TRANSFER_FILE_NULL, "x", 6);
	CHECK_EQ(receive_file(in, &file, "nobody", 0), -EINVAL);
	CHECK_EQ(scratch_entries(dir), 0);
	incoming_free(in);
	incoming_free(NULL);
}

/* A server sends one file for one name, and a tree only beneath the one that was asked for. */
static void only_what_was_asked_for(void)
{
	const char *dir = scratch_dir();
	struct incoming_params p = params(INCOMING_INTO, AT_FDCWD, dir);
	struct incoming *in;

	p.asked = asked_for("report.txt", false);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive(in, ".bashrc", "evil"), -EBADMSG);
	CHECK_EQ(receive(in, "report.txt/x", "evil"), -EBADMSG);
	CHECK_EQ(receive(in, "report.txt2", "evil"), -EBADMSG);
	CHECK_EQ(receive(in, "", "evil"), -EBADMSG);
	CHECK_EQ(receive_directory(in, "report.txt", 0755), -EBADMSG);
	CHECK_EQ(receive(in, "report.txt", "good"), 0);
	CHECK_EQ(receive(in, "report.txt", "evil"), -EBADMSG); /* once */
	CHECK(scratch_is(scratch_path(dir, "report.txt"), "good"));
	CHECK_EQ(scratch_entries(dir), 1);
	incoming_free(in);

	p.asked = asked_for("tree", true);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, ".ssh", 0755), -EBADMSG);
	CHECK_EQ(receive(in, ".ssh/authorized_keys", "evil"), -EBADMSG);
	CHECK_EQ(receive(in, "tree2/x", "evil"), -EBADMSG);
	CHECK_EQ(receive_directory(in, "tree", 0755), 0);
	CHECK_EQ(receive(in, "tree/a/b", "good"), 0);
	CHECK(scratch_is(scratch_path(dir, "tree/a/b"), "good"));
	CHECK_EQ(scratch_entries(dir), 2);
	incoming_free(in);

	p = params(INCOMING_AS, AT_FDCWD, scratch_path(dir, "as"));
	p.asked = asked_for("", false);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, "", 0755), -EBADMSG);
	CHECK_EQ(receive(in, "x", "evil"), -EBADMSG);
	CHECK_EQ(receive(in, "", "good"), 0);
	incoming_free(in);
	CHECK_EQ(scratch_entries(dir), 3);
}

static int receive_hard_link(
	struct incoming *in, const char *name, const char *target, uint32_t first)
{
	struct transfer_file file = file_of(TRANSFER_FILE_HARD_LINK, name, 0);

	file.target = (struct wire_bytes){(const uint8_t *)target, strlen(target)};
	file.first = first;
	return receive_file(in, &file, "", 0);
}

/* Only to a file of this transfer that said that it has more names, and landed. */
static void a_peers_hard_links(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct transfer_file named, failed;
	struct incoming *in;

	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "in/old"), "old"));
	CHECK(scratch_write(scratch_path(dir, "in/failed"), "old"));
	CHECK_EQ(incoming_new(&p, &in), 0);
	named = file_of(TRANSFER_FILE_REGULAR, "named", 3);
	named.has = TRANSFER_HAS_NAMES;
	CHECK_EQ(receive_file(in, &named, "one", 0), 0);
	failed = file_of(TRANSFER_FILE_REGULAR, "failed", 3);
	failed.has = TRANSFER_HAS_NAMES;
	CHECK_EQ(receive_file(in, &failed, "two", -EIO), -EIO);
	CHECK_EQ(receive(in, "single", "3"), 0);
	CHECK_EQ(receive_hard_link(in, "d/link", "named", named.file), 0);
	CHECK_EQ(receive_hard_link(in, "a", "old", named.file), -ESTALE);
	CHECK_EQ(receive_hard_link(in, "b", "failed", failed.file), -ENOENT);
	CHECK_EQ(receive_hard_link(in, "c", "single", failed.file + 1), -ENOENT);
	CHECK_EQ(receive_hard_link(in, "e", "named", 4711), -ENOENT);
	incoming_free(in);
	CHECK_EQ(scratch_entries(scratch_path(dir, "in")), 5);
	close(top);
}

static int receive_attributes(
	struct incoming *in, const char *name, uint64_t there, struct transfer_file *file)
{
	*file = file_of(TRANSFER_FILE_ATTRIBUTES, name, 0);
	file->there.size = there;
	file->mode = 0640;
	file->mtime_ns = 123456789;
	file->has = TRANSFER_HAS_NAMES;
	return receive_file(in, file, "", 0);
}

/* Of a file that is there, and has the size that it had when it was compared. */
static void attributes_alone(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct transfer_file file;
	struct incoming *in;

	p.attributes = true;
	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK_EQ(mkdir(scratch_path(dir, "in/d"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "in/f"), "old"));
	CHECK(scratch_write(scratch_path(dir, "in/grown"), "older"));
	CHECK(scratch_write(scratch_path(dir, "in/closed"), "old"));
	CHECK(scratch_write(scratch_path(dir, "in/longer"), "older"));
	CHECK_EQ(chmod(scratch_path(dir, "in/longer"), 0), 0);
	CHECK(scratch_write(scratch_path(dir, "out"), "old"));
	CHECK_EQ(chmod(scratch_path(dir, "in/closed"), 0), 0);
	CHECK_EQ(symlink("f", scratch_path(dir, "in/link")), 0);
	CHECK_EQ(mkfifo(scratch_path(dir, "in/pipe"), 0600), 0);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_attributes(in, "none", 3, &file), -ENOENT);
	CHECK_EQ(receive_attributes(in, "../out", 3, &file), -ENAMETOOLONG);
	CHECK_EQ(receive_attributes(in, "link", 3, &file), -ELOOP);
	CHECK_EQ(receive_attributes(in, "pipe", 0, &file), -ESTALE);
	CHECK_EQ(receive_attributes(in, "d", 4096, &file), -ESTALE);
	CHECK_EQ(receive_attributes(in, "grown", 3, &file), -ESTALE);
	CHECK(!has(scratch_path(dir, "in/grown"), 0640, true));
	CHECK_EQ(receive_attributes(in, "longer", 3, &file), -ESTALE);
	CHECK(has(scratch_path(dir, "in/longer"), 0, false));
	CHECK_EQ(receive_attributes(in, "closed", 3, &file), 0);
	CHECK(has(scratch_path(dir, "in/closed"), 0640, true));
	CHECK_EQ(receive_attributes(in, "f", 3, &file), 0);
	CHECK(has(scratch_path(dir, "in/f"), 0640, true));
	CHECK(scratch_is(scratch_path(dir, "in/f"), "old"));
	/* and a link may follow to it */
	CHECK_EQ(receive_hard_link(in, "g", "f", file.file), 0);
	CHECK(has(scratch_path(dir, "in/g"), 0640, true));
	incoming_free(in);
	close(top);
}

static int receive_seen(struct incoming *in, const char *name, const struct message_seen *seen)
{
	struct transfer_file file = file_of(TRANSFER_FILE_ATTRIBUTES, name, 0);

	file.seen = true;
	file.there = *seen;
	file.mode = 0640;
	file.mtime_ns = 123456789;
	return receive_file(in, &file, "", 0);
}

/* Of a file that is there, and is what the peer says that it has seen. */
static void attributes_of_what_was_seen(void)
{
	const char *dir = scratch_dir(), *path;
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct message_seen seen, other;
	struct incoming *in;
	struct stat st;

	p.attributes = true;
	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "in/f"), "old"));
	path = scratch_path(dir, "in/f");
	CHECK_EQ(stat(path, &st), 0);
	seen = (struct message_seen){.size = 3,
		.mtime_s = st.st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st.st_mtim.tv_nsec,
		.change = seen_change(&st)};
	CHECK_EQ(incoming_new(&p, &in), 0);
	for (unsigned i = 0; i < 4; i++) {
		other = seen;
		*(i == 0 ? &other.size : i == 1 ? (uint64_t *)&other.mtime_s : &other.change) += 1;
		if (i == 3)
			other = (struct message_seen){.size = 3, .mtime_s = 1};
		CHECK_EQ(receive_seen(in, "f", &other), -ESTALE);
		CHECK(!has(path, 0640, true));
	}
	CHECK_EQ(receive_seen(in, "f", &seen), 0);
	CHECK(has(path, 0640, true));
	/* what has the time already gets the rest: another name of it may have got it */
	CHECK_EQ(chmod(path, 0), 0);
	CHECK_EQ(receive_seen(in, "f", &seen), 0);
	CHECK(has(path, 0640, true));
	/* one of ours that keeps us out is changed by opening it */
	CHECK_EQ(utimensat(AT_FDCWD, path, (struct timespec[]){{5, 0}, {5, 0}}, 0), 0);
	CHECK_EQ(chmod(path, 0), 0);
	CHECK_EQ(stat(path, &st), 0);
	seen = (struct message_seen){.size = 3, .mtime_s = 5, .change = seen_change(&st)};
	CHECK_EQ(receive_seen(in, "f", &seen), 0);
	CHECK(has(path, 0640, true));
	incoming_free(in);
	close(top);
}

static void list_one(struct compare_list *list, const char *name, int64_t s, uint32_t ns)
{
	struct compare_entry e = {.name = strdup(name),
		.type = MESSAGE_FILE,
		.size = 3,
		.mtime_s = s,
		.mtime_ns = ns};

	if (!e.name || compare_list_append(list, &e))
		abort();
}

/* What changed at either side after it was compared keeps its time, or it would never be copied. */
static void attributes_of_what_was_compared(void)
{
	const char *dir = scratch_dir();
	const struct timespec times[2] = {{7, 0}, {900000000, 5}};
	static const char *const names[] = {"in/a", "in/b", "in/c"};
	struct compare_list there = {0}, here = {0};
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct transfer_file file;
	struct incoming *in;
	struct stat st;

	p.attributes = true;
	p.listed_there = &there;
	p.listed_here = &here;
	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(scratch_write(scratch_path(dir, names[i]), "old"));
		CHECK_EQ(utimensat(AT_FDCWD, scratch_path(dir, names[i]), times, 0), 0);
	}
	list_one(&there, "a", 1000000000, 123456788); /* it was written to meanwhile */
	list_one(&there, "b", 1000000000, 123456789);
	list_one(&there, "c", 1000000000, 123456789);
	list_one(&here, "a", 900000000, 5);
	list_one(&here, "b", 900000000, 4); /* so was this one */
	list_one(&here, "c", 900000000, 5);
	CHECK_EQ(incoming_new(&p, &in), 0);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(receive_attributes(in, names[i] + 3, 3, &file), -ESTALE);
		CHECK_EQ(stat(scratch_path(dir, names[i]), &st), 0);
		CHECK_EQ(st.st_mtim.tv_sec, 900000000);
		CHECK_EQ(st.st_mode & 07777, 0644);
	}
	CHECK_EQ(receive_attributes(in, "c", 3, &file), 0);
	CHECK(has(scratch_path(dir, "in/c"), 0640, true));
	/* what has the time already gets the rest, whatever was listed */
	CHECK_EQ(chmod(scratch_path(dir, "in/c"), 0600), 0);
	CHECK_EQ(receive_attributes(in, "c", 3, &file), 0);
	CHECK(has(scratch_path(dir, "in/c"), 0640, true));
	incoming_free(in);
	compare_list_fini(&there);
	compare_list_fini(&here);
	close(top);
}

/* Nobody asked for them, or nothing that is there is to change. */
static void attributes_that_nobody_wants(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_INTO, top, "/in");
	struct transfer_file file;
	struct incoming *in;

	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "in/f"), "old"));
	CHECK_EQ(chmod(scratch_path(dir, "in/f"), 0600), 0);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_attributes(in, "f", 3, &file), -EBADMSG);
	incoming_free(in);
	p.attributes = true;
	p.replace = false;
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_attributes(in, "f", 3, &file), -EEXIST);
	incoming_free(in);
	CHECK(has(scratch_path(dir, "in/f"), 0600, false));
	CHECK(!has(scratch_path(dir, "in/f"), 0600, true));
	close(top);
}

/* Who may append to a file may do nothing else: not to what is in a directory either. */
static void in_place_nothing_but_bytes(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY);
	struct incoming_params p = params(INCOMING_AS, top, "/in");
	struct transfer_file file, link;
	struct incoming *in;

	p.in_place = (struct incoming_place){
		.wanted = true, .create = -EPERM, .offset = MESSAGE_UNKNOWN};
	p.attributes = true;
	CHECK_EQ(mkdir(scratch_path(dir, "in"), 0700), 0);
	CHECK(scratch_write(scratch_path(dir, "in/f"), "old"));
	CHECK_EQ(chmod(scratch_path(dir, "in/f"), 0600), 0);
	CHECK_EQ(chmod(scratch_path(dir, "in"), 0500), 0);
	CHECK_EQ(incoming_new(&p, &in), 0);
	CHECK_EQ(receive_directory(in, "", 0755), -EINVAL);
	CHECK_EQ(receive_attributes(in, "f", 3, &file), -EINVAL);
	link = file_of(TRANSFER_FILE_LINK, "f", 0);
	link.target = (struct wire_bytes){(const uint8_t *)"elsewhere", 9};
	CHECK_EQ(receive_file(in, &link, "", 0), -EINVAL);
	CHECK_EQ(receive_directory(in, "new", 0755), -EINVAL);
	CHECK_EQ(leave_directory(in, "", 0755), -EINVAL);
	CHECK(has(scratch_path(dir, "in"), 0500, false));
	CHECK(has(scratch_path(dir, "in/f"), 0600, false));
	CHECK(scratch_is(scratch_path(dir, "in/f"), "old"));
	CHECK_EQ(scratch_entries(scratch_path(dir, "in")), 1);
	incoming_free(in);
	CHECK_EQ(chmod(scratch_path(dir, "in"), 0700), 0);
	close(top);
}

HARNESS_MAIN({"attributes_of_what_was_seen", attributes_of_what_was_seen},
	{"attributes_of_what_was_compared", attributes_of_what_was_compared},
	{"attributes_that_nobody_wants", attributes_that_nobody_wants},
	{"in_place_nothing_but_bytes", in_place_nothing_but_bytes},
	{"a_peers_hard_links", a_peers_hard_links}, {"attributes_alone", attributes_alone},
	{"directories_get_their_mode_and_time_last", directories_get_their_mode_and_time_last},
	{"links_are_made_and_lead_nobody_out", links_are_made_and_lead_nobody_out},
	{"into_a_directory", into_a_directory}, {"as_a_name", as_a_name},
	{"a_peers_names_stay_beneath", a_peers_names_stay_beneath},
	{"only_what_was_asked_for", only_what_was_asked_for},
	{"a_destination_that_is_moved_keeps_its_files",
		a_destination_that_is_moved_keeps_its_files},
	{"failures_leave_the_old_file", failures_leave_the_old_file},
	{"a_full_disk_is_said_at_once", a_full_disk_is_said_at_once},
	{"one_file_to_a_stream", one_file_to_a_stream}, {"a_stream_to_a_file", a_stream_to_a_file},
	{"nothing_is_discarded", nothing_is_discarded})
