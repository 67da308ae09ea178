/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/main: from the command line to an exit code.
 *
 * The only place of the daemon that knows exit codes: 0; 1: it could not serve, or not go on; 2:
 * the command line or the configuration is wrong.
 */
#include "base/limit.h"
#include "rftpd/conf.h"
#include "rftpd/serve/daemon.h"
#include "rftpd/daemon_options.h"
#include "rftpd/notify.h"
#include "rftpd/serve/listen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CODE_OK = 0, CODE_FAILED = 1, CODE_USAGE = 2 };

static int set_from_file(void *ctx, const char *name, const char *value, char *why)
{
	return daemon_settings_set(ctx, DAEMON_ORIGIN_FILE, name, value, why);
}

/* A second signal while sessions are being ended. */
static void end_at_once(int number)
{
	(void)number;
	_exit(CODE_FAILED);
}

/* Before any thread exists: they inherit the mask, and the loop reads the signals from a
 * descriptor. */
static int prepare_signals(void)
{
	struct sigaction now = {.sa_handler = end_at_once}, ignore = {.sa_handler = SIG_IGN};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigaction(SIGTERM, &now, NULL) < 0 ||
		sigaction(SIGINT, &now, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
		return -errno;
	return 0;
}

static int failure_code(int error)
{
	return error == -EINVAL ? CODE_USAGE : CODE_FAILED;
}

static int serve(const struct daemon_settings *settings)
{
	struct daemon d;
	int r = daemon_init(&d, settings);
	int code = r ? failure_code(r) : CODE_FAILED;

	if (r)
		goto out;
	r = listen_announce(&d, stdout);
	if (r) {
		log_error("cannot say that it is ready: %s", strerror(-r));
		goto out;
	}
	notify_send("READY=1");
	r = daemon_run(&d);
	code = r && r != -ETIMEDOUT ? CODE_FAILED : CODE_OK;
	if (r) /* threads still use what daemon_fini would free */
		_exit(code);
out:
	daemon_fini(&d);
	return code;
}

int main(int argc, char **argv)
{
	struct daemon_options options;
	char why[CONF_WHY_MAX];
	int code = CODE_USAGE, r;

	log_setup("rftpd", LOG_LEVEL_INFO);
	r = daemon_options_parse(&options, argc, argv, why);
	if (r) {
		log_error("%s (rftpd --help shows the options)", why);
		goto out;
	}
	if (options.action == DAEMON_ACTION_HELP || options.action == DAEMON_ACTION_VERSION) {
		if (options.action == DAEMON_ACTION_HELP)
			daemon_options_usage(stdout);
		else
			puts("rftpd " RFTP_VERSION);
		code = fflush(stdout) ? CODE_FAILED : CODE_OK;
		goto out;
	}
	if (options.config && conf_load(options.config, set_from_file, &options.settings, why)) {
		log_error("%s", why);
		goto out;
	}
	log_setup("rftpd", options.settings.log_level);
	if (options.action == DAEMON_ACTION_TEST) {
		code = daemon_check(&options.settings) ? CODE_USAGE : CODE_OK;
		goto out;
	}
	code = CODE_FAILED;
	r = prepare_signals();
	if (r) {
		log_error("cannot start: %s", strerror(-r));
		goto out;
	}
	limit_raise_files();
	code = serve(&options.settings);
out:
	daemon_options_fini(&options);
	return code;
}
