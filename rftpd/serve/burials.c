/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/burials: see burials.h.
 */
#include "rftpd/serve/burials.h"

#include "base/clock.h"
#include "rftpd/serve/daemon_session.h"

#include <stddef.h>

#define BURIALS_MAX 256u /* at once: who makes more of them waits for it, as does everybody */

static struct daemon_session *session_of(struct task *task)
{
	return (struct daemon_session *)((char *)task - offsetof(struct daemon_session, burial));
}

static void dig(struct task *task)
{
	struct daemon_session *s = session_of(task);

	link_free(s->link);
	s->link = NULL;
}

/* Events of its channels, which name the session, are gone with them: the loop may forget it. */
static void buried(struct task *task)
{
	struct daemon_session *s = session_of(task);

	s->daemon->burials--;
	daemon_session_free(s);
}

static bool begin(struct daemon *d, struct daemon_session *s)
{
	if (!link_takes_time(s->link) || d->burials == BURIALS_MAX)
		return false;
	s->burial = (struct task){.run = dig, .done = buried};
	if (task_pool_start(d->tasks, &s->burial, clock_now_ns()))
		return false;
	d->burials++;
	return true;
}

void burials_begin(struct daemon *d)
{
	struct daemon_session *s;

	while ((s = TAILQ_FIRST(&d->dead))) {
		TAILQ_REMOVE(&d->dead, s, entry);
		if (!begin(d, s))
			daemon_session_free(s);
	}
}

void burials_finish(struct daemon *d)
{
	struct daemon_session *s;

	while ((s = TAILQ_FIRST(&d->dead))) {
		TAILQ_REMOVE(&d->dead, s, entry);
		daemon_session_free(s);
	}
}
