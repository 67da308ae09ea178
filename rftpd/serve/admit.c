/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/admit: see admit.h.
 */
#include "rftpd/serve/admit.h"

#include "rftpd/serve/daemon_session.h"

const char *admit_refusal(const struct daemon *d, const struct sockaddr *peer)
{
	const struct daemon_session *s;
	uint64_t count = 0;

	if (d->session_count >= d->settings->max_sessions)
		return "there are as many sessions as may be (max-sessions)";
	if (d->session_count < d->settings->max_per_address)
		return NULL;
	/* counted anew for each: fewer instructions than its set-up takes, and nothing to keep true
	 */
	TAILQ_FOREACH(s, &d->sessions, entry)
	count += addr_same_host(fabric_chan_peer(control_chan(link_control(s->link))), peer);
	if (count >= d->settings->max_per_address)
		return "its address has as many sessions as one may have "
		       "(max-per-address)";
	return NULL;
}
