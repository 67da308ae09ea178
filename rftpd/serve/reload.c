/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/reload: see reload.h.
 *
 * Owns the exports that were replaced.
 */
#include "rftpd/serve/reload.h"

#include "base/clock.h"
#include "rftpd/jobs/job_turns.h"
#include "rftpd/auth/login.h"
#include "rftpd/jobs/task_pool.h"
#include "rftpd/notify.h"
#include "rftpd/serve/daemon_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- exports ---- */

static struct exports *of_task(struct task *task)
{
	return (struct exports *)((char *)task - offsetof(struct exports, closing));
}

static void run_close(struct task *task)
{
	exports_close(of_task(task));
}

static void free_closed(struct task *task)
{
	exports_free(of_task(task));
}

/* Its sweeper may be in the middle of a file system that does not answer: not in the loop. */
void reload_tidy(struct daemon *d)
{
	struct exports *e, *next;

	for (e = SLIST_FIRST(&d->replaced); e; e = next) {
		next = SLIST_NEXT(e, entry);
		if (e->references)
			continue;
		e->closing = (struct task){.run = run_close, .done = free_closed};
		if (!task_pool_start(d->tasks, &e->closing, clock_now_ns()))
			SLIST_REMOVE(&d->replaced, e, exports, entry);
	}
}

static int replace_exports(struct daemon *d, const struct daemon_settings *settings)
{
	struct exports *e;
	int err;

	if (!d->exports || exports_are(d->exports, settings)) /* NULL: the daemon ends */
		return 0;
	err = exports_open(settings, &e);
	if (err)
		return err;
	if (!exports_are_within(e, &d->sandbox)) {
		exports_close(e);
		exports_free(e);
		return -EXDEV;
	}
	exports_sweep(e, settings->keep_partial_s);
	d->exports->references--;
	SLIST_INSERT_HEAD(&d->replaced, d->exports, entry);
	d->exports = e;
	return 0;
}

/* ---- settings ---- */

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void waits(char list[CONF_WHY_MAX], const char *what)
{
	size_t len = strlen(list);

	log_warning("reload: %s is another now: that needs a new start", what);
	snprintf(list + len, CONF_WHY_MAX - len, "%s%s", len ? ", " : "", what);
}

/* Logs what is not as the daemon started with it, and is not used, and lists it. */
static void say_what_waits(const struct daemon_settings *now, const struct daemon_settings *next,
	char list[CONF_WHY_MAX])
{
	bool listen = now->listen_count == next->listen_count;

	for (unsigned i = 0; listen && i < now->listen_count; i++)
		listen = !strcmp(now->listen[i], next->listen[i]);
	if (!listen || now->insecure != next->insecure)
		waits(list, "listen");
	if (!is_same_text(now->fabric, next->fabric) || now->crc != next->crc)
		waits(list, "fabric or crc");
	if (now->sandbox != next->sandbox || now->require_sandbox != next->require_sandbox)
		waits(list, "sandbox");
	if (now->system_users != next->system_users ||
		!is_same_text(now->pam_service, next->pam_service) ||
		!is_same_text(now->user, next->user))
		waits(list, "system-users");
	if (!is_same_text(now->control, next->control) ||
		!is_same_text(now->metrics, next->metrics))
		waits(list, "control or metrics");
	if (!is_same_text(now->client_ca, next->client_ca))
		waits(list, "client-ca");
	if (!is_same_text(now->host_key, next->host_key) ||
		!is_same_text(now->certificate, next->certificate))
		waits(list, "host-key or certificate");
}

static void use_limits(struct daemon *d)
{
	struct admission_limits limits;
	struct budget total;

	log_setup("rftpd", d->settings->log_level);
	quotas_use(d);
	limits_change(&d->limits, d->settings->limits, d->settings->limit_count);
	daemon_budget(d->settings, &total);
	scheduler_resize(&d->scheduler, &total, d->settings->stall_timeout_s * NS_PER_S);
	atomic_store(&d->areas.most_bytes, daemon_settings_early_memory(d->settings));
	daemon_settings_admission(d->settings, &limits);
	admission_change(&d->admission, &limits, clock_now_ns());
	job_turns_check(d->settings);
	deadline_list_change(&d->handshakes, d->settings->handshake_timeout_s * NS_PER_S);
	deadline_list_change(&d->logins, d->settings->login_timeout_s * NS_PER_S);
	deadline_list_change(&d->idle, d->settings->idle_timeout_s * NS_PER_S);
}

