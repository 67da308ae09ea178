/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/job_limits: see job_limits.h.
 */
#include "rftpd/jobs/job_limits.h"

#include "rftpd/jobs/transfer_job.h"

int job_limits_take(struct transfer_job *job)
{
	const struct daemon_session *s = job->session;
	const struct daemon_settings *settings = s->daemon->settings;
	const struct limit_facts facts = {
		.user = identity_user(&s->who),
		.address = fabric_chan_peer(control_chan(link_control(s->link))),
		.export_name = job->entry->name,
	};
	int err = limits_take(
		&s->daemon->limits, settings->limits, settings->limit_count, &facts, &job->limits);

	for (unsigned i = 0; !err && i < job->limits.count; i++)
		job->lease.purses[job->lease.purse_count++] = &job->limits.shared[i]->purse;
	if (!err && job->limits.rate != METER_ENDLESS)
		err = job_turns_bound(job, &job->limits);
	return err;
}

void job_limits_give(struct transfer_job *job)
{
	limits_give(&job->session->daemon->limits, &job->limits);
}
