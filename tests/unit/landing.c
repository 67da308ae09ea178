/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/landing.c: the real name has the old file, or the whole new one, and nothing stays
 * behind.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/landing.h"
#include "tree/landing_link.h"
#include "tree/temporary.h"

#include <sys/syscall.h>
#include <sys/wait.h>

static char note[512];

struct place {
	const char *dir;
	int top;
};

static bool place_make(struct place *p)
{
	p->dir = scratch_dir();
	umask(022);
	if (mkdir(scratch_path(p->dir, "top"), 0755) ||
		mkdir(scratch_path(p->dir, "outside"), 0755))
		return false;
	p->top = open(scratch_path(p->dir, "top"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->top >= 0;
}

static const char *in_top(const struct place *p, const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "top/%s", name);
	return scratch_path(p->dir, path);
}

static struct landing_params params(const struct place *p, const char *path)
{
	return (struct landing_params){.top = p->top,
		.path = path,
		.metadata.mode = 0640,
		.replace = true,
		.parents = false};
}

/* Opens a landing and writes `text` to it. */
static int land(const struct landing_params *lp, const char *text, struct landing **landing)
{
	int err = landing_open(lp, landing), fd;

	if (err)
		return err;
	fd = landing_fd(*landing);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) ||
		close(fd))
		abort();
	return 0;
}

static void new_file_appears_at_commit(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	struct stat st;
	int fds;

	CHECK(place_make(&p));
	fds = scratch_open_fds();
	lp = params(&p, "/file");
	lp.metadata = (struct metadata){
		.mode = 06777, .mtime_s = 1000000007, .mtime_ns = 123456789, .set_id = true};
	lp.keep = true;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(access(in_top(&p, "file"), F_OK), -1);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 1);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK(scratch_is(in_top(&p, "file"), "new"));
	CHECK_EQ(stat(in_top(&p, "file"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 06777); /* umask takes nothing */
	CHECK(!strcmp(note, ""));
	CHECK_EQ(st.st_mtim.tv_sec, 1000000007);
	CHECK_EQ(st.st_mtim.tv_nsec, 123456789);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 1);
	CHECK_EQ(scratch_open_fds(), fds);
	close(p.top);
}

/* In place of libc's, for the modules under test, too. */
static bool directory_fails;

