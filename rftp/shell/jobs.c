/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/jobs.c: owns the jobs, their threads and their clients.
 */
#include "rftp/shell/jobs.h"

#include "base/wakeup.h"
#include "base/worker.h"
#include "rftp/shell/commands.h"
#include "rftp/shell/interrupt.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/units.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

struct job {
	TAILQ_ENTRY(job) entry;
	struct jobs *jobs;
	unsigned number; /* for people */
	struct client client;
	struct lexer_command line;
	struct worker worker;
	sem_t begun;
	int error;
	_Atomic bool over;
};

struct jobs {
	TAILQ_HEAD(job_list, job) list;
	int over_fd; /* eventfd: one is over */
};

struct jobs *jobs_new(void)
{
	struct jobs *j = calloc(1, sizeof *j);

	if (!j)
		return NULL;
	TAILQ_INIT(&j->list);
	j->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return j;
}

/* ---- one ---- */

static void job_run(void *arg)
{
	struct job *job = arg;
	const uint64_t one = 1;

	/* `lcd` is the shell's; a thread that shares its directory no more stays where it is */
	job->error = unshare(CLONE_FS) ? -errno : 0;
	sem_post(&job->begun);
	client_lock(&job->client);
	if (job->error)
		report_errorf(&job->client.report, job->error, NULL, "unshare: %s",
			strerror(-job->error));
	else
		job->error = command_run(&job->client, &job->line);
	report_flush(&job->client.report);
	client_unlock(&job->client);
	job->over = true;
	if (write(job->jobs->over_fd, &one, sizeof one) < 0) {
		/* the counter is full: it is readable all the same */
	}
}

static void job_text(const struct job *job, struct text *out)
{
	for (size_t i = 0; i < job->line.count; i++) {
		if (i)
			text_putc(out, ' ');
		escape_display(out, job->line.words[i].text, strlen(job->line.words[i].text));
	}
}

static void job_tell(const struct job *job, struct client *c, const char *state)
{
	struct text line = {0}, command = {0};
	char bytes[UNITS_TEXT_MAX];

	job_text(job, &command);
	if (report_json(&c->report)) {
		report_json_begin(&line, "job");
		report_json_number(&line, "job", job->number);
		report_json_string(&line, "state", state);
		report_json_number(&line, "moved_bytes", job->client.moved_bytes);
		report_json_bytes(&line, "command", text_str(&command), command.len);
		report_json_end(&c->report, &line);
	} else {
		units_format_amount(job->client.moved_bytes, bytes);
		text_printf(
			&line, "[%u] %s, %s: %s\n", job->number, state, bytes, text_str(&command));
		report_write(&c->report, text_str(&line), line.len);
		text_fini(&line);
	}
	text_fini(&command);
}

static void job_free(struct job *job)
{
	worker_stop(&job->worker);
	client_clone_fini(&job->client);
	lexer_command_fini(&job->line);
	sem_destroy(&job->begun);
	free(job);
}

/* ---- all ---- */

static struct job *jobs_find(struct jobs *j, unsigned number)
{
	struct job *job;

	TAILQ_FOREACH(job, &j->list, entry)
	if (job->number == number)
		return job;
	return NULL;
}

/* A number that transfers of the session may have, and none of them has; 0 is the shell's own. */
static unsigned jobs_free_transfer(const struct jobs *j, const struct client *c)
{
	for (unsigned n = 1; n < calls_info(c->session)->max_transfers; n++) {
		const struct job *job;

		TAILQ_FOREACH(job, &j->list, entry)
		if (job->client.session == c->session && job->client.transfer == n)
			break;
		if (!job)
			return n;
	}
	return 0;
}

