/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/quotas: see quotas.h.
 */
#include "rftpd/serve/quotas.h"

#include "base/clock.h"
#include "rftpd/json_string.h"
#include "rftpd/serve/daemon_session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

static const enum limit_kind kinds[] = {LIMIT_QUOTA, LIMIT_FILES};

void quotas_init(struct quotas *all)
{
	TAILQ_INIT(&all->all);
}

void quotas_fini(struct quotas *all)
{
	struct quota *q;

	while ((q = TAILQ_FIRST(&all->all))) {
		TAILQ_REMOVE(&all->all, q, entry);
		space_fini(&q->space);
		close(q->top);
		free(q->label);
		free(q);
	}
}

/* ---- measuring ---- */

static void run_measure(struct task *task)
{
	struct quota *q = (struct quota *)task;

	q->error = space_measure(&q->space, q->top, &q->stop);
}

static void end_measure(struct task *task)
{
	struct quota *q = (struct quota *)task;
	uint64_t bytes, files;

	q->running = false;
	q->next_ns = q->all->period_s ? clock_now_ns() + q->all->period_s * NS_PER_S : UINT64_MAX;
	if (q->error) {
		if (!atomic_load(&q->stop))
			log_warning("export %s: what is there cannot be counted: %s", q->label,
				strerror(-q->error));
		return;
	}
	pthread_mutex_lock(&q->space.lock);
	bytes = q->space.bytes;
	files = q->space.files;
	pthread_mutex_unlock(&q->space.lock);
	log_info("export %s: %" PRIu64 " bytes in %" PRIu64 " files are there", q->label, bytes,
		files);
}

void quotas_tend(struct daemon *d, uint64_t now_ns)
{
	struct quota *q;

	TAILQ_FOREACH(q, &d->quotas.all, entry)
	{
		if (!q->wanted || q->running || q->next_ns > now_ns || d->stopping)
			continue;
		q->task = (struct task){.run = run_measure, .done = end_measure};
		q->running = !task_pool_start(d->tasks, &q->task, now_ns);
		if (!q->running)
			q->next_ns = now_ns + NS_PER_S;
	}
}

uint64_t quotas_next_ns(const struct daemon *d)
{
	uint64_t next_ns = UINT64_MAX;
	const struct quota *q;

	TAILQ_FOREACH(q, &d->quotas.all, entry)
	if (q->wanted && !q->running && !d->stopping && q->next_ns < next_ns)
		next_ns = q->next_ns;
	return next_ns;
}

void quotas_stop(struct daemon *d)
{
	struct quota *q;

	TAILQ_FOREACH(q, &d->quotas.all, entry)
	atomic_store(&q->stop, true);
}

/* ---- which ---- */

static struct quota *find(const struct quotas *all, int top)
{
	struct stat st;
	struct quota *q;

	if (fstat(top, &st))
		return NULL;
	TAILQ_FOREACH(q, &all->all, entry)
	if (q->dev == st.st_dev && q->ino == st.st_ino)
		return q;
	return NULL;
}

/* Whether some rule limits what may lie there, whoever's. */
static bool is_wanted(const struct daemon_settings *settings, const char *export_name)
{
	for (unsigned i = 0; i < settings->limit_count; i++) {
		const struct limit_rule *r = &settings->limits[i];

		for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
			if (r->values[kinds[k]] && r->values[kinds[k]] != LIMIT_NONE &&
				(!strcmp(r->export_name, "*") ||
					(export_name && !strcmp(r->export_name, export_name))))
				return true;
	}
	return false;
}

static struct quota *add(struct quotas *all, const struct daemon_export *export)
{
	struct quota *q = calloc(1, sizeof *q);
	struct stat st;

	if (!q)
		return NULL;
	q->top = fcntl(export->place.top, F_DUPFD_CLOEXEC, 0);
	q->label = strdup(export->label);
	if (q->top < 0 || !q->label || fstat(q->top, &st)) {
		if (q->top >= 0)
			close(q->top);
		free(q->label);
		free(q);
		return NULL;
	}
	q->all = all;
	q->dev = st.st_dev;
	q->ino = st.st_ino;
	space_init(&q->space);
	TAILQ_INSERT_TAIL(&all->all, q, entry);
	return q;
}

