/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/admit: see admit.h.
 */
#include "rftpd/serve/admit.h"

#include "base/clock.h"
#include "rftpd/serve/daemon_session.h"

/* Who has been idle for this part of idle-timeout gives way; without an idle-timeout, for so long.
 */
#define GIVE_WAY_PART 60u
#define GIVE_WAY_NS (15 * NS_PER_S)

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

/* Whether it has nothing under way: no request, no listing that it has not taken, no channels that
 * are on their way. */
static bool is_idle(const struct daemon_session *s)
{
	return s->state == SESSION_READY && !s->busy && !s->listing && !s->channels_deadline.list;
}

void admit_make_room(struct daemon *d)
{
	uint64_t least_ns = d->idle.length_ns ? d->idle.length_ns / GIVE_WAY_PART : GIVE_WAY_NS;
	struct daemon_session *s, *longest = NULL;

	if (d->session_count < d->settings->max_sessions)
		return;
	TAILQ_FOREACH(s, &d->sessions, entry)
	if (is_idle(s) && (!longest || s->idle_since_ns < longest->idle_since_ns))
		longest = s;
	if (longest && clock_now_ns() - longest->idle_since_ns >= least_ns)
		daemon_session_drop(longest, "idle, and another client needs its place");
}
