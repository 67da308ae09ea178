/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/lookup_process: see lookup_process.h.
 */
#include "rftpd/confine/lookup_process.h"

#include "base/log.h"
#include "base/lookup.h"
#include "base/worker.h"
#include "rftpd/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FD 3
#define NOBODY 65534

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

/* It goes on as it is where that cannot be had: names are looked up all the same. */
static void give_up_user(void)
{
	int err;

	if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
				  setresuid(NOBODY, NOBODY, NOBODY)))
		log_warning("what looks up users and groups stays root's: %s", strerror(errno));
	err = give_up_capabilities();
	if (err)
		log_warning("what looks up users and groups keeps its capabilities: %s",
			strerror(-err));
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

/* Nothing stays open but the connections, from FIRST_FD on.  Who reads what the daemon wrote to
 * standard output has read all when the daemon has ended. */
static int close_others(const int fds[LOOKUP_LINES])
{
	int null = open("/dev/null", O_RDWR), above[LOOKUP_LINES];

	for (int i = 0; i < (int)LOOKUP_LINES; i++) {
		above[i] = fcntl(fds[i], F_DUPFD, FIRST_FD + LOOKUP_LINES);
		if (above[i] < 0)
			return -errno;
	}
	for (int i = 0; i < FIRST_FD; i++)
		if (dup2(null, i) < 0)
			return -errno;
	for (int i = 0; i < (int)LOOKUP_LINES; i++)
		if (dup2(above[i], FIRST_FD + i) < 0)
			return -errno;
	return close_range(FIRST_FD + LOOKUP_LINES, ~0u, 0) ? -errno : 0;
}

static void serve(void *fd)
{
	lookup_serve(*(int *)fd);
	_exit(0); /* the daemon has gone */
}

static void begin(const int fds[LOOKUP_LINES])
{
	static struct worker workers[LOOKUP_LINES];
	static int lines[LOOKUP_LINES];
	sigset_t none;

	prctl(PR_SET_NAME, "rftpd-lookup", 0, 0, 0);
	signal(SIGHUP, SIG_IGN); /* the daemon's; it ends when that has gone */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	give_up_user(); /* while there is standard error to say so */
	if (chdir("/") || close_others(fds))
		_exit(1);
	give_up_rights();
	for (int i = 0; i < (int)LOOKUP_LINES; i++) {
		lines[i] = FIRST_FD + i;
		if (i && worker_start(&workers[i], "lookup", serve, &lines[i]))
			_exit(1);
	}
	serve(&lines[0]);
}

/* ---- the daemon ---- */

int lookup_process_start(void)
{
	int ours[LOOKUP_LINES], theirs[LOOKUP_LINES], fds[2], err = 0;
	unsigned count = 0;
	pid_t pid = -1;

	while (count < LOOKUP_LINES &&
		!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		ours[count] = fds[0];
		theirs[count++] = fds[1];
	}
	if (count == LOOKUP_LINES)
		pid = fork();
	if (!pid)
		begin(theirs);
	if (pid < 0)
		err = -errno;
	for (unsigned i = 0; i < count; i++) {
		close(theirs[i]);
		if (err)
			close(ours[i]);
	}
	if (err)
		log_error("cannot start what looks up users and groups: %s", strerror(-err));
	else
		lookup_elsewhere(ours);
	return err;
}