void quotas_use(struct daemon *d)
{
	struct daemon_session *s;
	struct quota *q;

	d->quotas.period_s = d->settings->quota_scan_s;
	TAILQ_FOREACH(q, &d->quotas.all, entry)
	{
		q->was_wanted = q->wanted;
		q->wanted = false;
	}
	for (unsigned i = 0; d->exports && i < d->exports->count; i++) {
		const struct daemon_export *export = &d->exports->all[i];

		if (export->place.top < 0 || !is_wanted(d->settings, d->exports->rules[i]->name))
			continue;
		q = find(&d->quotas, export->place.top);
		if (!q)
			q = add(&d->quotas, export);
		if (!q) {
			log_error("export %s: out of memory or descriptors: its quota is not kept",
				export->label);
			continue;
		}
		q->wanted = true;
		if (!q->was_wanted)
			q->next_ns = 0;
		else if (d->quotas.period_s)
			q->next_ns =
				MIN(q->next_ns, clock_now_ns() + d->quotas.period_s * NS_PER_S);
	}
	TAILQ_FOREACH(s, &d->sessions, entry)
	if (s->view)
		quotas_share(s);
}

/* ---- what a session may fill ---- */

/* The least of what the rules say. */
static uint64_t least(const struct daemon_settings *settings, enum limit_kind kind,
	const struct limit_facts *facts)
{
	uint64_t value = SPACE_NO_MAX;

	for (unsigned mask = 0; mask < LIMIT_MASKS; mask++) {
		const struct limit_rule *r =
			mask & LIMIT_EXPORT ? limit_rule_choose(settings->limits,
						      settings->limit_count, mask, kind, facts)
					    : NULL;

		if (r && r->values[kind] < value)
			value = r->values[kind];
	}
	return value;
}

void quotas_share(struct daemon_session *s)
{
	const struct daemon_settings *settings = s->daemon->settings;

	for (unsigned i = 0; i < s->view->count; i++) {
		struct view_entry *entry = &s->view->entries[i];
		struct quota *q =
			entry->place.top >= 0 ? find(&s->daemon->quotas, entry->place.top) : NULL;
		const struct limit_facts facts = {
			.user = identity_user(&s->who),
			.address = fabric_chan_peer(control_chan(link_control(s->link))),
			.export_name = entry->name,
		};

		atomic_store(&entry->share.max_bytes, least(settings, LIMIT_QUOTA, &facts));
		atomic_store(&entry->share.max_files, least(settings, LIMIT_FILES, &facts));
		if (q)
			atomic_store(&entry->share.space, &q->space);
	}
}

/* ---- for people ---- */

void quotas_print(const struct daemon *d, bool json, FILE *out)
{
	struct quota *q;

	if (!json)
		fprintf(out, "%16s  %16s  %12s  %s\n", "bytes", "arriving", "files", "export");
	TAILQ_FOREACH(q, &d->quotas.all, entry)
	{
		struct space *s = &q->space;
		uint64_t bytes, claimed, files;
		bool known;

		if (!q->wanted)
			continue;
		pthread_mutex_lock(&s->lock);
		bytes = s->bytes;
		claimed = s->claimed_bytes;
		files = s->files;
		known = s->known;
		pthread_mutex_unlock(&s->lock);
		if (json) {
			fputs("{\"export\":", out);
			json_string_put(q->label, out);
			fprintf(out,
				",\"known\":%s,\"bytes\":%" PRIu64 ",\"arriving_bytes\":%" PRIu64
				",\"files\":%" PRIu64 "}\n",
				known ? "true" : "false", bytes, claimed, files);
		} else {
			fprintf(out, "%16" PRIu64 "  %16" PRIu64 "  %12" PRIu64 "  %s%s\n", bytes,
				claimed, files, q->label, known ? "" : " (not yet measured)");
		}
	}
}