int reload_limit(struct daemon *d, const char *name, const char *value, char why[CONF_WHY_MAX])
{
	int err = daemon_settings_set_limit(&d->configuration->options.settings, name, value, why);

	if (!err)
		use_limits(d);
	return err;
}

/* Takes the settings over; they are freed on error, too. */
static int reload_use(struct daemon *d, struct daemon_settings *settings, char why[CONF_WHY_MAX])
{
	bool exports_failed = false;
	int err = login_check_settings(settings, false);

	*why = '\0';
	if (!err && daemon_settings_is_open(settings) && !settings->insecure &&
		!daemon_settings_is_open(d->settings)) {
		log_error("reload: nobody would have to log in any more: that needs a new start");
		err = -EINVAL;
	}
	if (!err)
		exports_failed = (err = replace_exports(d, settings));
	if (err) {
		if (exports_failed && d->sandbox.files)
			snprintf(why, CONF_WHY_MAX,
				"an export cannot be opened from within the sandbox: one that is "
				"not there yet needs a new start");
		else
			snprintf(why, CONF_WHY_MAX,
				"exports or logins cannot be used; the log says why");
		daemon_settings_fini(settings);
		return err;
	}
	say_what_waits(configuration_first(d->configuration), settings, why);
	configuration_replace(d->configuration, settings);
	use_limits(d);
	reload_tidy(d);
	return 0;
}

/* ---- logs ---- */

static void open_log_anew(const char *file)
{
	int err = log_to_file(file);

	if (err)
		log_error("log-file %s: %s", file, strerror(-err));
}

static bool has_same_logs(const struct daemon_settings *a, const struct daemon_settings *b)
{
	return is_same_text(a->log_file, b->log_file) && is_same_text(a->audit_log, b->audit_log) &&
	       is_same_text(a->xferlog, b->xferlog);
}

static void open_logs(struct daemon *d, bool log_file)
{
	if (log_file)
		open_log_anew(d->settings->log_file);
	audit_use(&d->audit.json, d->settings->audit_log);
	audit_use(&d->audit.xferlog, d->settings->xferlog);
}

/* Whether a file of another name can be written: the one that is there is not left for it before
 * all else is known to be right. */
static int try_log(const char *what, const char *now, const char *next, char why[CONF_WHY_MAX])
{
	int fd;

	if (!next || is_same_text(now, next) || !strcmp(next, "stderr"))
		return 0;
	fd = log_open(next);
	if (fd < 0) {
		snprintf(why, CONF_WHY_MAX, "%s %.200s: %s", what, next, strerror(-fd));
		return fd;
	}
	close(fd);
	return 0;
}

static int try_logs(const struct daemon_settings *now, const struct daemon_settings *next,
	char why[CONF_WHY_MAX])
{
	int err = try_log("log-file", now->log_file, next->log_file, why);

	if (!err)
		err = try_log("audit-log", now->audit_log, next->audit_log, why);
	return err ? err : try_log("xferlog", now->xferlog, next->xferlog, why);
}

/* ---- all of it ---- */

int reload(struct daemon *d, char why[CONF_WHY_MAX])
{
	struct daemon_settings settings;
	bool others = false, log_file = false;
	char state[80];
	int err;

	snprintf(
		state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ns() / 1000);
	notify_send(state);
	open_logs(d, d->settings->log_file); /* somebody may have renamed them */
	err = configuration_reread(d->configuration, &settings, why);
	if (!err) {
		others = !has_same_logs(d->settings, &settings);
		log_file = !is_same_text(d->settings->log_file, settings.log_file);
		err = try_logs(d->settings, &settings, why);
		if (err)
			daemon_settings_fini(&settings);
		else
			err = reload_use(d, &settings, why);
	}
	if (!err && others)
		open_logs(d, log_file);
	if (err)
		log_error("reload: %s; all stays as it was", why);
	else
		log_info(
			"reload: the configuration is in use; %u sessions go on", d->session_count);
	notify_send("READY=1");
	return err;
}