int fsync(int fd)
{
	struct stat st;

	if (directory_fails && !fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

static void the_directorys_fsync_fails(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;

	CHECK(place_make(&p));
	CHECK(scratch_write(in_top(&p, "file"), "old"));
	lp = params(&p, "file");
	CHECK_EQ(land(&lp, "new", &landing), 0);
	directory_fails = true;
	CHECK_EQ(landing_commit(landing, note), -ENOTRECOVERABLE);
	directory_fails = false;
	CHECK(strstr(note, "fsync of its directory"));
	CHECK(scratch_is(in_top(&p, "file"), "new"));
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 1);
	close(p.top);
}

static void what_is_not_kept_is_noted(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	struct stat st;

	CHECK(place_make(&p));
	lp = params(&p, "file");
	lp.metadata = (struct metadata){.mode = 06755, .mtime_s = 7};
	lp.keep = true;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK_EQ(stat(in_top(&p, "file"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0755);
	CHECK(!strcmp(note, "set-user-ID and set-group-ID are not kept"));
	/* an existing file gets the new mode, without `keep` it has its own, and no umask */
	lp.metadata = (struct metadata){.mode = 04666, .mtime_s = 7};
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK_EQ(stat(in_top(&p, "file"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0666);
	CHECK(!strcmp(note, "set-user-ID is not kept"));
	lp.keep = false;
	lp.metadata.mode = 0600;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK_EQ(stat(in_top(&p, "file"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0666);
	close(p.top);
}

static void old_file_stays_until_commit(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	struct stat st;

	CHECK(place_make(&p));
	CHECK(scratch_write(in_top(&p, "file"), "old"));
	CHECK_EQ(chmod(in_top(&p, "file"), 0604), 0);
	lp = params(&p, "file");
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK(scratch_is(in_top(&p, "file"), "old"));
	landing_discard(landing);
	CHECK(scratch_is(in_top(&p, "file"), "old"));
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 1);

	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK(scratch_is(in_top(&p, "file"), "new"));
	CHECK_EQ(stat(in_top(&p, "file"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0604); /* keeps its own */
	CHECK(st.st_mtim.tv_sec > 1000000000);
	landing_discard(NULL);
	close(p.top);
}

static void the_temporary_file_is_private_and_known_by_name(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct dirent *entry;
	struct stat st;
	struct place p;
	int found = 0;
	DIR *dir;

	CHECK(place_make(&p));
	lp = params(&p, "file");
	lp.metadata.mode = 0666;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	dir = opendir(scratch_path(p.dir, "top"));
	CHECK(dir);
	while ((entry = readdir(dir)))
		if (temporary_is_name(entry->d_name)) {
			found++;
			CHECK_EQ(fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
			CHECK_EQ(st.st_mode & 07777, 0600);
		}
	closedir(dir);
	CHECK_EQ(found, 1);
	landing_discard(landing);
	CHECK(temporary_is_name(".rftp-0123456789abcdef.part"));
	CHECK(!temporary_is_name(".rftp-0123456789abcdeg.part"));
	CHECK(!temporary_is_name(".rftp-0123456789abcdef.par"));
	CHECK(!temporary_is_name(".rftp-0123456789abcde.part"));
	CHECK(!temporary_is_name(".rftp-"));
	CHECK(!temporary_is_name(""));
	close(p.top);
}

static void without_replace_an_existing_file_is_kept(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;

	CHECK(place_make(&p));
	lp = params(&p, "file");
	lp.replace = false;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK(scratch_write(in_top(&p, "file"), "somebody was faster"));
	CHECK_EQ(landing_commit(landing, note), -EEXIST);
	CHECK(scratch_is(in_top(&p, "file"), "somebody was faster"));
	CHECK_EQ(landing_open(&lp, &landing), -EEXIST);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 1);
	CHECK_EQ(unlink(in_top(&p, "file")), 0);
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK(scratch_is(in_top(&p, "file"), "new"));
	close(p.top);
}

static void what_can_not_be_a_file(void)
{
	static const struct {
		const char *path;
		int err;
	} rows[] = {{"", -EINVAL}, {"/", -EINVAL}, {"dir/", -EINVAL}, {"x/", -EINVAL},
		{"..", -EINVAL}, {"dir/.", -EINVAL}, {"dir", -EISDIR}, {"dirlink", -EISDIR},
		{"fifo", -ENXIO}, {"no/file", -ENOENT}, {"file/x", -ENOTDIR}, {"out/x", -EXDEV},
		{"../x", -EXDEV}};
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	int fds;

	CHECK(place_make(&p));
	CHECK(scratch_write(in_top(&p, "file"), "old"));
	CHECK_EQ(mkdir(in_top(&p, "dir"), 0755), 0);
	CHECK_EQ(symlink("dir", in_top(&p, "dirlink")), 0);
	CHECK_EQ(symlink("../outside", in_top(&p, "out")), 0);
	CHECK_EQ(mkfifo(in_top(&p, "fifo"), 0600), 0);
	fds = scratch_open_fds();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		lp = params(&p, rows[i].path);
		CHECK_EQ(landing_open(&lp, &landing), rows[i].err);
		CHECK(!landing);
	}
	lp = params(&p, "out/a/b");
	lp.parents = true;
	CHECK_EQ(landing_open(&lp, &landing), -EXDEV);
	CHECK_EQ(scratch_open_fds(), fds);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 5);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "outside")), 0);
	close(p.top);
}

static void links_are_replaced_not_written_through(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	struct stat st;

	CHECK(place_make(&p));
	CHECK(scratch_write(scratch_path(p.dir, "outside/secret"), "secret"));
	CHECK_EQ(symlink("../outside/secret", in_top(&p, "link")), 0);
	CHECK_EQ(symlink("../outside/new", in_top(&p, "dangling")), 0);
	CHECK_EQ(symlink(".", in_top(&p, "directory")), 0);
	lp = params(&p, "directory");
	lp.beneath = true;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK(scratch_is(in_top(&p, "directory"), "new"));
	lp = params(&p, "link");
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	lp = params(&p, "dangling");
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK_EQ(lstat(in_top(&p, "link"), &st), 0);
	CHECK(S_ISREG(st.st_mode));
	CHECK(scratch_is(scratch_path(p.dir, "outside/secret"), "secret"));
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "outside")), 1);
	close(p.top);
}

