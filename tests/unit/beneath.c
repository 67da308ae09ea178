/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/beneath.c: nothing outside a directory can be reached through names beneath it.
 *
 * Each case has "top" and beside it "outside", with a secret; links of all kinds lead there.
 */
#include "tests/harness.h"

#include "tests/scratch.h"
#include "tree/beneath.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

struct place {
	const char *dir;
	int top;
};

static bool place_make(struct place *p)
{
	p->dir = scratch_dir();
	if (mkdir(scratch_path(p->dir, "top"), 0755) ||
		mkdir(scratch_path(p->dir, "outside"), 0755) ||
		mkdir(scratch_path(p->dir, "top/sub"), 0755))
		return false;
	p->top = open(scratch_path(p->dir, "top"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->top >= 0 && scratch_write(scratch_path(p->dir, "outside/secret"), "secret") &&
	       scratch_write(scratch_path(p->dir, "top/file"), "file") &&
	       scratch_write(scratch_path(p->dir, "top/sub/file"), "sub");
}

/* Opens and closes: 0 or -errno. */
static int try_open(int top, const char *path, int flags)
{
	int fd = beneath_open(top, path, flags, 0600);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void escapes_are_refused(void)
{
	static const char *const out[] = {"..", "../outside", "../outside/secret", "sub/../..",
		"sub/../../outside/secret", "/../outside/secret", "dots/secret", "absolute/secret",
		"chain/secret", "dots", "absolute", "sub/up/outside", "root/etc"};
	struct place p;
	struct stat st;
	char last[256];

	CHECK(place_make(&p));
	CHECK_EQ(symlinkat("../outside", p.top, "dots"), 0);
	CHECK_EQ(symlinkat(scratch_path(p.dir, "outside"), p.top, "absolute"), 0);
	CHECK_EQ(symlinkat("sub/../dots", p.top, "chain"), 0);
	CHECK_EQ(symlinkat("../..", p.top, "sub/up"), 0);
	CHECK_EQ(symlinkat("/", p.top, "root"), 0);
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		char path[300];

		CHECK_EQ(try_open(p.top, out[i], O_RDONLY), -EXDEV);
		CHECK_EQ(beneath_stat(p.top, out[i], true, &st), -EXDEV);
		snprintf(path, sizeof(path), "%s/new", out[i]);
		if (strstr(path, "secret"))
			continue;
		CHECK_EQ(try_open(p.top, path, O_WRONLY | O_CREAT), -EXDEV);
		CHECK_EQ(beneath_mkdir(p.top, path, 0755, false), -EXDEV);
		CHECK_EQ(beneath_mkdir(p.top, path, 0755, true), -EXDEV);
		CHECK_EQ(beneath_open_parent(p.top, path, last), -EXDEV);
		CHECK_EQ(beneath_unlink(p.top, path), -EXDEV);
		CHECK_EQ(beneath_rmdir(p.top, path), -EXDEV);
		CHECK_EQ(beneath_rename(p.top, "file", path, true), -EXDEV);
		CHECK_EQ(beneath_rename(p.top, path, "file", true), -EXDEV);
	}
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "outside")), 1);
	CHECK(scratch_is(scratch_path(p.dir, "top/file"), "file"));
	close(p.top);
}

static void magic_links_are_refused(void)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY);

	CHECK(proc >= 0);
	CHECK(try_open(proc, "self/root/etc", O_RDONLY) < 0);
	CHECK(try_open(proc, "self/cwd", O_RDONLY) < 0);
	CHECK(try_open(proc, "self/fd/0", O_RDONLY) < 0);
	close(proc);
}

