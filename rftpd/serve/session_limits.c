/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_limits: see session_limits.h.
 *
 * Sessions are counted anew for each question: there is no count to keep true.
 */
#include "rftpd/serve/session_limits.h"

#include "proto/status.h"
#include "rftpd/serve/session_log.h"

#include <errno.h>
#include <string.h>

static struct limit_facts facts_of(const struct daemon_session *s, const char *export_name)
{
	return (struct limit_facts){
		.user = identity_user(&s->who),
		.address = fabric_chan_peer(control_chan(link_control(s->link))),
		.export_name = export_name,
	};
}

/* Whether a session has the rule's limit together with those who have this key. */
static bool shares(const struct limit_rule *r, const struct limit_rule *rules, unsigned count,
	const struct limit_facts *facts, const char *key)
{
	char its[LIMIT_KEY_MAX];

	if (limit_rule_choose(rules, count, r->conditions, LIMIT_SESSIONS, facts) != r)
		return false;
	limit_rule_key(r, facts, its);
	return !strcmp(its, key);
}

static bool has_logged_in(const struct daemon_session *s)
{
	return s->view && !(s->state & SESSION_HALF_OPEN);
}

static const struct limit_rule *rule_for(
	const struct daemon_settings *settings, unsigned mask, const struct limit_facts *facts)
{
	const struct limit_rule *r = limit_rule_choose(
		settings->limits, settings->limit_count, mask, LIMIT_SESSIONS, facts);

	return r && r->values[LIMIT_SESSIONS] != LIMIT_NONE ? r : NULL;
}

const struct limit_rule *session_limits_login(
	const struct daemon *d, const char *user, const struct sockaddr *from)
{
	const struct daemon_settings *settings = d->settings;
	const struct limit_facts facts = {.user = user, .address = from};

	for (unsigned mask = 0; settings->limit_count && mask < LIMIT_MASKS; mask++) {
		const struct limit_rule *r =
			mask & LIMIT_EXPORT ? NULL : rule_for(settings, mask, &facts);
		const struct daemon_session *s;
		char key[LIMIT_KEY_MAX];
		uint64_t n = 0;

		if (!r)
			continue;
		limit_rule_key(r, &facts, key);
		TAILQ_FOREACH(s, &d->sessions, entry)
		{
			const struct limit_facts other = facts_of(s, NULL);

			n += has_logged_in(s) &&
			     shares(r, settings->limits, settings->limit_count, &other, key);
		}
		if (n >= r->values[LIMIT_SESSIONS])
			return r;
	}
	return NULL;
}

/* How many exports of a rule's limit a session uses: more than one counts as one. */
static bool uses(const struct daemon_session *s, const struct limit_rule *r, const char *key)
{
	const struct daemon_settings *settings = s->daemon->settings;

	for (unsigned i = 0; has_logged_in(s) && i < s->view->count; i++) {
		const struct limit_facts facts = facts_of(s, s->view->entries[i].name);

		if (s->view->entries[i].is_used &&
			shares(r, settings->limits, settings->limit_count, &facts, key))
			return true;
	}
	return false;
}

static const struct limit_rule *refusal(
	const struct daemon_session *s, const struct view_entry *entry)
{
	const struct daemon_settings *settings = s->daemon->settings;
	const struct limit_facts facts = facts_of(s, entry->name);

	for (unsigned mask = 0; settings->limit_count && mask < LIMIT_MASKS; mask++) {
		const struct limit_rule *r =
			mask & LIMIT_EXPORT ? rule_for(settings, mask, &facts) : NULL;
		const struct daemon_session *other;
		char key[LIMIT_KEY_MAX];
		uint64_t n = 0;

		if (!r)
			continue;
		limit_rule_key(r, &facts, key);
		TAILQ_FOREACH(other, &s->daemon->sessions, entry)
		n += other != s && uses(other, r, key);
		if (n >= r->values[LIMIT_SESSIONS])
			return r;
	}
	return NULL;
}

int session_limits_find(struct daemon_session *s, const char *path, const struct view_entry **out,
	const char **beneath)
{
	int err = view_find(s->view, path, out, beneath);
	const struct limit_rule *rule;

	if (err || (*out)->is_used)
		return err;
	rule = refusal(s, *out);
	if (rule) {
		session_log(s, LOG_LEVEL_WARNING,
			"may not use the export %s: there are as many sessions as may be (limit = "
			"%.200s)",
			(*out)->export->label, rule->text);
		audit_write(&s->daemon->audit, &(struct audit_event){.event = "refused",
						       .session = s->number,
						       .peer = s->peer,
						       .user = daemon_session_user(s),
						       .export_name = (*out)->name,
						       .path = *beneath,
						       .status = STATUS_LIMIT,
						       .text = rule->text});
		return -EUSERS;
	}
	s->view->entries[*out - s->view->entries].is_used = true;
	return 0;
}
