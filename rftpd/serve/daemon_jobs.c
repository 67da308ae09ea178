/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/daemon_jobs: see daemon_jobs.h.
 *
 * Owns the daemon's list of jobs that have something to tell, and its lock.
 */
#include "rftpd/serve/daemon_jobs.h"

#include "rftpd/jobs/job_lease.h"
#include "rftpd/jobs/transfer_job.h"
#include "rftpd/serve/daemon_session.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void tell(struct daemon *d, struct transfer_job *job, bool *what)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&d->told_lock);
	*what = true;
	if (!job->is_told)
		TAILQ_INSERT_TAIL(&d->told_jobs, job, told_entry);
	job->is_told = true;
	pthread_mutex_unlock(&d->told_lock);
	if (write(d->told_fd, &one, sizeof one) <
		0) /* full would mean that it is readable anyway */
		log_error("eventfd: %s", strerror(errno));
}

void daemon_jobs_finished(struct daemon *d, struct transfer_job *job)
{
	tell(d, job, &job->is_over);
}

void daemon_jobs_released(struct daemon *d, struct transfer_job *job)
{
	tell(d, job, &job->is_released);
}

void daemon_jobs_want_turn(struct daemon *d, struct transfer_job *job)
{
	tell(d, job, &job->wants_turn);
}

void daemon_jobs_copied(struct daemon *d, struct transfer_job *job)
{
	tell(d, job, &job->has_news);
}

static void take_told(void *owner)
{
	struct daemon *d = owner;
	struct transfer_job *job;
	uint64_t count;

	if (read(d->told_fd, &count, sizeof count) < 0)
		return;
	for (;;) {
		bool is_over = false, is_released = false, wants_turn = false, has_news = false;

		pthread_mutex_lock(&d->told_lock);
		job = TAILQ_FIRST(&d->told_jobs);
		if (job) {
			TAILQ_REMOVE(&d->told_jobs, job, told_entry);
			job->is_told = false;
			is_over = job->is_over;
			is_released = job->is_released;
			wants_turn = job->wants_turn;
			has_news = job->has_news;
			job->is_released = job->wants_turn = job->has_news = false;
		}
		pthread_mutex_unlock(&d->told_lock);
		if (!job)
			return;
		if (is_over) {
			session_transfers_finished(job);
			continue;
		}
		if (is_released)
			job_lease_reduce(job);
		if (wants_turn)
			job_turns_again(job);
		if (has_news)
			session_transfers_copied(job);
	}
}

int daemon_jobs_watch(struct daemon *d)
{
	d->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->told_fd < 0)
		return -errno;
	return poller_add(&d->poller, &d->told, d->told_fd, take_told, d);
}
