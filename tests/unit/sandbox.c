/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine: what a process can do once it is in the sandbox, and what it cannot, whoever runs
 * it.
 */
#include "rftpd/confine/landlock.h"
#include "rftpd/confine/sandbox.h"
#include "rftpd/confine/syscall_filter.h"
#include "tests/harness.h"
#include "tests/scratch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static char top[256], other[256]; /* exported for writing; not named */
static char readable[256];        /* exported for reading */
static int listener;              /* of a port on loopback */
static uint16_t listener_port;

static int at(const char *dir, const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int result(long r)
{
	return r < 0 ? errno : 0;
}

/* ---- what it cannot do: errno ---- */

static int read_profile(void)
{
	return at("/etc", "profile", O_RDONLY);
}

static int read_other(void)
{
	return at(other, "file", O_RDONLY);
}

static int read_by_link(void) /* a link in the export to what is outside of it */
{
	return at(top, "link", O_RDONLY);
}

static int write_other(void)
{
	return at(other, "new", O_WRONLY | O_CREAT);
}

static int list_other(void)
{
	return at(other, "", O_RDONLY | O_DIRECTORY);
}

static int write_readable(void)
{
	return at(readable, "new", O_WRONLY | O_CREAT);
}

static int move_out(void)
{
	char from[512], to[512];

	snprintf(from, sizeof from, "%s/file", top);
	snprintf(to, sizeof to, "%s/file2", other);
	return result(rename(from, to));
}

static int execute(void)
{
	char *const argv[] = {"true", NULL}, *const env[] = {NULL};

	return result(execve("/bin/true", argv, env));
}

static int execute_exported(void)
{
	char path[512];
	char *const argv[] = {"true", NULL}, *const env[] = {NULL};

	snprintf(path, sizeof path, "%s/true", top);
	return result(execve(path, argv, env));
}

static int make_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return result(pid);
}

static int make_namespace(void)
{
	return result(unshare(CLONE_NEWUSER));
}

static int trace(void)
{
	return result(ptrace(PTRACE_ATTACH, getppid(), 0, 0));
}

static int signal_parent(void)
{
	return result(kill(getppid(), 0));
}

static int change_user(void)
{
	return result(syscall(SYS_setresuid, 65534, 65534, 65534));
}

static int mount_something(void)
{
	return result(syscall(SYS_mount, "none", top, "tmpfs", 0, NULL));
}

static int packet_socket(void)
{
	return result(socket(AF_PACKET, SOCK_RAW, 0));
}

static int connect_out(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(listener_port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return result(connect(fd, (struct sockaddr *)&to, sizeof to));
}

static int bind_other_port(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return result(bind(fd, (struct sockaddr *)&to, sizeof to));
}

static int write_and_execute(void)
{
	void *p = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int make_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int type_into_terminal(void)
{
	return result(syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */, "x"));
}

static int type_with_high_bits(void)
{
	return result(syscall(SYS_ioctl, 0, 0x100005412, "x"));
}

static int ring(void)
{
	return result(syscall(SYS_io_uring_setup, 1, NULL));
}

/* ---- what it can ---- */

static int read_file(void)
{
	return at(top, "file", O_RDWR);
}

static int create(void)
{
	return at(top, "made", O_WRONLY | O_CREAT | O_EXCL);
}

static int read_readable(void)
{
	return at(readable, "file", O_RDONLY);
}

static int move_between(void)
{
	char from[512], to[512];

	snprintf(from, sizeof from, "%s/one/file", top);
	snprintf(to, sizeof to, "%s/two/moved", top);
	return result(rename(from, to));
}

static int remove_tree(void)
{
	char path[512];

	snprintf(path, sizeof path, "%s/three", top);
	return result(rmdir(path));
}

static void *nothing(void *arg)
{
	return arg;
}

static int start_thread(void)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, nothing, NULL);

	return r ? r : pthread_join(thread, NULL);
}

static int in_thread_error;

