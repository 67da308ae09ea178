/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/monitor: see monitor.h.
 */
#include "rftpd/auth/monitor.h"

#include "base/log.h"
#include "base/opener.h"
#include "base/opener_wire.h"
#include "rftpd/auth/monitor_user.h"
#include "rftpd/children.h"
#include "rftpd/export_rule.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FD 3
#define LOGINS_MAX 1024u /* at once: each is a process */
#define SERVICE_DEFAULT "rftpd"
#define USER_DEFAULT "rftpd"
#define STATE_DEFAULT "/var/lib/rftpd"

static int to_monitor = -1;

const char *monitor_user(const struct daemon_settings *s)
{
	return s->user ? s->user : USER_DEFAULT;
}

/* ---- the monitor ---- */

/* Connections come, and nothing else: each is a login's. */
static void run(int fd, const char *service, const struct monitor_export *exports, unsigned count)
{
	children_watch();
	for (;;) {
		char byte;
		int fds[2];
		long n = opener_recv(fd, &byte, sizeof byte, fds);
		pid_t pid = -1;

		if (n <= 0 && n != -EMSGSIZE)
			_exit(0); /* the daemon has gone */
		if (fds[0] >= 0)
			pid = children_fork(LOGINS_MAX);
		if (!pid) {
			close(fd);
			monitor_user_run(fds[0], service, exports, count);
		}
		for (unsigned i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
}

static void begin(int fd, const struct daemon_settings *s)
{
	static struct monitor_export exports[DAEMON_EXPORTS_MAX];
	const char *service = s->pam_service ? s->pam_service : SERVICE_DEFAULT;
	unsigned count = 0;
	sigset_t none;

	prctl(PR_SET_NAME, "rftpd-monitor", 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(SIGHUP, SIG_IGN); /* the daemon's; it ends when that has gone */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* what the service manager handed over, and all else, is the daemon's */
	if (chdir("/") || dup2(fd, FIRST_FD) < 0 || close_range(FIRST_FD + 1, ~0u, 0))
		_exit(1);
	fd = FIRST_FD;
	for (unsigned i = 0; i < s->export_count; i++) {
		int top = open(s->exports[i]->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (top >= 0)
			exports[count++] = (struct monitor_export){
				.top = top, .writable = export_rule_writes(s->exports[i])};
	}
	run(fd, service, exports, count);
}

/* ---- the daemon ---- */

static int cannot_become(const char *name, const char *what)
{
	int err = -errno;

	log_error("user %s: rftpd cannot take %s: %s%s", name, what, strerror(-err),
		err == -EPERM || err == -EINVAL
			? " (in a user namespace, which must map the user and allow setgroups?)"
			: "");
	return err;
}

static int drop_root(const char *name)
{
	const struct passwd *user = getpwnam(name);

	if (!user || !user->pw_uid) {
		log_error("user %s: %s", name,
			user ? "it is root, which the daemon is not to be" : "no such user");
		return -EINVAL;
	}
	if (!getenv("STATE_DIRECTORY")) /* where root's is */
		setenv("STATE_DIRECTORY", STATE_DEFAULT, 1);
	if (initgroups(user->pw_name, user->pw_gid))
		return cannot_become(name, "its groups");
	if (setresgid(user->pw_gid, user->pw_gid, user->pw_gid))
		return cannot_become(name, "its group");
	if (setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return cannot_become(name, "its number");
	if (setuid(0) == -1)
		return 0;
	log_error("user %s: root can be had again", name);
	return -EPERM;
}

int monitor_check(const struct daemon_settings *s)
{
	if (!s->system_users)
		return 0;
	if (geteuid()) {
		log_error("system-users: only root can check passwords and open files as others: "
			  "start rftpd as root (it goes on as the user that `user` names)");
		return -EINVAL;
	}
	if (!getpwnam(monitor_user(s))) {
		log_error("user %s: no such user", monitor_user(s));
		return -EINVAL;
	}
	return 0;
}

int monitor_start(const struct daemon_settings *s)
{
	int fds[2], err = monitor_check(s);
	pid_t pid;

	if (err || !s->system_users)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		err = -errno;
		log_error("monitor: %s", strerror(-err));
		return err;
	}
	pid = fork();
	if (!pid) {
		close(fds[0]);
		begin(fds[1], s);
	}
	close(fds[1]);
	if (pid < 0) {
		err = -errno;
		log_error("monitor: %s", strerror(-err));
		close(fds[0]);
		return err;
	}
	to_monitor = fds[0];
	return drop_root(monitor_user(s));
}

static int exchange(int fd, const struct monitor_login *login, struct monitor_answer *answer)
{
	struct monitor_ask ask = {0};
	int fds[2], err;
	long n;

	if (strlen(login->user) >= sizeof ask.user ||
		strlen(login->password) >= sizeof ask.password)
		return -EACCES;
	strcpy(ask.user, login->user);
	strcpy(ask.password, login->password);
	snprintf(ask.address, sizeof ask.address, "%s", login->address);
	err = opener_send(fd, &ask, sizeof ask, NULL, 0);
	explicit_bzero(&ask, sizeof ask);
	if (err)
		return err;
	n = opener_recv(fd, answer, sizeof *answer, fds);
	if (n != (long)sizeof *answer)
		return n < 0 ? (int)n : -ECONNRESET;
	answer->why[sizeof answer->why - 1] = '\0';
	return -answer->error;
}

int monitor_login(const struct monitor_login *login, struct opener **out,
	char name[MONITOR_NAME_MAX], char *why, size_t size)
{
	struct monitor_answer answer = {0};
	int fds[2], err;

	if (to_monitor < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		snprintf(why, size, "there is no monitor");
		return -ECONNREFUSED;
	}
	err = opener_send(to_monitor, "", 1, &fds[1], 1);
	close(fds[1]);
	if (err == -EPIPE || err == -ECONNRESET || err == -ENOTCONN) {
		static atomic_flag told = ATOMIC_FLAG_INIT;

		if (!atomic_flag_test_and_set(&told))
			log_error("the monitor has ended: no user of the host can log in until a "
				  "new start");
		snprintf(answer.why, sizeof answer.why, "the monitor has ended");
	}
	if (!err)
		err = exchange(fds[0], login, &answer);
	if (!err) {
		snprintf(name, MONITOR_NAME_MAX, "%.*s", (int)MONITOR_NAME_MAX - 1, answer.user);
		return opener_new(fds[0], answer.uid, out);
	}
	snprintf(why, size, "%s", *answer.why ? answer.why : strerror(-err));
	close(fds[0]);
	return err;
}
