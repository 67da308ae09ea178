/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/notify: see notify.h.
 */
#include "rftpd/notify.h"

#include "base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int send_to(const char *name, const char *state)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = strlen(name);
	int fd, err = 0;

	if ((name[0] != '/' && name[0] != '@') || !name[1] || len >= sizeof to.sun_path)
		return -EINVAL;
	memcpy(to.sun_path, name, len);
	if (name[0] == '@') /* Linux's abstract names begin with a NUL */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		err = -errno;
	close(fd);
	return err;
}

int notify_send(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int err = name && *name ? send_to(name, state) : 0;

	if (err)
		log_warning("cannot tell %s that %s: %s", name, state, strerror(-err));
	return err;
}
