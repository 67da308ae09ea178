/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_outcome: see job_outcome.h.
 */
#include "rftpd/jobs/job_outcome.h"

#include "base/clock.h"
#include "proto/status.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/session_log.h"

#include <inttypes.h>

/* That the path is beneath, where exports have names. */
static const char *export_of(const struct transfer_job *job, const struct outcome *o)
{
	return transfer_job_sends(job) ? o->place : job->error ? NULL : job->entry->name;
}

void job_outcome_audit(const struct transfer_job *job, const struct outcome *o)
{
	const struct daemon_session *s = job->session;

	audit_write(&s->daemon->audit,
		&(struct audit_event){.event = o->attributes                   ? "attributes"
					       : job->type == MESSAGE_STORE    ? "put"
					       : job->type == MESSAGE_RETRIEVE ? "get"
					       : job->copy                     ? "copy"
									       : "feed",
			.session = s->number,
			.peer = s->peer,
			.user = daemon_session_user(s),
			.export_name = export_of(job, o),
			.path = *o->path ? o->path : NULL,
			.to = job->copy ? job->copy->address : NULL,
			.moved = !o->attributes,
			.files = !o->status && !o->attributes,
			.bytes = o->bytes,
			.since_ns = job->stats.started_ns ? job->stats.started_ns : clock_now_ns(),
			.status = o->status,
			.text = o->text});
}

/* The path comes last: a long one is cut by the log, nothing else is. */
void job_outcome_tell(void *ctx, const struct outcome *o)
{
	struct transfer_job *job = ctx;
	const struct daemon_session *s = job->session;
	const char *verb = transfer_job_sends(job) ? "sent" : "stored";
	const char *of = export_of(job, o), *named = *o->path && of && *of ? of : NULL;
	/* as clients write it: with the export's name before it */
	const char *top = named ? "/" : "", *export_name = named ? named : "",
		   *slash = named && *o->path != '/' ? "/" : "";
	double seconds = (double)(clock_now_ns() - job->stats.started_ns) / 1e9;

	if (job->copy)
		copy_job_note(job, o);
	if (job->silent)
		return;
	if (o->special && !o->status) {
		session_log(s, LOG_LEVEL_INFO, "left out, a device, FIFO or socket: %s%s%s%s", top,
			export_name, slash, o->path);
		return;
	}
	if (o->status == STATUS_CHECKSUM || o->status == STATUS_DIGEST)
		job->verify_errors++;
	if (o->attributes && !o->status)
		session_log(s, LOG_LEVEL_INFO, "%s the attributes%s%.300s: %s%s%s%s", verb,
			*o->text ? ", but " : "", o->text, top, export_name, slash, o->path);
	else if (!o->status)
		session_log(s, LOG_LEVEL_INFO, "%s %" PRIu64 " bytes in %.3f s%s%.300s: %s%s%s%s",
			verb, o->bytes, seconds, *o->text ? ", but " : "", o->text, top,
			export_name, slash, *o->path ? o->path : "(memory)");
	else
		session_log(s, o->status == STATUS_THERE ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
			"not %s after %.3f s (%s%s%.300s): %s%s%s%s", verb, seconds,
			status_text(o->status), *o->text ? ": " : "", o->text, top, export_name,
			slash, *o->path ? o->path : "(memory)");
	job_outcome_audit(job, o);
}
