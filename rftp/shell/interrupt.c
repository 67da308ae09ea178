/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/interrupt.c: owns the signal handlers and their eventfd.
 */
#include "rftp/shell/interrupt.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* timeout(1) and some shells signal a process and then its group: that is one signal */
#define INTERRUPT_SAME_NS (NS_PER_S / 2)

static int interrupt_event = -1;
/* several threads may run the handler at a time */
static atomic_int interrupt_got;
/* the last one, also if it has been cleared, and when it came */
static atomic_int interrupt_last;
static _Atomic uint64_t interrupt_last_ns;

static void interrupt_handle(int sig)
{
	static const uint64_t one = 1;
	int saved = errno;

	if (sig == interrupt_last && clock_now_ns() - interrupt_last_ns < INTERRUPT_SAME_NS)
		goto out;
	if (interrupt_got) {
		/* blocked while the handler runs: takes effect on return */
		signal(sig, SIG_DFL);
		raise(sig);
	}
	interrupt_last_ns = clock_now_ns();
	interrupt_last = sig;
	interrupt_got = sig;
	if (write(interrupt_event, &one, sizeof one) < 0) {
		/* the counter is full: it is readable all the same */
	}
out:
	errno = saved;
}

int interrupt_init(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = interrupt_handle}; /* no SA_RESTART: waits end */
	struct sigaction old;

	interrupt_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (interrupt_event < 0)
		return -errno;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&sa.sa_mask, signals[i]);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		if (sigaction(signals[i], NULL, &old))
			return -errno;
		if (old.sa_handler == SIG_IGN) /* nohup, a background job: stays so */
			continue;
		if (sigaction(signals[i], &sa, NULL))
			return -errno;
	}
	signal(SIGPIPE, SIG_IGN); /* a closed stdout is an error that is reported */
	signal(SIGXFSZ, SIG_IGN); /* and so is a file over a limit (ulimit -f) */
	return 0;
}

int interrupt_fd(void)
{
	return interrupt_event;
}

int interrupt_signal(void)
{
	return interrupt_got;
}

void interrupt_clear(void)
{
	interrupt_last = 0;
	interrupt_answered();
}

void interrupt_answered(void)
{
	uint64_t count;

	interrupt_got = 0;
	if (interrupt_event >= 0 && read(interrupt_event, &count, sizeof count) < 0) {
		/* nothing had come */
	}
}
