/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/sandbox: see sandbox.h.
 *
 * Owns what is reachable from within.
 */
#include "rftpd/confine/sandbox.h"

#include "base/addr.h"
#include "rftpd/confine/landlock.h"
#include "rftpd/copy_rule.h"
#include "rftpd/confine/syscall_filter.h"
#include "rftpd/serve/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_ONLY (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define READ_WRITE                                                                                 \
	(READ_ONLY | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG |                 \
		LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_SYM | LANDLOCK_REMOVE_FILE |                     \
		LANDLOCK_REMOVE_DIR | LANDLOCK_REFER)
#define APPEND (LANDLOCK_WRITE_FILE | LANDLOCK_MAKE_REG)
#define CONNECT_RULES_MAX 1024
#define SOCKET (LANDLOCK_MAKE_SOCK | LANDLOCK_REMOVE_FILE)

/* What libraries read once more later: names of hosts, the host's devices and its memory.  Users
 * and groups are looked up outside (confine/lookup_process). */
static const struct {
	const char *path;
	uint64_t rights;
} system_paths[] = {
	{"/etc/hosts", LANDLOCK_READ_FILE},
	{"/etc/host.conf", LANDLOCK_READ_FILE},
	{"/etc/nsswitch.conf", LANDLOCK_READ_FILE},
	{"/etc/resolv.conf", LANDLOCK_READ_FILE},
	{"/etc/gai.conf", LANDLOCK_READ_FILE},
	{"/etc/services", LANDLOCK_READ_FILE},
	{"/etc/localtime", LANDLOCK_READ_FILE},
	{"/etc/ld.so.cache", LANDLOCK_READ_FILE},
	{"/etc/libibverbs.d", READ_ONLY},
	{"/usr/lib", READ_ONLY},
	{"/usr/lib64", READ_ONLY},
	{"/usr/share/zoneinfo", READ_ONLY},
	{"/lib", READ_ONLY},
	{"/lib64", READ_ONLY},
	{"/proc", READ_ONLY},
	{"/sys", READ_ONLY},
	{"/dev/infiniband", READ_ONLY | LANDLOCK_WRITE_FILE | LANDLOCK_IOCTL_DEV},
	{"/dev/null", LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE},
	{"/dev/urandom", LANDLOCK_READ_FILE},
};

/* The directory that holds the file: it may be made, or made anew, later.  NULL: none is named. */
static int allow_holder(struct landlock *l, const char *what, const char *file, uint64_t rights)
{
	char path[PATH_MAX];
	int err;

	if (!file)
		return 0;
	snprintf(path, sizeof path, "%s", file);
	err = landlock_allow(l, dirname(path), rights);
	if (!err && realpath(file, path)) /* a link leads elsewhere */
		err = landlock_allow(l, dirname(path), rights);
	if (err)
		log_error("sandbox: the directory of %s %s: %s", what, file, strerror(-err));
	return err;
}

/* What stands before the user's name in it. */
static int allow_keys(struct landlock *l, const char *pattern)
{
	char path[PATH_MAX];

	if (!pattern)
		return 0;
	snprintf(path, sizeof path, "%.*sx", (int)strcspn(pattern, "%"), pattern);
	return allow_holder(l, "authorized-keys", path, LANDLOCK_READ_FILE);
}

/* Which TCP ports it listens on.  false: one that the kernel chooses, which no rule can name. */
static bool each_port(const struct daemon_settings *s, struct landlock *l)
{
	const char *texts[DAEMON_LISTEN_MAX + 1] = {DAEMON_LISTEN_DEFAULT};
	unsigned count = 1;
	char host[256];
	uint16_t port;

	if (s->listen_count)
		memcpy(texts, s->listen, (count = s->listen_count) * sizeof *texts);
	if (s->metrics)
		texts[count++] = s->metrics;
	for (unsigned i = 0; i < count; i++)
		if (!addr_split(texts[i], host, sizeof host, ADDR_DEFAULT_PORT, &port) &&
			(!port || (l && landlock_allow_port(l, port))))
			return false;
	return true;
}

/* To ports that it sends copies to; to so many that no rule for each is worth it. */
static bool connects_anywhere(const struct daemon_settings *s)
{
	return s->copies_to && s->copies_to->last - s->copies_to->first >= CONNECT_RULES_MAX;
}

static int allow_connects(struct landlock *l, const struct copy_rule *rule)
{
	int err = 0;

	for (unsigned port = rule->first; !err && port <= rule->last; port++)
		err = landlock_allow_connect(l, (uint16_t)port);
	return err;
}

static int allow_log(struct landlock *l, const char *what, const char *file)
{
	bool is_file = file && strcmp(file, "stderr") != 0;

	return is_file ? allow_holder(l, what, file, APPEND) : 0;
}

