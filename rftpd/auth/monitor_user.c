/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/monitor_user: see monitor_user.h.
 *
 * Owns the dialogue with PAM and how root is given up.
 */
#include "rftpd/auth/monitor_user.h"

#include "base/log.h"
#include "base/opener.h"
#include "base/opener_wire.h"
#include "rftpd/confine/landlock.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <security/pam_appl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ASKED_S 60 /* PAM's modules may wait for somebody, but not for ever */
#define ASKED_NICE 10
#define EXPORT_READ (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define EXPORT_WRITE                                                                               \
	(EXPORT_READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG |               \
		LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_SYM | LANDLOCK_REMOVE_FILE |                     \
		LANDLOCK_REMOVE_DIR | LANDLOCK_REFER)

static struct monitor_ask ask;
static struct monitor_answer answer;

/* ---- PAM ---- */

/* What is asked for without an echo is the password; anything else that is asked for is not known.
 */
static int converse(
	int count, const struct pam_message **messages, struct pam_response **out, void *unused)
{
	struct pam_response *r = calloc((size_t)count, sizeof *r);

	(void)unused;
	if (!r)
		return PAM_BUF_ERR;
	for (int i = 0; i < count; i++) {
		int style = messages[i]->msg_style;

		if (style == PAM_PROMPT_ECHO_OFF)
			r[i].resp = strdup(ask.password);
		if (style == PAM_PROMPT_ECHO_ON || (style == PAM_PROMPT_ECHO_OFF && !r[i].resp)) {
			while (i-- > 0)
				free(r[i].resp);
			free(r);
			return PAM_CONV_ERR;
		}
	}
	*out = r;
	return PAM_SUCCESS;
}

/* `service`: a name, or a file that says what PAM is to do. */
static int start(const char *service, const struct pam_conv *conv, pam_handle_t **out)
{
	const char *slash = strrchr(service, '/');
	char directory[PATH_MAX];

	if (!slash)
		return pam_start(service, ask.user, conv, out);
	snprintf(directory, sizeof directory, "%.*s", (int)(slash - service), service);
	return pam_start_confdir(slash + 1, ask.user, conv, directory, out);
}

/* The daemon holds a refusal back itself, and nobody else's login for it. */
static void delay(int status, unsigned usec, void *unused)
{
	(void)status;
	(void)usec;
	(void)unused;
}

static int tell(pam_handle_t *pam)
{
	int err = pam_set_item(pam, PAM_RHOST, ask.address);

#ifdef PAM_FAIL_DELAY
	if (err == PAM_SUCCESS)
		err = pam_set_item(pam, PAM_FAIL_DELAY, (const void *)(uintptr_t)delay);
#endif
	return err;
}

static bool is_name(const char *user)
{
	return *user && *user != '-' && !strchr(user, '/');
}

/* PAM's modules may know the user by another name than the one that was asked for: from here on it
 * is that one.  A PAM error. */
static int take_user(pam_handle_t *pam)
{
	const void *user = NULL;
	int err = pam_get_item(pam, PAM_USER, &user);

	if (err != PAM_SUCCESS)
		return err;
	if (!user || !is_name(user) || strlen(user) >= sizeof ask.user)
		return PAM_USER_UNKNOWN;
	snprintf(ask.user, sizeof ask.user, "%s", (const char *)user);
	return PAM_SUCCESS;
}

/* No session is begun and no credentials are made: there would have to be a process that stays root
 * to end them.  0 or -errno; answer.why says more. */
static int authenticate(const char *service)
{
	const struct pam_conv conv = {converse, NULL};
	pam_handle_t *pam = NULL;
	int err = start(service, &conv, &pam);

	if (err == PAM_SUCCESS)
		err = tell(pam);
	if (err == PAM_SUCCESS)
		err = pam_authenticate(pam, PAM_SILENT | PAM_DISALLOW_NULL_AUTHTOK);
	if (err == PAM_SUCCESS)
		err = pam_acct_mgmt(pam, PAM_SILENT | PAM_DISALLOW_NULL_AUTHTOK);
	if (err == PAM_SUCCESS)
		err = take_user(pam);
	if (err != PAM_SUCCESS)
		snprintf(answer.why, sizeof answer.why, "PAM: %s", pam_strerror(pam, err));
	if (pam)
		pam_end(pam, err);
	explicit_bzero(&ask.password, sizeof ask.password);
	return err == PAM_SUCCESS ? 0 : -EACCES;
}

/* ---- root is given up ---- */

static int confine(const struct monitor_export *exports, unsigned count)
{
	struct landlock l;
	int err = landlock_open(&l, false, false);

	if (err == -EOPNOTSUPP) /* the daemon says so at its start, or does not start */
		return 0;
	for (unsigned i = 0; !err && i < count; i++)
		err = landlock_allow_at(
			&l, exports[i].top, exports[i].writable ? EXPORT_WRITE : EXPORT_READ);
	if (!err)
		err = landlock_enter(&l);
	landlock_close(&l);
	return err;
}

static int become(const struct monitor_export *exports, unsigned count)
{
	const struct passwd *user = getpwnam(ask.user);
	int err;

	if (!user)
		return -ENOENT;
	if (!user->pw_uid) {
		snprintf(answer.why, sizeof answer.why, "nobody logs in as root");
		return -EACCES;
	}
	if (strlen(user->pw_name) >= sizeof answer.user)
		return -ENAMETOOLONG;
	strcpy(answer.user, user->pw_name);
	if (initgroups(user->pw_name, user->pw_gid) ||
		setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
		setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return -errno;
	if (setuid(0) != -1) /* it must not be possible */
		return -EPERM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
		chdir("/"))
		return -errno;
	err = confine(exports, count);
	answer.uid = user->pw_uid;
	for (unsigned i = 0; i < count; i++)
		close(exports[i].top);
	umask(022);
	return err;
}

static bool is_well_formed(void)
{
	return memchr(ask.user, '\0', sizeof ask.user) &&
	       memchr(ask.password, '\0', sizeof ask.password) &&
	       memchr(ask.address, '\0', sizeof ask.address) && is_name(ask.user);
}

/* Whether this process may have the priority `nice` again once it has a lower one. */
static bool may_have_again(int nice)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NICE, &limit) && limit.rlim_cur >= (rlim_t)(20 - nice))
		return true;
	return !syscall(SYS_capget, &header, sets) &&
	       sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE);
}

/* Guesses hold up no data, where who is let in can be as quick as the others are. */
static int authenticate_nicely(const char *service)
{
	const int before = getpriority(PRIO_PROCESS, 0);
	const bool nicely = may_have_again(before);
	int err;

	if (nicely)
		(void)setpriority(PRIO_PROCESS, 0, before + ASKED_NICE);
	err = authenticate(service);
	if (nicely && setpriority(PRIO_PROCESS, 0, before) && !err)
		log_warning("user %s: the session has little of the CPU: its priority cannot be "
			    "taken back: %s",
			ask.user, strerror(errno));
	return err;
}

void monitor_user_run(
	int fd, const char *service, const struct monitor_export *exports, unsigned count)
{
	int fds[2];
	long n;

	alarm(ASKED_S);
	n = opener_recv(fd, &ask, sizeof ask, fds);
	if (n != (long)sizeof ask || !is_well_formed())
		_exit(1);
	answer.error = -authenticate_nicely(service);
	if (!answer.error)
		answer.error = -become(exports, count);
	alarm(0);
	if (opener_send(fd, &answer, sizeof answer, NULL, 0) || answer.error)
		_exit(1);
	opener_serve(fd);
	_exit(0);
}