static void *in_thread(void *arg)
{
	in_thread_error = read_profile();
	return arg;
}

static int thread_is_inside(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL))
		return EIO;
	return in_thread_error;
}

static int listen_on_loopback(void)
{
	return result(listen(listener, 8));
}

static int ask_netlink(void)
{
	return result(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int look_at_itself(void)
{
	return at("/proc/self", "status", O_RDONLY);
}

static int read_sysfs(void)
{
	return at("/sys/class", "net", O_RDONLY | O_DIRECTORY);
}

struct attempt {
	const char *what;
	int (*run)(void);
	int errors[2]; /* any of them */
	int version;   /* of Landlock, at least; 0: it is seccomp's */
};

static const struct attempt attempts[] = {
	{"read /etc/profile", read_profile, {EACCES}, 2},
	{"read a file that is not served", read_other, {EACCES}, 2},
	{"the same by a link", read_by_link, {EACCES}, 2},
	{"write there", write_other, {EACCES}, 2},
	{"list it", list_other, {EACCES}, 2},
	{"write where it may only read", write_readable, {EACCES}, 2},
	{"move a file out", move_out, {EACCES, EXDEV}, 2},
	{"a thread reads /etc/profile", thread_is_inside, {EACCES}, 2},
	{"connect", connect_out, {EACCES}, 4},
	{"bind another port", bind_other_port, {EACCES}, 4},
	{"start a program", execute, {ENOSYS, EACCES}, 0},
	{"start one from the export", execute_exported, {ENOSYS, EACCES}, 0},
	{"trace its parent", trace, {ENOSYS, EPERM}, 0},
	{"a namespace", make_namespace, {ENOSYS}, 0},
	{"become another user", change_user, {ENOSYS}, 0},
	{"mount", mount_something, {ENOSYS}, 0},
	{"a packet socket", packet_socket, {ENOSYS}, 0},
	{"type into a terminal", type_into_terminal, {ENOSYS}, 0},
	{"and with high bits that the kernel ignores", type_with_high_bits, {ENOSYS}, 0},
	{"io_uring", ring, {ENOSYS}, 0},
	{"read and write a file that is served", read_file, {0}, 0},
	{"make one", create, {0}, 0},
	{"read where it may only read", read_readable, {0}, 0},
	{"move a file between directories", move_between, {0}, 0},
	{"remove a directory", remove_tree, {0}, 0},
	{"start a thread", start_thread, {0}, 0},
	{"listen", listen_on_loopback, {0}, 0},
	{"netlink", ask_netlink, {0}, 0},
	{"/proc/self", look_at_itself, {0}, 0},
	{"/sys", read_sysfs, {0}, 0},
};

/* those that the sanitizers' own code needs */
static const struct attempt strict[] = {
	{"make a process", make_process, {ENOSYS}, 0},
	{"signal its parent", signal_parent, {ENOSYS}, 0},
	{"memory that is written and executed", write_and_execute, {ENOSYS}, 0},
	{"make memory executable", make_executable, {ENOSYS}, 0},
};

static bool try(const struct attempt *a, const struct sandbox *box)
{
	int r;

	if (a->version && (!box->files || a->version > landlock_version()))
		return true;
	r = a->run();
	if (r == a->errors[0] || (a->errors[1] && r == a->errors[1]))
		return true;
	printf("# %s: %s\n", a->what, strerror(r));
	return false;
}

static void write_file(const char *dir, const char *name)
{
	CHECK_EQ(at(dir, name, O_WRONLY | O_CREAT), 0);
}

static void make_tree(void)
{
	char path[512], target[512];
	struct sockaddr_in on = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof on;

	snprintf(top, sizeof top, "%s", scratch_dir());
	snprintf(other, sizeof other, "%s", scratch_dir());
	snprintf(readable, sizeof readable, "%s", scratch_dir());
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", top,
			(const char *[]){"one", "two", "three"}[i]);
		CHECK(!mkdir(path, 0700));
	}
	write_file(top, "file");
	write_file(top, "one/file");
	write_file(other, "file");
	write_file(readable, "file");
	snprintf(path, sizeof path, "%s/link", top);
	snprintf(target, sizeof target, "%s/file", other);
	CHECK(!symlink(target, path));
	snprintf(path, sizeof path, "%s/true", top);
	CHECK(!symlink("/bin/true", path));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(listener, (struct sockaddr *)&on, sizeof on) && !listen(listener, 8));
	CHECK(!getsockname(listener, (struct sockaddr *)&on, &len));
	listener_port = ntohs(on.sin_port);
}