static int allow_all(struct sandbox *box, struct landlock *l, const struct daemon_settings *s,
	const char *config)
{
	char control[PATH_MAX];
	int err = 0;

	for (unsigned i = 0; !err && i < box->export_count; i++)
		err = landlock_allow_at(
			l, box->exports[i].top, box->exports[i].writable ? READ_WRITE : READ_ONLY);
	for (unsigned i = 0; !err && i < sizeof system_paths / sizeof *system_paths; i++) {
		err = landlock_allow(l, system_paths[i].path, system_paths[i].rights);
		if (err == -ENOENT || err == -ENOTDIR || err == -EACCES)
			err = 0; /* not on this host */
	}
	if (!err)
		err = allow_holder(l, "log-file", s->log_file, APPEND);
	if (!err)
		err = allow_log(l, "audit-log", s->audit_log);
	if (!err)
		err = allow_log(l, "xferlog", s->xferlog);
	if (!err)
		err = allow_holder(l, "config", config, LANDLOCK_READ_FILE);
	if (!err)
		err = allow_holder(l, "users", s->users, LANDLOCK_READ_FILE);
	if (!err)
		err = allow_holder(
			l, "certificate-users", s->certificate_users, LANDLOCK_READ_FILE);
	if (!err)
		err = allow_keys(l, s->authorized_keys);
	if (!err && control_socket_path(s, control, sizeof control))
		err = allow_holder(l, "control", control, SOCKET);
	if (!err && l->ports && !each_port(s, l))
		err = -EINVAL;
	if (!err && s->copies_to && !connects_anywhere(s))
		err = allow_connects(l, s->copies_to);
	return err;
}

/* The version that holds, or -errno. */
static int confine_files(struct sandbox *box, const struct daemon_settings *s, const char *config)
{
	struct landlock l;
	int err = landlock_open(&l, each_port(s, NULL), connects_anywhere(s));

	if (!err)
		err = allow_all(box, &l, s, config);
	if (!err)
		err = landlock_enter(&l);
	landlock_close(&l);
	return err ? err : l.version;
}

int sandbox_add(struct sandbox *box, int top, bool writable)
{
	struct stat st;

	if (box->export_count == SANDBOX_EXPORTS_MAX)
		return -ENOSPC;
	if (fstat(top, &st))
		return -errno;
	box->exports[box->export_count++] = (struct sandbox_export){
		.top = top, .writable = writable, .device = st.st_dev, .inode = st.st_ino};
	return 0;
}

int sandbox_enter(struct sandbox *box, const struct daemon_settings *s, const char *config)
{
	char files[96], calls[64];
	int version, count;

	if (!s->sandbox) {
		log_info("sandbox: none, as the settings say");
		return 0;
	}
	version = confine_files(box, s, config);
	count = syscall_filter_enter();
	box->files = version > 0;
	if (version > 0)
		snprintf(files, sizeof files, "no files but its own (Landlock %d)", version);
	else
		snprintf(files, sizeof files, "files are not confined (Landlock: %s)",
			strerror(-version));
	if (count > 0)
		snprintf(calls, sizeof calls, "no system calls but %d (seccomp)", count);
	else
		snprintf(calls, sizeof calls, "any system call (seccomp: %s)", strerror(-count));
	log_info("sandbox: %s; %s", files, calls);
	if (!s->require_sandbox || (version > 0 && count > 0))
		return 0;
	log_error("require-sandbox: this kernel does not let it be confined so");
	return -EINVAL;
}

int sandbox_check(const struct daemon_settings *s)
{
	if (!s->require_sandbox)
		return 0;
	if (!s->sandbox) {
		log_error("require-sandbox and sandbox = no exclude each other");
		return -EINVAL;
	}
	if (landlock_version() >= LANDLOCK_LEAST && syscall_filter_supported())
		return 0;
	log_error("require-sandbox: this kernel has no %s",
		landlock_version() >= LANDLOCK_LEAST ? "seccomp" : "Landlock, or an old one");
	return -EINVAL;
}

static bool is_one(const struct sandbox *box, const struct stat *st, bool writable)
{
	for (unsigned i = 0; i < box->export_count; i++) {
		const struct sandbox_export *e = &box->exports[i];

		if (e->device == st->st_dev && e->inode == st->st_ino && e->writable >= writable)
			return true;
	}
	return false;
}

bool sandbox_reaches(const struct sandbox *box, int top, bool writable)
{
	struct stat here, above;
	int fd = openat(top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool found = !box->files, more = fd >= 0 && !fstat(fd, &here);

	while (!found && more) {
		int up = -1;

		found = is_one(box, &here, writable);
		if (!found)
			up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
		more = fd >= 0 && !fstat(fd, &above) &&
		       (above.st_dev != here.st_dev || above.st_ino != here.st_ino);
		here = more ? above : here;
	}
	if (fd >= 0)
		close(fd);
	return found;
}
