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
#include "rftpd/detach.h"
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

/* In the process that serves.  `detach_fd` -1: stays in the foreground. */
static int serve(const struct daemon_settings *settings, int detach_fd)
{
	struct pid_file pid_file = {.fd = -1};
	struct daemon d;
	int r = daemon_init(&d, settings);
	int code = r ? failure_code(r) : CODE_FAILED;

	if (r)
		goto out;
	if (settings->pid_file) {
		r = pid_file_open(&pid_file, settings->pid_file);
		if (r) {
			log_error("pid-file %s: %s", settings->pid_file,
				r == -EEXIST ? "another rftpd holds it" : strerror(-r));
			goto out;
		}
	}
	r = listen_announce(&d, stdout);
	if (!r && detach_fd >= 0)
		r = detach_finish(detach_fd);
	if (r) {
		log_error("cannot say that it is ready: %s", strerror(-r));
		goto out;
	}
	r = daemon_run(&d);
	code = r && r != -ETIMEDOUT ? CODE_FAILED : CODE_OK;
	if (r) { /* threads still use what daemon_fini would free */
		pid_file_close(&pid_file);
		_exit(code);
	}
out:
	pid_file_close(&pid_file);
	daemon_fini(&d);
	return code;
}

int main(int argc, char **argv)
{
	struct daemon_options options;
	char why[CONF_WHY_MAX];
	int detach_fd = -1, code = CODE_USAGE, r;

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
	if (!r && !options.settings.foreground) {
		r = detach_start(&detach_fd, &code);
		if (r == 1)
			goto out;
	}
	if (r) {
		log_error("cannot start: %s", strerror(-r));
		goto out;
	}
	limit_raise_files();
	code = serve(&options.settings, detach_fd);
out:
	daemon_options_fini(&options);
	return code;
}
