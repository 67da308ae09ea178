/* SPDX-License-Identifier: Apache-2.0 */
/* base/opener: each call does in the other process what it does here, and fails as it does here. */
#include "base/opener.h"
#include "base/opener_wire.h"
#include "base/worker.h"
#include "tests/harness.h"
#include "tests/scratch.h"

#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* With a mask of its own, so that it shows who made a file. */
static pid_t start(int *fd)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		abort();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		umask(077);
		opener_serve(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

static mode_t mode_of(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_mode & 07777;
}

static void calls(int dir)
{
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};
	struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
	struct stat st;
	char text[64] = "";
	int fd, other, path;

	/* a file is made there, by the other's mask, and is open here */
	fd = opener_openat(dir, "f", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	CHECK(fd >= 0);
	CHECK_EQ(mode_of(dir, "f"), opener_mine() ? 0600 : 0644);
	CHECK(write(fd, "text", 4) == 4 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK_EQ(opener_openat(dir, "f", O_RDWR | O_CREAT | O_EXCL, 0666), -1);
	CHECK_EQ(errno, EEXIST);
	other = opener_openat2(dir, "f", &how);
	CHECK(other >= 0 && read(other, text, sizeof text) == 4);
	close(other);
	CHECK_EQ(opener_openat2(dir, "../x", &how), -1);
	CHECK_EQ(errno, EXDEV);
	CHECK(!opener_fstatat(dir, "f", &st, 0) && st.st_size == 4);
	CHECK_EQ(opener_fstatat(dir, "none", &st, 0), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK(!opener_faccessat(dir, "f", R_OK, AT_EACCESS));

	CHECK(!opener_mkdirat(dir, "d", 0777));
	CHECK_EQ(mode_of(dir, "d"), opener_mine() ? 0700 : 0755);
	CHECK_EQ(opener_mkdirat(dir, "d", 0777), -1);
	CHECK_EQ(errno, EEXIST);
	CHECK(!opener_symlinkat("the target", dir, "l"));
	CHECK_EQ(opener_readlinkat(dir, "l", text, sizeof text), 10);
	CHECK(!strncmp(text, "the target", 10));
	CHECK_EQ(opener_readlinkat(dir, "l", text, 3), 3);
	CHECK_EQ(opener_readlinkat(dir, "f", text, sizeof text), -1);
	CHECK_EQ(errno, EINVAL);

	CHECK(!opener_fchmod(fd, 0640) && mode_of(dir, "f") == 0640);

	path = openat(dir, "f", O_PATH | O_CLOEXEC);
	CHECK((!opener_chmod(path, 0) && mode_of(dir, "f") == 0) || errno == ENOSYS);
	close(path);
	CHECK(!opener_fchmod(fd, 0640));
	CHECK(!opener_futimens(fd, times) && !fstat(fd, &st) && st.st_mtim.tv_sec == 2000);
	CHECK(!opener_utimensat(dir, "l", times, AT_SYMLINK_NOFOLLOW) &&
		!fstatat(dir, "l", &st, AT_SYMLINK_NOFOLLOW) && st.st_mtim.tv_nsec == 5);
	CHECK(!opener_fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH));
	if (!fsetxattr(fd, "user.try", "x", 1, 0)) { /* the file system has them */
		CHECK(!opener_fsetxattr(fd, "user.name", "value", 5, 0));
		CHECK_EQ(opener_fgetxattr(fd, "user.name", text, sizeof text), 5);
		CHECK(!strncmp(text, "value", 5));
		CHECK_EQ(opener_fgetxattr(fd, "user.name", NULL, 0), 5);
		CHECK_EQ(opener_fgetxattr(fd, "user.name", text, 2), -1);
		CHECK_EQ(errno, ERANGE);
		CHECK(!opener_fremovexattr(fd, "user.name"));
		CHECK_EQ(opener_fgetxattr(fd, "user.name", text, sizeof text), -1);
		CHECK_EQ(errno, ENODATA);
	}
	CHECK(!opener_linkat(dir, "f", dir, "hard", 0));
	CHECK(!opener_renameat2(dir, "f", dir, "g", RENAME_NOREPLACE));
	CHECK_EQ(opener_renameat2(dir, "g", dir, "hard", RENAME_NOREPLACE), -1);
	CHECK_EQ(errno, EEXIST);
	CHECK(!opener_unlinkat(dir, "g", 0) && !opener_unlinkat(dir, "hard", 0) &&
		!opener_unlinkat(dir, "l", 0) && !opener_unlinkat(dir, "d", AT_REMOVEDIR));
	CHECK_EQ(opener_unlinkat(dir, "d", 0), -1);
	CHECK_EQ(errno, ENOENT);
	close(fd);
}

static char long_path[PATH_MAX + 1];

static void as_here(void)
{
	int dir = open(scratch_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, fds, status;
	struct opener *o;
	pid_t pid;

	umask(022);
	CHECK(!opener_mine() && opener_uid() == geteuid());
	calls(dir);
	pid = start(&fd);
	CHECK(!opener_new(fd, 77, &o));
	CHECK(!opener_use(o) && opener_mine() == o && opener_uid() == 77);
	fds = scratch_open_fds();
	calls(dir);
	CHECK_EQ(scratch_open_fds(), fds);
	memset(long_path, 'x', sizeof long_path - 1);
	CHECK_EQ(opener_mkdirat(dir, long_path, 0777), -1);
	CHECK_EQ(errno, ENAMETOOLONG);
	CHECK(opener_use(NULL) == o);
	opener_free(o);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	close(dir);
}

static struct opener *in_thread;

static void look(void *arg)
{
	(void)arg;
	in_thread = opener_mine();
}

static void threads_inherit_it(void)
{
	struct worker worker;
	struct opener *o;
	int fd;
	pid_t pid = start(&fd);

	CHECK(!opener_new(fd, 0, &o));
	opener_use(o);
	CHECK(!worker_start(&worker, "test", look, NULL));
	worker_stop(&worker);
	CHECK(in_thread == o);
	opener_use(NULL);
	CHECK(!worker_start(&worker, "test", look, NULL));
	worker_stop(&worker);
	CHECK(!in_thread);
	opener_free(o);
	waitpid(pid, NULL, 0);
}

static void one_that_is_gone(void)
{
	struct opener *o;
	struct stat st;
	int fd, dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = start(&fd);

	CHECK(!opener_new(fd, 0, &o));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	opener_use(o);
	CHECK_EQ(opener_fstatat(dir, "etc", &st, 0), -1);
	CHECK_EQ(errno, EIO);
	CHECK_EQ(opener_openat(dir, "etc", O_RDONLY, 0), -1);
	opener_use(NULL);
	opener_free(o);
	close(dir);
}

/* What no opener sends ends the other process, and does nothing. */
static void requests_that_are_wrong(void)
{
	static struct opener_request right, r;
	static struct opener_reply reply;
	const size_t size = offsetof(struct opener_request, value);
	int dir = open(scratch_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	right.call = OPENER_MKDIRAT;
	right.mode = 0755;
	strcpy(right.path, "made");
	for (int i = 0; i < 10; i++) {
		int two[2] = {dir, dir}, got[2], fd, count = 1;
		size_t bytes = size;
		pid_t pid = start(&fd);

		r = right;
		switch (i) {
		case 0:
			r.call = 0;
			break;
		case 1:
			r.call = OPENER_CALLS;
			break;
		case 2:
			memset(r.path, 'x', sizeof r.path);
			break;
		case 3:
			memset(r.to, 'x', sizeof r.to);
			break;
		case 4:
			count = 0;
			break;
		case 5:
			count = 2;
			break;
		case 6:
			r.call = OPENER_RENAMEAT2; /* needs two */
			break;
		case 7:
			bytes = 10;
			break;
		case 8:
			r.value_bytes = 5; /* that do not come */
			break;
		default:
			r.value_bytes = UINT32_MAX;
			break;
		}
		CHECK(!opener_send(fd, &r, bytes, two, (unsigned)count));
		CHECK_EQ(opener_recv(fd, &reply, sizeof reply, got), 0);
		close(fd);
		CHECK(waitpid(pid, NULL, 0) == pid);
		CHECK_EQ(mode_of(dir, "made"), 0);
	}
	close(dir);
}

HARNESS_MAIN({"as here", as_here}, {"threads inherit it", threads_inherit_it},
	{"one that is gone", one_that_is_gone},
	{"requests that are wrong", requests_that_are_wrong})
