/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/activation: see activation.h.
 */
#include "rftpd/activation.h"

#include "base/addr.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD 3

static bool is_number(const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *text = getenv(name);

	return text && !number_parse(text, min, max, out);
}

static bool address_of(int fd, char out[ADDR_TEXT_MAX])
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss, size = sizeof(int);
	int type = 0, listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens ||
		getsockname(fd, (struct sockaddr *)&ss, &len) ||
		(ss.ss_family != AF_INET && ss.ss_family != AF_INET6))
		return false;
	addr_format((struct sockaddr *)&ss, out);
	return true;
}

static void take(struct activation *a, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	char shown[ADDR_TEXT_MAX];

	if (a->count == DAEMON_LISTEN_MAX || !address_of(fd, shown) || flags < 0) {
		log_warning(
			"descriptor %d of the service manager is no TCP socket that listens, or "
			"one too many",
			fd);
		close(fd);
		return;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	a->fds[a->count++] = fd;
}

void activation_take(struct activation *a)
{
	uint64_t pid = 0, count = 0;

	*a = (struct activation){0};
	if (is_number("LISTEN_PID", 1, INT32_MAX, &pid) && pid == (uint64_t)getpid() &&
		is_number("LISTEN_FDS", 0, 1024, &count))
		for (int fd = FIRST_FD; fd < FIRST_FD + (int)count; fd++)
			take(a, fd);
	unsetenv("LISTEN_PID"); /* not for whom we start */
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

static bool is_listed(const struct daemon_settings *s, const char *address)
{
	for (unsigned i = 0; i < s->listen_count; i++)
		if (!strcmp(s->listen[i], address))
			return true;
	return false;
}

int activation_use(const struct activation *a, struct daemon_settings *s, char why[DAEMON_WHY_MAX])
{
	char shown[ADDR_TEXT_MAX];

	for (unsigned i = 0; i < a->count; i++) {
		s->inherited[s->inherited_count++] = a->fds[i];
		if (!address_of(a->fds[i], shown) || is_listed(s, shown))
			continue;
		if (s->listen_count == DAEMON_LISTEN_MAX) {
			snprintf(why, DAEMON_WHY_MAX, "listen: more than %u addresses",
				DAEMON_LISTEN_MAX);
			return -ENOSPC;
		}
		s->listen[s->listen_count] = strdup(shown);
		if (!s->listen[s->listen_count]) {
			snprintf(why, DAEMON_WHY_MAX, "out of memory");
			return -ENOMEM;
		}
		s->listen_count++;
	}
	return 0;
}
