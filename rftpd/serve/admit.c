/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/admit: see admit.h.
 */
#include "rftpd/serve/admit.h"

#include "base/clock.h"
#include "proto/status.h"
#include "rftpd/serve/daemon_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/random.h>

/* Who has been idle for this part of idle-timeout gives way, but not within a second; without an
 * idle-timeout, for so long. */
#define GIVE_WAY_PART 60u
#define GIVE_WAY_NS (15 * NS_PER_S)

/* Sessions may have so many of the descriptors that there are, */
static uint64_t sessions_most(const struct daemon *d)
{
	return d->descriptors / 8 * 7;
}

/* and more than one data channel each only up to here. */
static uint64_t channels_most(const struct daemon *d)
{
	return d->descriptors / 4 * 3;
}

static uint64_t lent_descriptors(const struct daemon *d)
{
	const struct scheduler *jobs = &d->scheduler;

	return (uint64_t)(jobs->total.files - jobs->free.files) * BUDGET_FILE_DESCRIPTORS;
}

void admit_init(struct daemon *d)
{
	uint64_t seed = clock_now_ns();

	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
		log_debug("no random number yet: the clock");
	penalties_init(&d->penalties, seed);
}

/* ---- counting ---- */

static unsigned bucket_of(const struct daemon *d, const uint8_t host[ADDR_HOST_BYTES])
{
	return (unsigned)(addr_host_hash(host, d->penalties.seed) % DAEMON_BUCKETS);
}

static struct admit_source *find(const struct daemon *d, const uint8_t host[ADDR_HOST_BYTES])
{
	struct admit_source *source;

	SLIST_FOREACH(source, &d->sources[bucket_of(d, host)], entry)
	if (!memcmp(source->host, host, ADDR_HOST_BYTES))
		return source;
	return NULL;
}

int admit_begin(struct daemon_session *s)
{
	struct daemon *d = s->daemon;
	uint8_t host[ADDR_HOST_BYTES];

	addr_host(fabric_chan_peer(control_chan(link_control(s->link))), host);
	s->source = find(d, host);
	if (!s->source) {
		s->source = calloc(1, sizeof *s->source);
		if (!s->source)
			return -ENOMEM;
		memcpy(s->source->host, host, sizeof host);
		SLIST_INSERT_HEAD(&d->sources[bucket_of(d, host)], s->source, entry);
	}
	s->source->sessions++;
	s->source->half_open++;
	s->is_half_open = true;
	TAILQ_INSERT_TAIL(&d->half_open, s, half_open_entry);
	d->half_open_count++;
	return 0;
}

void admit_is_set_up(struct daemon_session *s)
{
	if (!s->is_half_open)
		return;
	s->is_half_open = false;
	s->source->half_open--;
	TAILQ_REMOVE(&s->daemon->half_open, s, half_open_entry);
	s->daemon->half_open_count--;
}

void admit_end(struct daemon_session *s)
{
	struct admit_source *source = s->source;

	admit_is_set_up(s);
	s->source = NULL;
	if (--source->sessions)
		return;
	SLIST_REMOVE(&s->daemon->sources[bucket_of(s->daemon, source->host)], source, admit_source,
		entry);
	free(source);
}

/* ---- whether ---- */

/* Early random drop: so that one who is honest gets in after some tries. */
static bool is_unlucky(const struct daemon_startups *limit, uint64_t count)
{
	uint64_t percent = 100;
	uint32_t number = 0;

	if (count < limit->begin)
		return false;
	if (count < limit->full)
		percent = limit->percent + (100 - limit->percent) * (count - limit->begin) /
						   (limit->full - limit->begin);
	if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
		number = (uint32_t)clock_now_ns();
	return number % 100 < percent;
}

const char *admit_refusal(const struct daemon *d, const struct sockaddr *peer)
{
	const struct daemon_settings *settings = d->settings;
	const struct admit_source *source;
	uint8_t host[ADDR_HOST_BYTES];

	if (d->session_count >= settings->max_sessions)
		return "there are as many sessions as may be (max-sessions)";
	if (daemon_session_descriptors(d) >= sessions_most(d))
		return "there are no descriptors for another session (ulimit -n)";
	addr_host(peer, host);
	source = find(d, host);
	if (!source)
		return NULL;
	if (source->sessions >= settings->max_per_address)
		return "its address has as many sessions as one may have "
		       "(max-per-address)";
	if (is_unlucky(&settings->startups, source->half_open))
		return "too many sessions of its address are being set up (max-startups)";
	return NULL;
}

bool admit_user_is_full(const struct daemon *d, const char *user)
{
	const struct daemon_session *s;
	uint64_t count = 0;

	TAILQ_FOREACH(s, &d->sessions, entry)
	count += s->who.method && !strcmp(s->who.user, user);
	return count >= d->settings->max_per_user;
}

/* Whether it has nothing under way: no request, no listing that it has not taken, no channels that
 * are on their way. */
static bool is_idle(const struct daemon_session *s)
{
	return s->state == SESSION_READY && !s->busy && !s->listing && !session_transfers_expect(s);
}

static void end_oldest_half_open(struct daemon *d)
{
	if (d->half_open_count >= d->settings->max_half_open)
		daemon_session_drop(TAILQ_FIRST(&d->half_open),
			"not set up, and another client needs its place");
}

void admit_make_room(struct daemon *d)
{
	uint64_t least_ns =
		d->idle.length_ns ? MAX(d->idle.length_ns / GIVE_WAY_PART, NS_PER_S) : GIVE_WAY_NS;
	struct daemon_session *s, *longest = NULL;

	end_oldest_half_open(d);
	if (d->session_count < d->settings->max_sessions &&
		daemon_session_descriptors(d) + lent_descriptors(d) < sessions_most(d))
		return;
	TAILQ_FOREACH(s, &d->sessions, entry)
	if (is_idle(s) && (!longest || s->idle_since_ns < longest->idle_since_ns))
		longest = s;
	if (longest && clock_now_ns() - longest->idle_since_ns >= least_ns)
		daemon_session_drop(longest, "idle, and another client needs its place");
}

static bool counts(const struct daemon *d, const struct sockaddr *peer)
{
	return d->settings->penalties == DAEMON_PENALTIES_ALL ||
	       (d->settings->penalties == DAEMON_PENALTIES_REMOTE && !addr_is_loopback(peer));
}

void admit_blame(struct daemon *d, const struct sockaddr *peer, enum penalty what)
{
	unsigned seconds =
		counts(d, peer) ? penalties_add(&d->penalties, peer, what, clock_now_ns()) : 0;
	char text[ADDR_TEXT_MAX];

	if (!seconds)
		return;
	addr_format(peer, text);
	log_warning("%s: its address has failed too often to set up a session, and is refused for "
		    "%u s",
		text, seconds);
	audit_write(&d->audit, &(struct audit_event){.event = "refused",
				       .peer = text,
				       .status = STATUS_LIMIT,
				       .text = "its address has failed too often (penalties)"});
}

bool admit_shuns(struct daemon *d, const struct sockaddr *peer)
{
	return counts(d, peer) && penalties_refuses(&d->penalties, peer, clock_now_ns());
}

unsigned admit_channels(const struct daemon *d, unsigned wanted)
{
	uint64_t used = daemon_session_descriptors(d) + lent_descriptors(d);
	uint64_t most = channels_most(d);

	return used < most ? (unsigned)MIN(wanted, most - used) : 1;
}
