/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/listen_trial: see listen.h.
 */
#include "rftpd/serve/listen.h"

#include <errno.h>
#include <string.h>

/* A name may stand for addresses that this host does not have: one will do. */
static int find_local(const struct daemon_settings *settings, const char *text)
{
	struct addr addrs[LISTEN_RESOLVED_MAX];
	int count = listen_resolve(settings, text, addrs), err = -EINVAL;

	for (int i = 0; i < count && err; i++)
		err = addr_is_local((struct sockaddr *)&addrs[i].ss);
	if (count > 0 && err)
		log_error("listen %s: %s", text, strerror(-err));
	return err;
}

int listen_trial(const struct daemon_settings *settings)
{
	struct daemon d = {
		.settings = settings, .poller = {-1}, .devices = {.fd = -1, .watch = {.fd = -1}}};
	const char *text;
	int err = poller_init(&d.poller);

	if (err)
		log_error("cannot set up the event loop: %s", strerror(-err));
	else
		err = listen_open_fabrics(&d);
	for (unsigned i = 0; !err && (text = listen_text(settings, i)); i++)
		err = find_local(settings, text);
	listen_fini(&d);
	poller_fini(&d.poller);
	return err ? -EINVAL : 0;
}
