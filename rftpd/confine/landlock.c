/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/landlock: see landlock.h.
 */
#include "rftpd/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* the same number on every machine that Linux runs on since they were added */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define CREATE_VERSION (1u << 0)
enum rule_type { RULE_PATH = 1, RULE_PORT = 2 };
#define NET_BIND (UINT64_C(1) << 0)
#define NET_CONNECT (UINT64_C(1) << 1)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

#define FILE_RIGHTS                                                                                \
	(LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE |         \
		LANDLOCK_IOCTL_DEV)

struct ruleset_attr {
	uint64_t files, net, scoped;
};

struct path_rule {
	uint64_t rights;
	int32_t fd;
} __attribute__((packed));

struct port_rule {
	uint64_t rights, port;
};

/* The highest version at which each part of it was added, and what there is from then on. */
static const struct {
	int version;
	uint64_t files;
	size_t bytes; /* of struct ruleset_attr */
} versions[] = {
	{2, LANDLOCK_REFER | (LANDLOCK_REFER - 1), sizeof(uint64_t)},
	{3, LANDLOCK_TRUNCATE | (LANDLOCK_TRUNCATE - 1), sizeof(uint64_t)},
	{4, LANDLOCK_TRUNCATE | (LANDLOCK_TRUNCATE - 1), 2 * sizeof(uint64_t)},
	{5, LANDLOCK_IOCTL_DEV | (LANDLOCK_IOCTL_DEV - 1), 2 * sizeof(uint64_t)},
	{6, LANDLOCK_IOCTL_DEV | (LANDLOCK_IOCTL_DEV - 1), 3 * sizeof(uint64_t)},
};

int landlock_version(void)
{
	long n = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return n > 0 ? (int)n : 0;
}

int landlock_open(struct landlock *l, bool ports, bool anywhere)
{
	struct ruleset_attr attr = {0};
	size_t bytes = 0;
	long fd;

	*l = (struct landlock){.fd = -1, .version = landlock_version()};
	if (l->version < LANDLOCK_LEAST)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++)
		if (versions[i].version <= l->version) {
			l->files = versions[i].files;
			bytes = versions[i].bytes;
		}
	attr.files = l->files;
	l->ports = ports && l->version >= LANDLOCK_PORTS;
	l->connects = !anywhere && l->version >= LANDLOCK_PORTS;
	attr.net = (anywhere ? 0 : NET_CONNECT) | (l->ports ? NET_BIND : 0);
	attr.scoped = SCOPE_SIGNAL;
	fd = syscall(SYS_landlock_create_ruleset, &attr, bytes, 0);
	if (fd < 0)
		return -errno;
	l->fd = (int)fd;
	return 0;
}

void landlock_close(struct landlock *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int landlock_allow_at(struct landlock *l, int fd, uint64_t rights)
{
	struct path_rule rule = {.rights = rights & l->files, .fd = fd};
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.rights &= FILE_RIGHTS;
	return syscall(SYS_landlock_add_rule, l->fd, RULE_PATH, &rule, 0) ? -errno : 0;
}

int landlock_allow(struct landlock *l, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = landlock_allow_at(l, fd, rights);
	close(fd);
	return err;
}

int landlock_allow_port(struct landlock *l, uint16_t port)
{
	struct port_rule rule = {.rights = NET_BIND, .port = port};

	if (!l->ports)
		return 0;
	return syscall(SYS_landlock_add_rule, l->fd, RULE_PORT, &rule, 0) ? -errno : 0;
}

int landlock_allow_connect(struct landlock *l, uint16_t port)
{
	struct port_rule rule = {.rights = NET_CONNECT, .port = port};

	if (!l->connects)
		return 0;
	return syscall(SYS_landlock_add_rule, l->fd, RULE_PORT, &rule, 0) ? -errno : 0;
}

int landlock_enter(struct landlock *l)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_landlock_restrict_self, l->fd, 0) ? -errno : 0;
}
