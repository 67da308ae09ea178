/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/passwd: see passwd.h.
 */
#include "rftpd/passwd.h"

#include "base/log.h"
#include "base/secret.h"
#include "proto/message.h"
#include "proto/message_login.h"
#include "rftpd/auth/users_file.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PASSWORD_BYTES (MESSAGE_LOGIN_PASSWORD_MAX + 1)

static const char usage[] = "usage: rftpd passwd [-d] USER --users FILE";

struct asked {
	bool delete;
	const char *user, *file;
};

static int parse(int argc, char **argv, struct asked *a)
{
	static const struct option options[] = {
		{"delete", no_argument, NULL, 'd'}, {"users", required_argument, NULL, 'u'}, {0}};
	int c;

	*a = (struct asked){.delete = false};
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, "d", options, NULL)) != -1)
		if (c == 'd')
			a->delete = true;
		else if (c == 'u')
			a->file = optarg;
		else
			return -EINVAL;
	if (optind != argc - 1 || !a->file)
		return -EINVAL;
	a->user = argv[optind];
	return 0;
}

static int ask_twice(char password[PASSWORD_BYTES])
{
	char again[PASSWORD_BYTES];
	int err = secret_ask("New password: ", -1, password, PASSWORD_BYTES);

	if (!err)
		err = secret_ask("Once more: ", -1, again, sizeof again);
	if (!err && strcmp(password, again) != 0) {
		log_error("passwd: the two are not the same");
		err = -EKEYREJECTED;
	}
	explicit_bzero(again, sizeof again);
	return err;
}

/* From the terminal where a person sits there, else a line of standard input. */
static int read_password(char password[PASSWORD_BYTES])
{
	int err = isatty(STDIN_FILENO)
			  ? ask_twice(password)
			  : secret_read_line(STDIN_FILENO, -1, password, PASSWORD_BYTES);

	if (err && err != -EKEYREJECTED)
		log_error("passwd: no password: %s", err == -ENODATA ? "it is empty"
						     : err == -E2BIG ? "it is too long"
								     : strerror(-err));
	return err;
}

int passwd_run(int argc, char **argv)
{
	char password[PASSWORD_BYTES] = "", hash[USERS_HASH_MAX], why[USERS_WHY_MAX];
	struct asked a;
	int err = parse(argc, argv, &a);

	if (err) {
		log_error("%s", usage);
		return err;
	}
	if (!users_name_ok(a.user)) {
		log_error("passwd: \"%.100s\" can be no user's name: no blanks, slashes or colons, "
			  "and "
			  "no -, @ or # first",
			a.user);
		return -EINVAL;
	}
	if (!a.delete) {
		err = read_password(password);
		if (err)
			return err;
		err = users_hash(password, hash);
		explicit_bzero(password, sizeof password);
		if (err) {
			log_error("passwd: no hash can be made: %s", strerror(-err));
			return err;
		}
	}
	err = users_set(a.file, a.user, a.delete ? NULL : hash, why);
	if (err)
		log_error("passwd: %s", why);
	return err;
}
