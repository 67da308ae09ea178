/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/lookup_process: see lookup_process.h.
 */
#include "rftpd/confine/lookup_process.h"

#include "base/log.h"
#include "base/lookup.h"
#include "base/opener_wire.h"
#include "rftpd/children.h"
#include "rftpd/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FD 3
#define NOBODY 65534
/* Those that have ended and are not reaped yet are among them. */
#define PROCESSES_MAX (4 * LOOKUP_LINES)

/* ---- the other process ---- */

/* Also of one that is not root, and has some from who started it.  0 or -errno. */
static int give_up_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

static void warn(const char *what, int error)
{
	log_warning("what looks up users and groups keeps %s: %s%s", what, strerror(error),
		error == EPERM || error == EINVAL
			? " (in a user namespace, which must map 65534 and allow setgroups?)"
			: "");
}

/* It goes on with what it cannot give up: names are looked up all the same. */
static void give_up_user(void)
{
	bool is_root = !geteuid();
	int err;

	if (is_root && setgroups(0, NULL))
		warn("the daemon's groups", errno);
	if (is_root && setresgid(NOBODY, NOBODY, NOBODY))
		warn("the daemon's group", errno);
	if (is_root && setresuid(NOBODY, NOBODY, NOBODY))
		warn("the daemon's user", errno);
	err = give_up_capabilities();
	if (err)
		warn("its capabilities", -err);
}

static void give_up_rights(void)
{
	struct landlock l;

	if (!landlock_open(&l, false, true) &&
		!landlock_allow(&l, "/", LANDLOCK_READ_FILE | LANDLOCK_READ_DIR))
		landlock_enter(&l);
	landlock_close(&l);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/* Nothing stays open but `fd`, as FIRST_FD.  Who reads what the daemon wrote to standard output has
 * read all when the daemon has ended. */
static int close_others(int fd)
{
	int null = open("/dev/null", O_RDWR), above = fcntl(fd, F_DUPFD, FIRST_FD + 1);

	if (null < 0 || above < 0)
		return -errno;
	for (int i = 0; i < FIRST_FD; i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (dup2(above, FIRST_FD) < 0)
		return -errno;
	return close_range(FIRST_FD + 1, ~0u, 0) ? -errno : 0;
}

static void serve(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	lookup_serve(fd);
	_exit(0);
}

/* Bytes come, and nothing else: each is answered with a line that another process serves. */
static void keep(int fd)
{
	char byte;

	children_watch();
	while (recv(fd, &byte, sizeof byte, 0) == sizeof byte) {
		int ends[2];
		pid_t pid = -1;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
			ends[0] = ends[1] = -1;
		else
			pid = children_fork(PROCESSES_MAX);
		if (!pid) {
			close(fd);
			close(ends[0]);
			serve(ends[1]);
		}
		opener_send(fd, &byte, sizeof byte, &ends[0], pid > 0);
		close(ends[0]);
		close(ends[1]);
	}
	_exit(0); /* the daemon has gone */
}

static void begin(int fd)
{
	sigset_t none;

	prctl(PR_SET_NAME, "rftpd-lookup", 0, 0, 0);
	signal(SIGHUP, SIG_IGN); /* the daemon's; it ends when that has gone */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	give_up_user(); /* while there is standard error to say so */
	if (chdir("/") || close_others(fd))
		_exit(1);
	give_up_rights();
	keep(FIRST_FD);
}

/* ---- the daemon ---- */

int lookup_process_start(void)
{
	int ends[2], err = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		err = -errno;
	} else {
		pid = fork();
		if (!pid)
			begin(ends[1]);
		err = pid < 0 ? -errno : 0;
		close(ends[1]);
		if (err)
			close(ends[0]);
	}
	if (err)
		log_error("cannot start what looks up users and groups: %s", strerror(-err));
	else
		lookup_elsewhere(ends[0]);
	return err;
}
