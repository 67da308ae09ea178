/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/soft/soft: opens and closes the soft fabric: its configuration, its threads, its table.
 */
#include "fabric/soft/soft.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric/soft/soft_impl.h"

#define THREADS_MAX 64u
#define THREADS_DEFAULT_MAX 2u
#define HANDSHAKE_MS_DEFAULT 10000u
#define HANDSHAKES_DEFAULT 4096u

static void soft_close(struct fabric *fabric)
{
	struct soft *soft = (struct soft *)fabric;

	for (unsigned i = 0; i < soft->thread_count; i++)
		soft_thread_stop(&soft->threads[i]);
	/* Only now: a thread may hand what it accepts to any other. */
	for (unsigned i = 0; i < soft->thread_count; i++)
		soft_thread_fini(&soft->threads[i]);
	free(soft);
}

static const struct fabric_ops soft_ops = {
	.name = "soft",
	.close = soft_close,
	.eq_new = soft_eq_new,
	.eq_free = soft_eq_free,
	.eq_fd = soft_eq_fd,
	.eq_get = soft_eq_get,
	.listen = soft_listen,
	.listener_addr = soft_listener_addr,
	.listener_free = soft_listener_free,
	.dial = soft_dial,
	.chan_reach = soft_chan_reach,
	.chan_setup = soft_chan_setup,
	.chan_connect = soft_chan_connect,
	.chan_accept = soft_chan_accept,
	.chan_reject = soft_chan_reject,
	.chan_disconnect = soft_chan_disconnect,
	.chan_free = soft_chan_free,
	.chan_describe = soft_chan_describe,
	.pd_new = soft_pd_new,
	.pd_free = soft_pd_free,
	.mr_new = soft_mr_new,
	.mr_free = soft_mr_free,
	.mr_watch = soft_mr_watch,
	.mr_rekey = soft_mr_rekey,
	.cq_new = soft_cq_new,
	.cq_free = soft_cq_free,
	.cq_poll = soft_cq_poll,
	.cq_arm = soft_cq_arm,
	.cq_fd = soft_cq_fd,
	.cq_ack = soft_cq_ack,
	.post_send = soft_chan_post_send,
	.post_recv = soft_chan_post_recv,
};

static struct soft_config config_fill(const struct soft_config *given)
{
	struct soft_config config = {0};

	if (given)
		config = *given;
	if (!config.threads) {
		/* The other half of the CPUs is for those who fill and drain the memory. */
		config.threads = worker_cpus() / 2;
		if (config.threads > THREADS_DEFAULT_MAX)
			config.threads = THREADS_DEFAULT_MAX;
		if (!config.threads)
			config.threads = 1;
	}
	if (config.threads > THREADS_MAX)
		config.threads = THREADS_MAX;
	if (!config.handshake_ms)
		config.handshake_ms = HANDSHAKE_MS_DEFAULT;
	if (!config.max_handshakes)
		config.max_handshakes = HANDSHAKES_DEFAULT;
	return config;
}

int soft_open(const struct soft_config *given, struct fabric **out)
{
	const struct soft_config config = config_fill(given);
	struct soft *soft;
	int err;

	soft = calloc(1, sizeof(*soft) + config.threads * sizeof(soft->threads[0]));
	if (!soft)
		return -ENOMEM;
	soft->base.ops = &soft_ops;
	soft->config = config;
	soft->half_open_max = (config.max_handshakes + config.threads - 1) / config.threads;
	for (unsigned i = 0; i < config.threads; i++) {
		err = soft_thread_start(&soft->threads[i], soft);
		if (err)
			goto err_threads;
		soft->thread_count++;
	}
	*out = &soft->base;
	return 0;

err_threads:
	soft_close(&soft->base);
	return err;
}