int jobs_start(struct jobs *j, struct client *c, struct lexer_command *line)
{
	struct job *job, *last;
	unsigned transfer;
	int err;

	if (line->shell ||
		(strcmp(line->words[0].text, "get") && strcmp(line->words[0].text, "put"))) {
		report_usage(&c->report, "only get and put can run in the background (&)");
		return -EINVAL;
	}
	jobs_collect(j, c);
	if (!client_session(c))
		return -ENOTCONN;
	transfer = jobs_free_transfer(j, c);
	if (!transfer) {
		report_error(&c->report, EXIT_CODE_OK, STATUS_BUSY, line->words[0].text,
			"as many transfers run as the server lets a session have: wait for one");
		return -EBUSY;
	}
	job = calloc(1, sizeof *job);
	if (!job)
		return client_no_memory(c);
	job->jobs = j;
	last = TAILQ_LAST(&j->list, job_list);
	job->number = last ? last->number + 1 : 1;
	sem_init(&job->begun, 0, 0);
	err = client_clone(c, transfer, &job->client);
	if (err)
		goto err_job;
	job->client.report.job = job->number;
	job->line = *line;
	err = worker_start(&job->worker, "job", job_run, job);
	if (err) {
		report_errorf(&c->report, err, line->words[0].text, "no thread can be started: %s",
			strerror(-err));
		client_clone_fini(&job->client);
		goto err_job;
	}
	*line = (struct lexer_command){0};
	while (sem_wait(&job->begun) && errno == EINTR)
		;
	TAILQ_INSERT_TAIL(&j->list, job, entry);
	if (c->interactive)
		job_tell(job, c, "started");
	return 0;

err_job:
	sem_destroy(&job->begun);
	free(job);
	return err;
}

int jobs_collect(struct jobs *j, struct client *c)
{
	struct job *job, *next;
	uint64_t count;
	int err = 0;

	if (read(j->over_fd, &count, sizeof count) < 0 && errno != EAGAIN)
		return -errno;
	for (job = TAILQ_FIRST(&j->list); job; job = next) {
		next = TAILQ_NEXT(job, entry);
		if (!job->over)
			continue;
		TAILQ_REMOVE(&j->list, job, entry);
		if (c->interactive || report_json(&c->report))
			job_tell(job, c, job->error ? "failed" : "done");
		if (job->error && !job->line.ignore_error) {
			report_join(&c->report, &job->client.report);
			err = err ? err : job->error;
		}
		job_free(job);
	}
	return err;
}

void jobs_list(struct jobs *j, struct client *c)
{
	const struct job *job;

	TAILQ_FOREACH(job, &j->list, entry)
	job_tell(job, c, job->over ? job->error ? "failed" : "done" : "running");
}

int jobs_wait(struct jobs *j, struct client *c, unsigned number)
{
	int err = 0;

	if (number && !jobs_find(j, number)) {
		report_usage(&c->report, "there is no job %u", number);
		return -ENOENT;
	}
	while (number ? jobs_find(j, number) != NULL : !TAILQ_EMPTY(&j->list)) {
		struct pollfd fds[] = {
			{j->over_fd, POLLIN, 0},
			{interrupt_fd(), POLLIN, 0},
		};
		int failed;

		client_unlock(c); /* others have something to say meanwhile */
		poll(fds, 2, -1);
		client_lock(c);
		if (fds[1].revents)
			return -ECANCELED;
		failed = jobs_collect(j, c);
		err = err ? err : failed;
	}
	return err;
}

int jobs_kill(struct jobs *j, struct client *c, unsigned number)
{
	struct job *job = jobs_find(j, number);

	if (!job) {
		report_usage(&c->report, "there is no job %u", number);
		return -ENOENT;
	}
	client_cancel(&job->client);
	return 0;
}

void jobs_free(struct jobs *j, struct client *c)
{
	struct job *job;

	if (!j)
		return;
	if (!TAILQ_EMPTY(&j->list) && c->interactive)
		report_note(&c->report, "waiting for the jobs that run; Ctrl-C cancels them");
	if (jobs_wait(j, c, 0) == -ECANCELED)
		TAILQ_FOREACH(job, &j->list, entry)
	client_cancel(&job->client);
	client_unlock(c);
	while ((job = TAILQ_FIRST(&j->list))) {
		TAILQ_REMOVE(&j->list, job, entry);
		worker_stop(&job->worker);
		report_join(&c->report, &job->client.report);
		client_lock(c);
		job_free(job);
		client_unlock(c);
	}
	client_lock(c);
	close(j->over_fd);
	free(j);
}
