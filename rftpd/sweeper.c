/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/sweeper: see sweeper.h.
 */
#include "rftpd/sweeper.h"

#include "base/log.h"
#include "tree/temporary.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SWEEPER_PERIOD_S (24 * 60 * 60)
/* linux/ioprio.h, which not every libc's kernel headers have */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE (3 << 13)

static void be_modest(void)
{
	/* of this thread alone; where it is not allowed it is as quick as others */
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE) < 0 ||
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19))
		log_debug("sweeping is not of low priority");
}

static void sweep(struct sweeper *s)
{
	struct temporary_swept swept = {0};
	int err = temporary_sweep_tree(s->top, s->keep_s, &s->stop, &swept);

	if (err)
		log_warning("looking for files that were left behind: %s", strerror(-err));
	if (swept.files)
		log_info("removed %" PRIu64 " temporary file%s of transfers that were cut off: "
			 "%" PRIu64 " bytes",
			swept.files, swept.files == 1 ? "" : "s", swept.bytes);
}

static void run(void *arg)
{
	struct sweeper *s = arg;

	be_modest();
	while (!atomic_load(&s->stop)) {
		struct timespec until;

		sweep(s);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SWEEPER_PERIOD_S;
		pthread_mutex_lock(&s->lock);
		while (!atomic_load(&s->stop) &&
			!pthread_cond_timedwait(&s->wake, &s->lock, &until))
			;
		pthread_mutex_unlock(&s->lock);
	}
}

void sweeper_start(struct sweeper *s, int top, uint64_t keep_s)
{
	s->top = top;
	s->keep_s = keep_s;
	atomic_init(&s->stop, false);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	if (worker_start(&s->worker, "sweeper", run, s)) {
		log_warning("no thread to look for files that were left behind");
		pthread_cond_destroy(&s->wake);
		pthread_mutex_destroy(&s->lock);
	}
}

void sweeper_stop(struct sweeper *s)
{
	if (!s->worker.started)
		return;
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->stop, true);
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	worker_stop(&s->worker);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
}