static void a_moved_parent_redirects_nothing(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;

	CHECK(place_make(&p));
	CHECK(scratch_write(scratch_path(p.dir, "outside/file"), "secret"));
	lp = params(&p, "a/b/file");
	lp.parents = true;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(rename(in_top(&p, "a"), in_top(&p, "moved")), 0);
	CHECK_EQ(mkdir(in_top(&p, "a"), 0755), 0);
	CHECK_EQ(symlink("../../outside", in_top(&p, "a/b")), 0);
	CHECK_EQ(landing_commit(landing, note), 0);
	CHECK(scratch_is(scratch_path(p.dir, "outside/file"), "secret"));
	CHECK(scratch_is(in_top(&p, "moved/b/file"), "new"));
	CHECK_EQ(scratch_entries(in_top(&p, "moved/b")), 1);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "outside")), 1);
	close(p.top);
}

static void a_removed_parent_is_an_error(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	struct dirent *entry;
	DIR *dir;
	int fds;

	CHECK(place_make(&p));
	fds = scratch_open_fds();
	lp = params(&p, "a/file");
	lp.parents = true;
	CHECK_EQ(land(&lp, "new", &landing), 0);
	dir = opendir(in_top(&p, "a"));
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	CHECK_EQ(rmdir(in_top(&p, "a")), 0);
	CHECK_EQ(landing_commit(landing, note), -ENOENT);
	CHECK_EQ(scratch_open_fds(), fds);
	close(p.top);
}

static void a_directory_that_came_meanwhile_is_kept(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;

	CHECK(place_make(&p));
	lp = params(&p, "file");
	CHECK_EQ(land(&lp, "new", &landing), 0);
	CHECK_EQ(mkdir(in_top(&p, "file"), 0755), 0);
	CHECK_EQ(landing_commit(landing, note), -EISDIR);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), 1);
	close(p.top);
}

static void names_of_any_bytes_land(void)
{
	struct landing_params lp;
	struct landing *landing;
	char longest[300];
	struct place p;
	const char *names[] = {"a\nb", "\"quoted\" 'name' \\", "\xff\xfe not UTF-8", " ", "-rf",
		longest, "x/\n/\xff/y"};

	CHECK(place_make(&p));
	memset(longest, 0xc3, 255);
	longest[255] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		lp = params(&p, names[i]);
		lp.parents = true;
		CHECK_EQ(land(&lp, names[i], &landing), 0);
		CHECK_EQ(landing_commit(landing, note), 0);
		CHECK(scratch_is(in_top(&p, names[i]), names[i]));
	}
	memset(longest, 'x', 256);
	longest[256] = '\0';
	lp = params(&p, longest);
	CHECK_EQ(landing_open(&lp, &landing), -ENAMETOOLONG);
	close(p.top);
}

static void many_at_once_in_one_directory(void)
{
	enum { MANY = 100 };
	struct landing *landings[MANY];
	struct landing_params lp;
	char name[16];
	struct place p;

	CHECK(place_make(&p));
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "f%d",
			i / 2); /* two for each name: the last one wins */
		lp = params(&p, name);
		CHECK_EQ(land(&lp, i % 2 ? "second" : "first", &landings[i]), 0);
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(landing_commit(landings[i], note), 0);
	CHECK(scratch_is(in_top(&p, "f0"), "second"));
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "top")), MANY / 2);
	close(p.top);
}

static void a_full_disk_leaves_the_old_file(void)
{
	const char *dir = scratch_small(1u << 16);
	struct landing_params lp;
	struct landing *landing;
	char block[4096];
	int top, fd;

	if (!dir)
		SKIP("may not mount a small file system");
	CHECK(scratch_write(scratch_path(dir, "file"), "old"));
	top = open(dir, O_PATH | O_DIRECTORY);
	lp = (struct landing_params){
		.top = top, .path = "file", .metadata.mode = 0644, .replace = true};
	CHECK_EQ(landing_open(&lp, &landing), 0);
	fd = landing_fd(landing);
	memset(block, 'x', sizeof(block));
	while (write(fd, block, sizeof(block)) > 0)
		;
	CHECK_EQ(errno, ENOSPC);
	close(fd);
	landing_discard(landing);
	CHECK(scratch_is(scratch_path(dir, "file"), "old"));
	CHECK_EQ(scratch_entries(dir), 1);
	close(top);
}

