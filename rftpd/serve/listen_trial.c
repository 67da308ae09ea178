/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen_trial: see listen.h.
 */
#include "rftpd/serve/listen.h"

#include <errno.h>
#include <string.h>

int listen_trial(const struct daemon_settings *settings)
{
	struct daemon d = {
		.settings = settings, .poller = {-1}, .devices = {.fd = -1, .watch = {.fd = -1}}};
	int err = poller_init(&d.poller);

	if (err)
		log_error("cannot set up the event loop: %s", strerror(-err));
	else
		err = listen_open(&d);
	listen_fini(&d);
	poller_fini(&d.poller);
	return err ? -EINVAL : 0;
}