/* In a process of its own, which does not come out again: whether all was as expected. */
static bool inside(void)
{
	struct daemon_settings s;
	struct sandbox box = {0};
	char port[32], why[DAEMON_WHY_MAX];
	bool good = true;
	int rw = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ro = open(readable, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	daemon_settings_init(&s);
	snprintf(port, sizeof port, "127.0.0.1:%u", listener_port);
	if (daemon_settings_set(&s, DAEMON_ORIGIN_COMMAND, "listen", port, why) ||
		sandbox_add(&box, rw, true) || sandbox_add(&box, ro, false) ||
		sandbox_enter(&box, &s, NULL))
		return false;
	for (unsigned i = 0; i < sizeof attempts / sizeof *attempts; i++)
		good &= try(&attempts[i], &box);
	for (unsigned i = 0; !SANITIZED && i < sizeof strict / sizeof *strict; i++)
		good &= try(&strict[i], &box);
	/* for a reload */
	if (!sandbox_reaches(&box, rw, true) || !sandbox_reaches(&box, ro, false) ||
		(box.files && sandbox_reaches(&box, ro, true))) {
		puts("# sandbox_reaches");
		good = false;
	}
	return good;
}

static void what_it_may_and_what_not(void)
{
	int status;
	pid_t pid;

	if (!syscall_filter_supported())
		SKIP("this kernel has no seccomp");
	make_tree();
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		bool good = inside();

		fflush(stdout);
		_exit(good ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

static int enter_with(const char *name, const char *value)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct daemon_settings s;
		struct sandbox box = {0};
		char why[DAEMON_WHY_MAX];

		daemon_settings_init(&s);
		daemon_settings_set(&s, DAEMON_ORIGIN_COMMAND, "sandbox", "no", why);
		daemon_settings_set(&s, DAEMON_ORIGIN_COMMAND, name, value, why);
		if (sandbox_check(&s))
			_exit(2);
		if (sandbox_enter(&box, &s, NULL))
			_exit(3);
		_exit(read_profile() ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void without_one(void)
{
	CHECK_EQ(enter_with("sandbox", "no"), 0);
	CHECK_EQ(enter_with("require-sandbox", "yes"), 2);
	if (landlock_version() >= LANDLOCK_LEAST && syscall_filter_supported())
		CHECK_EQ(enter_with("sandbox", "yes"), 1);
}

/* A directory without an end of rights: what is not there may be missing. */
static void rules(void)
{
	struct landlock l;

	if (landlock_version() < LANDLOCK_LEAST) {
		CHECK_EQ(landlock_open(&l, false, false), -EOPNOTSUPP);
		SKIP("this kernel has no Landlock");
	}
	CHECK_EQ(landlock_open(&l, true, false), 0);
	CHECK_EQ(landlock_allow(&l, "/no such directory", LANDLOCK_READ_DIR), -ENOENT);
	CHECK_EQ(landlock_allow(&l, "/etc/profile", LANDLOCK_READ_FILE | LANDLOCK_READ_DIR), 0);
	CHECK_EQ(landlock_allow_port(&l, 7387), 0);
	landlock_close(&l);
	landlock_close(&l);
}

HARNESS_MAIN({"what it may and what not", what_it_may_and_what_not}, {"without one", without_one},
	{"rules", rules})