static void links_that_stay_are_followed(void)
{
	struct place p;
	struct stat st;

	CHECK(beneath_supported());
	CHECK(place_make(&p));
	CHECK_EQ(symlinkat("sub", p.top, "link"), 0);
	CHECK_EQ(symlinkat("../file", p.top, "sub/back"), 0);
	CHECK_EQ(symlinkat("loop", p.top, "loop"), 0);
	CHECK_EQ(try_open(p.top, "link/file", O_RDONLY), 0);
	CHECK_EQ(try_open(p.top, "sub/back", O_RDONLY), 0);
	CHECK_EQ(try_open(p.top, "link/../file", O_RDONLY), 0);
	CHECK_EQ(try_open(p.top, "loop", O_RDONLY), -ELOOP);
	CHECK_EQ(beneath_stat(p.top, "link", false, &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(beneath_stat(p.top, "link", true, &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	close(p.top);
}

static void slashes_and_the_top_itself(void)
{
	static const char *const tops[] = {"", "/", "//", ".", "sub/.."};
	static const char *const files[] = {
		"file", "/file", "///file", "./file", "sub//file", "/sub/./file"};
	struct place p;
	struct stat top, st;
	char last[256];
	int dir;

	CHECK(place_make(&p));
	CHECK_EQ(fstat(p.top, &top), 0);
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		CHECK_EQ(beneath_stat(p.top, tops[i], true, &st), 0);
		CHECK_EQ(st.st_ino, top.st_ino);
		CHECK_EQ(beneath_open_parent(p.top, tops[i], last), -EINVAL);
		CHECK_EQ(beneath_rmdir(p.top, tops[i]), -EINVAL);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		CHECK_EQ(try_open(p.top, files[i], O_RDONLY), 0);
	dir = beneath_open_parent(p.top, "/sub/file///", last);
	CHECK(dir >= 0);
	CHECK(!strcmp(last, "file"));
	close(dir);
	dir = beneath_open_parent(p.top, "file", last);
	CHECK(dir >= 0);
	CHECK_EQ(fstat(dir, &st), 0);
	CHECK_EQ(st.st_ino, top.st_ino);
	close(dir);
	close(p.top);
}

static void the_users_own_names_are_free(void)
{
	struct place p;
	struct stat st;
	char last[256];
	int dir;

	CHECK(place_make(&p));
	CHECK_EQ(symlinkat("../outside", p.top, "dots"), 0);
	CHECK_EQ(try_open(AT_FDCWD, scratch_path(p.dir, "top/dots/secret"), O_RDONLY), 0);
	CHECK_EQ(try_open(AT_FDCWD, scratch_path(p.dir, "top/../outside/secret"), O_RDONLY), 0);
	CHECK_EQ(beneath_stat(AT_FDCWD, "/", true, &st), 0);
	CHECK_EQ(beneath_stat(AT_FDCWD, "", true, &st), -ENOENT);
	dir = beneath_open_parent(AT_FDCWD, "/etc", last);
	CHECK(dir >= 0);
	CHECK(!strcmp(last, "etc"));
	CHECK_EQ(fstatat(dir, "etc", &st, 0), 0);
	close(dir);
	close(p.top);
}

static void directories_are_made_and_removed(void)
{
	struct place p;
	struct stat st;

	CHECK(place_make(&p));
	umask(022);
	CHECK_EQ(beneath_mkdir(p.top, "a", 0777, false), 0);
	CHECK_EQ(beneath_stat(p.top, "a", false, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0755);
	CHECK_EQ(beneath_mkdir(p.top, "a", 0777, false), -EEXIST);
	CHECK_EQ(beneath_mkdir(p.top, "a", 0777, true), 0);
	CHECK_EQ(beneath_mkdir(p.top, "file", 0777, true), -ENOTDIR);
	CHECK_EQ(beneath_mkdir(p.top, "file/x", 0777, true), -ENOTDIR);
	CHECK_EQ(beneath_mkdir(p.top, "b/c/d", 0700, false), -ENOENT);
	CHECK_EQ(beneath_mkdir(p.top, "//b//c/./d//", 0700, true), 0);
	CHECK_EQ(beneath_stat(p.top, "b/c", false, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0755);
	CHECK_EQ(beneath_stat(p.top, "b/c/d", false, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0700);
	CHECK_EQ(beneath_rmdir(p.top, "b"), -ENOTEMPTY);
	CHECK_EQ(beneath_rmdir(p.top, "b/c/d/"), 0);
	CHECK_EQ(beneath_rmdir(p.top, "file"), -ENOTDIR);
	CHECK_EQ(beneath_unlink(p.top, "a"), -EISDIR);
	CHECK_EQ(beneath_unlink(p.top, "nothing"), -ENOENT);
	CHECK_EQ(beneath_unlink(p.top, "file"), 0);
	CHECK_EQ(beneath_unlink(p.top, "file"), -ENOENT);
	/* a link is removed, not what it names */
	CHECK_EQ(symlinkat("../outside/secret", p.top, "link"), 0);
	CHECK_EQ(beneath_unlink(p.top, "link"), 0);
	CHECK(scratch_is(scratch_path(p.dir, "outside/secret"), "secret"));
	CHECK_EQ(symlinkat("nowhere", p.top, "dangling"), 0);
	CHECK_EQ(beneath_mkdir(p.top, "dangling/x", 0777, true), -ENOENT);
	close(p.top);
}

static void renames(void)
{
	struct place p;

	CHECK(place_make(&p));
	CHECK_EQ(beneath_rename(p.top, "file", "sub/file", false), -EEXIST);
	CHECK(scratch_is(scratch_path(p.dir, "top/sub/file"), "sub"));
	CHECK_EQ(beneath_rename(p.top, "file", "sub/file", true), 0);
	CHECK(scratch_is(scratch_path(p.dir, "top/sub/file"), "file"));
	CHECK_EQ(beneath_rename(p.top, "/sub/file", "/other", false), 0);
	CHECK_EQ(beneath_rename(p.top, "nothing", "x", true), -ENOENT);
	CHECK_EQ(beneath_rename(p.top, "other", "sub", true), -EISDIR);
	CHECK_EQ(beneath_rename(p.top, "sub", "sub/under", true), -EINVAL);
	CHECK_EQ(beneath_rename(p.top, "sub", "sub/under", false), -EINVAL);
	CHECK_EQ(beneath_rename(p.top, "other", "", true), -EINVAL);
	CHECK_EQ(beneath_rename(p.top, "other", "no/where", true), -ENOENT);
	/* a link as target is replaced, not followed */
	CHECK_EQ(symlinkat("../outside/secret", p.top, "link"), 0);
	CHECK_EQ(beneath_rename(p.top, "other", "link", false), -EEXIST);
	CHECK_EQ(beneath_rename(p.top, "other", "link", true), 0);
	CHECK(scratch_is(scratch_path(p.dir, "outside/secret"), "secret"));
	CHECK(scratch_is(scratch_path(p.dir, "top/link"), "file"));
	close(p.top);
}

static void another_file_system_is_told_apart(void)
{
	const char *dir = scratch_small(1u << 20);
	int top;

	if (!dir)
		SKIP("may not mount a small file system");
	CHECK_EQ(mkdir(scratch_path(dir, "inner"), 0755), 0);
	CHECK(scratch_write(scratch_path(dir, "file"), "x"));
	if (mount("tmpfs", scratch_path(dir, "inner"), "tmpfs", 0, "size=65536"))
		SKIP("may not mount a small file system");
	top = open(dir, O_PATH | O_DIRECTORY);
	CHECK_EQ(beneath_rename(top, "file", "inner/file", true), -EREMOTE);
	CHECK_EQ(beneath_rename(top, "file", "inner/file", false), -EREMOTE);
	close(top);
	umount2(scratch_path(dir, "inner"), MNT_DETACH);
}

static void names_are_any_bytes(void)
{
	char longest[256], too_long[257], deep[5000] = "", last[256], name[8];
	struct place p;
	struct stat st;
	int dir;

	CHECK(place_make(&p));
	memset(longest, 'n', 255);
	longest[255] = '\0';
	memset(too_long, 'n', 256);
	too_long[256] = '\0';
	for (int c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		snprintf(name, sizeof(name), "x%c", c);
		CHECK_EQ(beneath_mkdir(p.top, name, 0755, true), 0);
		CHECK_EQ(beneath_stat(p.top, name, false, &st), 0);
	}
	CHECK_EQ(try_open(p.top, "a\nb \"c\" 'd' \\ \xff\xfe", O_WRONLY | O_CREAT), 0);
	CHECK_EQ(try_open(p.top, longest, O_WRONLY | O_CREAT), 0);
	CHECK_EQ(beneath_rename(p.top, longest, "sub/renamed", false), 0);
	CHECK_EQ(try_open(p.top, too_long, O_WRONLY | O_CREAT), -ENAMETOOLONG);
	CHECK_EQ(beneath_open_parent(p.top, too_long, last), -ENAMETOOLONG);
	CHECK_EQ(beneath_mkdir(p.top, too_long, 0755, true), -ENAMETOOLONG);

	memset(deep, 'd', 4000);
	for (int i = 9; i < 4000; i += 10)
		deep[i] = '/';
	strcpy(deep + 4000, "e");
	CHECK_EQ(beneath_mkdir(p.top, deep, 0755, true), 0);
	dir = beneath_open_parent(p.top, deep, last);
	CHECK(dir >= 0);
	CHECK(!strcmp(last, "e"));
	close(dir);
	memset(deep, 'd', 4999);
	for (int i = 100; i < 4999; i += 100)
		deep[i] = '/';
	CHECK_EQ(try_open(p.top, deep, O_RDONLY), -ENOENT);
	CHECK_EQ(beneath_open_parent(p.top, deep, last), -ENOENT);
	close(p.top);
}

struct swapper {
	int top;
	atomic_bool stop;
};

/* Swaps the directory "sub" with the link "trap" to the outside, over and over. */
static void *swapper_run(void *arg)
{
	struct swapper *s = arg;

	while (!atomic_load(&s->stop))
		if (renameat2(s->top, "sub", s->top, "trap", RENAME_EXCHANGE))
			break;
	return NULL;
}

static void parents_that_become_links_lead_nowhere(void)
{
	struct swapper swapper;
	pthread_t thread;
	struct place p;
	int good = 0;

	CHECK(place_make(&p));
	CHECK_EQ(symlinkat("../outside", p.top, "trap"), 0);
	if (renameat2(p.top, "sub", p.top, "trap", RENAME_EXCHANGE))
		SKIP("the file system cannot exchange names");
	swapper.top = p.top;
	atomic_init(&swapper.stop, false);
	CHECK_EQ(pthread_create(&thread, NULL, swapper_run, &swapper), 0);
	for (int i = 0; i < 3000; i++) {
		char name[32];
		struct stat st;

		good += !try_open(p.top, "sub/new", O_WRONLY | O_CREAT | O_TRUNC);
		beneath_unlink(p.top, "sub/new");
		snprintf(name, sizeof(name), "sub/dir%d/inner", i % 10);
		beneath_mkdir(p.top, name, 0755, true);
		beneath_rename(p.top, "file", "sub/file", true);
		beneath_rename(p.top, "sub/file", "file", true);
		beneath_unlink(p.top, "sub/secret");
		beneath_stat(p.top, "sub/secret", true, &st);
	}
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	printf("# %d of 3000 were beneath\n", good);
	CHECK_EQ(scratch_entries(scratch_path(p.dir, "outside")), 1);
	CHECK(scratch_is(scratch_path(p.dir, "outside/secret"), "secret"));
	close(p.top);
}

/* Of 20,000 bytes, and a name that is too long itself. */
static void paths_of_any_length(void)
{
	const char *dir = scratch_dir();
	int top = open(dir, O_PATH | O_DIRECTORY), fds = scratch_open_fds(), fd;
	static char path[20200];
	struct stat st;
	size_t at = 0;

	for (int i = 0; i < 100; i++)
		at += (size_t)snprintf(path + at, sizeof(path) - at, "%s%0200d", at ? "/" : "", i);
	CHECK_EQ(beneath_mkdir(top, path, 0755, false), -ENOENT);
	CHECK_EQ(beneath_mkdir(top, path, 0755, true), 0);
	CHECK_EQ(beneath_mkdir(top, path, 0755, true), 0);
	CHECK_EQ(beneath_mkdir(top, path, 0755, false), -EEXIST);
	CHECK_EQ(beneath_stat(top, path, true, &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	snprintf(path + at, sizeof(path) - at, "/f");
	fd = beneath_open(top, path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(beneath_rename(top, path, "/f", false), 0);
	CHECK_EQ(beneath_rename(top, "/f", path, false), 0);
	CHECK_EQ(beneath_unlink(top, path), 0);
	snprintf(path + at, sizeof(path) - at, "///");
	CHECK_EQ(beneath_stat(top, path, true, &st), 0);
	/* a link on the way leads out */
	path[at] = '\0';
	CHECK_EQ(symlink("/", scratch_path(dir, "out")), 0);
	memcpy(path, "out/", 4);
	CHECK_EQ(beneath_stat(top, path, true, &st), -EXDEV);
	memset(path, 'x', at);
	CHECK_EQ(beneath_stat(top, path, true, &st), -ENAMETOOLONG);
	CHECK_EQ(scratch_open_fds(), fds);
	close(top);
}

HARNESS_MAIN({"paths_of_any_length", paths_of_any_length},
	{"escapes_are_refused", escapes_are_refused},
	{"magic_links_are_refused", magic_links_are_refused},
	{"links_that_stay_are_followed", links_that_stay_are_followed},
	{"slashes_and_the_top_itself", slashes_and_the_top_itself},
	{"the_users_own_names_are_free", the_users_own_names_are_free},
	{"directories_are_made_and_removed", directories_are_made_and_removed},
	{"renames", renames},
	{"another_file_system_is_told_apart", another_file_system_is_told_apart},
	{"names_are_any_bytes", names_are_any_bytes},
	{"parents_that_become_links_lead_nowhere", parents_that_become_links_lead_nowhere})
