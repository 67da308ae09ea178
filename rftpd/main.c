/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/main: from the command line to an exit code.
 *
 * The only place of the daemon that knows exit codes: 0; 1: it could not serve, or not go on; 2:
 * the command line or the configuration is wrong.
 */
#include "base/limit.h"
#include "base/standard.h"
#include "proto/message_login.h"
#include "session/tls.h"
#include "rftpd/auth/monitor.h"
#include "rftpd/configuration.h"
#include "rftpd/confine/lookup_process.h"
#include "rftpd/serve/daemon.h"
#include "rftpd/notify.h"
#include "rftpd/passwd.h"
#include "rftpd/serve/listen.h"
#include "rftpd/serve/once.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_OK = 0, CODE_FAILED = 1, CODE_USAGE = 2 };

/* One more signal while sessions are being ended. */
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
		sigaction(SIGINT, &now, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0 ||
		/* a file over a limit (ulimit -f) is its session's error, and not the end of all */
		sigaction(SIGXFSZ, &ignore, NULL) < 0)
		return -errno;
	return 0;
}

static int failure_code(int error)
{
	return error == -EINVAL ? CODE_USAGE : CODE_FAILED;
}

/* Says on standard output that it serves. */
static int announce(struct daemon *d)
{
	const uint8_t *once_key = d->settings->once_key;

	return once_key ? once_begin(d, once_key, stdout) : listen_announce(d, stdout);
}

static int serve(struct configuration *configuration)
{
	struct daemon d;
	int err = daemon_init(&d, &configuration->options.settings, configuration->options.config);
	int code = err ? failure_code(err) : CODE_FAILED;

	if (err)
		goto out;
	d.configuration = d.settings->once_key ? NULL : configuration;
	err = announce(&d);
	if (err) {
		log_error("cannot say that it is ready: %s", strerror(-err));
		goto out;
	}
	notify_send("READY=1");
	err = daemon_run(&d);
	code = err && err != -ETIMEDOUT ? CODE_FAILED : CODE_OK;
	if (err) /* threads still use what daemon_fini would free */
		_exit(code);
out:
	daemon_fini(&d);
	return code;
}

/* Where messages go from now on: they are no longer for somebody who waits for an answer. */
static int start_log(const struct daemon_settings *settings)
{
	int err = settings->log_file ? log_to_file(settings->log_file) : 0;

	if (err) {
		log_error("log-file %s: %s", settings->log_file, strerror(-err));
		return err;
	}
	log_stamp(true);
	if (!settings->log_file && log_to_journal(NULL) && getenv("JOURNAL_STREAM"))
		log_debug("the journal is reached as standard error only");
	return 0;
}

int main(int argc, char **argv)
{
	struct configuration configuration;
	const struct daemon_options *options = &configuration.options;
	char why[CONF_WHY_MAX];
	int code = CODE_USAGE, err;

	if (standard_fill())
		exit(CODE_FAILED);
	tls_outlive_exit();
	log_setup("rftpd", LOG_LEVEL_INFO);
	if (argc > 1 && !strcmp(argv[1], "passwd")) {
		err = passwd_run(argc - 1, argv + 1);
		return err ? failure_code(err) : CODE_OK;
	}
	err = configuration_load(&configuration, argc, argv, why);
	if (err) {
		log_error("%s%s", why, options->config ? "" : " (rftpd --help shows the options)");
		goto out;
	}
	if (options->action == DAEMON_ACTION_HELP || options->action == DAEMON_ACTION_VERSION) {
		if (options->action == DAEMON_ACTION_HELP)
			daemon_options_usage(stdout);
		else
			puts("rftpd " RFTP_VERSION);
		code = fflush(stdout) ? CODE_FAILED : CODE_OK;
		goto out;
	}
	log_setup("rftpd", options->settings.log_level);
	if (options->action == DAEMON_ACTION_TEST) {
		code = daemon_check(&options->settings) ? CODE_USAGE : CODE_OK;
		goto out;
	}
	if (options->action == DAEMON_ACTION_ONCE) {
		static uint8_t once_key[MESSAGE_LOGIN_ONCE_BYTES];

		/* its messages come to the terminal of who copies: they say what is wrong */
		if (options->settings.log_level == LOG_LEVEL_INFO)
			log_setup("rftpd", LOG_LEVEL_WARNING);
		err = once_prepare(&configuration.options.settings, once_key);
		code = err ? failure_code(err) : CODE_FAILED;
		if (err)
			goto out;
	}
	err = monitor_start(&options->settings);
	if (!err && options->settings.sandbox)
		err = lookup_process_start();
	if (err) {
		code = failure_code(err);
		goto out;
	}
	code = CODE_FAILED;
	if (options->action != DAEMON_ACTION_ONCE && start_log(&options->settings))
		goto out;
	err = prepare_signals();
	if (err) {
		log_error("cannot start: %s", strerror(-err));
		goto out;
	}
	limit_raise_files();
	code = serve(&configuration);
out:
	configuration_fini(&configuration);
	return code;
}