/* As a user who may not write to the directory. */
static void no_permission_is_said(void)
{
	struct landing_params lp;
	struct landing *landing;
	struct place p;
	pid_t child;
	int status;

	CHECK(place_make(&p));
	CHECK_EQ(chmod(scratch_path(p.dir, "top"), 0555), 0);
	lp = params(&p, "file");
	fflush(stdout);
	child = fork();
	if (!child) {
		if (!geteuid() && setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(landing_open(&lp, &landing) == -EACCES ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(chmod(scratch_path(p.dir, "top"), 0755), 0);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		SKIP("may not become another user");
	CHECK_EQ(WEXITSTATUS(status), 0);
	close(p.top);
}

/* Another name is made of the file that it was to be, and of nothing else. */
static void a_hard_link_is_to_that_file(void)
{
	struct place p;
	struct landing_params lp;
	struct landing_file file = {.path = "first"};
	struct stat st, other;

	CHECK(place_make(&p));
	CHECK(scratch_write(in_top(&p, "first"), "one"));
	CHECK(scratch_write(in_top(&p, "there"), "old"));
	CHECK_EQ(stat(in_top(&p, "first"), &st), 0);
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	lp = params(&p, "a/second");
	CHECK_EQ(landing_hard_link(&lp, &file, note), -ENOENT);
	lp.parents = true;
	CHECK_EQ(landing_hard_link(&lp, &file, note), 0);
	CHECK_EQ(landing_hard_link(&lp, &file, note), 0); /* it is there */
	CHECK_EQ(stat(in_top(&p, "a/second"), &other), 0);
	CHECK(other.st_ino == st.st_ino && other.st_nlink == 2);
	lp = params(&p, "there");
	lp.replace = false;
	CHECK_EQ(landing_hard_link(&lp, &file, note), -EEXIST);
	lp.replace = true;
	CHECK_EQ(landing_hard_link(&lp, &file, note), 0);
	CHECK_EQ(stat(in_top(&p, "there"), &other), 0);
	CHECK(other.st_ino == st.st_ino && other.st_nlink == 3);
	lp = params(&p, "a");
	CHECK_EQ(landing_hard_link(&lp, &file, note), -EISDIR);
	lp = params(&p, "../outside/x");
	CHECK_EQ(landing_hard_link(&lp, &file, note), -EXDEV);
	/* another file, or a link to it, has the name now */
	lp = params(&p, "third");
	CHECK_EQ(unlink(in_top(&p, "first")), 0);
	CHECK_EQ(landing_hard_link(&lp, &file, note), -ESTALE);
	CHECK_EQ(symlink("there", in_top(&p, "first")), 0);
	CHECK_EQ(landing_hard_link(&lp, &file, note), -ESTALE);
	CHECK(access(in_top(&p, "third"), F_OK) && scratch_entries(in_top(&p, ".")) == 3);
	close(p.top);
}

HARNESS_MAIN({"a_hard_link_is_to_that_file", a_hard_link_is_to_that_file},
	{"new_file_appears_at_commit", new_file_appears_at_commit},
	{"the_directorys_fsync_fails", the_directorys_fsync_fails},
	{"what_is_not_kept_is_noted", what_is_not_kept_is_noted},
	{"old_file_stays_until_commit", old_file_stays_until_commit},
	{"the_temporary_file_is_private_and_known_by_name",
		the_temporary_file_is_private_and_known_by_name},
	{"without_replace_an_existing_file_is_kept", without_replace_an_existing_file_is_kept},
	{"what_can_not_be_a_file", what_can_not_be_a_file},
	{"links_are_replaced_not_written_through", links_are_replaced_not_written_through},
	{"a_moved_parent_redirects_nothing", a_moved_parent_redirects_nothing},
	{"a_removed_parent_is_an_error", a_removed_parent_is_an_error},
	{"a_directory_that_came_meanwhile_is_kept", a_directory_that_came_meanwhile_is_kept},
	{"names_of_any_bytes_land", names_of_any_bytes_land},
	{"many_at_once_in_one_directory", many_at_once_in_one_directory},
	{"a_full_disk_leaves_the_old_file", a_full_disk_leaves_the_old_file},
	{"no_permission_is_said", no_permission_is_said})
