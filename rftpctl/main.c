/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpctl/main: asks a rftpd that runs here, over its local socket, and prints what it answers.
 *
 * Knows no command: they are the daemon's.  Exit codes: 0; 1: the daemon refused; 2: wrong use; 3:
 * no daemon was reached.
 */
#include "rftpd/control_path.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CODE_OK, CODE_REFUSED, CODE_USAGE, CODE_UNREACHED };

#define QUESTION_MAX 4096

static const char usage[] =
	"usage: rftpctl [-j] [-s SOCKET] COMMAND [ARGUMENT...]\n"
	"       rftpctl [-s SOCKET] COMMAND [ARGUMENT...] -j\n\n"
	"  who                   sessions: who, from where, what they do\n"
	"  kill SESSION...       end sessions\n"
	"  limit                 show limits\n"
	"  limit NAME VALUE      change one, until the configuration is read again\n"
	"  drain                 take nobody any more, let transfers end, then end\n"
	"  stats                 what was done since the start, by export and fabric\n"
	"  metrics               the same, as Prometheus reads it\n"
	"  quota                 what lies in the exports that have a quota\n"
	"  reload                read the configuration again, open the log anew\n\n"
	"  -j, --json            JSON, an object a line\n"
	"  -s, --socket SOCKET   where rftpd listens (" CONTROL_PATH ")\n"
	"  -h, --help            show this\n"
	"  -V, --version         show the version\n\n"
	"See rftpctl(8).\n";

/* "json COMMAND ARGUMENT...\n"; no word may have a blank.  Its length, or 0: too long. */
static size_t put_question(char out[QUESTION_MAX], bool json, char *const *words)
{
	size_t len = (size_t)snprintf(out, QUESTION_MAX, "%s", json ? "json " : "");

	for (; *words; words++) {
		if (len + strlen(*words) + 2 > QUESTION_MAX || strpbrk(*words, " \t\r\n"))
			return 0;
		len += (size_t)snprintf(
			out + len, QUESTION_MAX - len, "%s%c", *words, words[1] ? ' ' : '\n');
	}
	return len;
}

/* "-j" and "--json" behind the command, too; what else is there is the daemon's to judge.  Whether
 * there was one, which is gone then. */
static bool take_json(char **words)
{
	char **to = words;
	bool found = false;

	for (; *words; words++) {
		if (!strcmp(*words, "-j") || !strcmp(*words, "--json"))
			found = true;
		else
			*to++ = *words;
	}
	*to = NULL;
	return found;
}

static int reach(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof at.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(at.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

/* The first line says how it went; what follows goes to stdout as it is. */
static int print_answer(FILE *in)
{
	static const char ok[] = "ok\n", error[] = "error: ", usage_is[] = "usage: ";
	char line[QUESTION_MAX];

	if (!fgets(line, sizeof line, in)) {
		fputs("rftpctl: rftpd gave no answer\n", stderr);
		return CODE_UNREACHED;
	}
	if (!strncmp(line, usage_is, strlen(usage_is))) {
		fprintf(stderr, "rftpctl: %s(rftpctl --help shows the commands)\n", line);
		return CODE_USAGE;
	}
	if (strcmp(line, ok) != 0) {
		fprintf(stderr, "rftpctl: %s",
			strncmp(line, error, strlen(error)) ? line : line + strlen(error));
		return CODE_REFUSED;
	}
	while (fgets(line, sizeof line, in))
		fputs(line, stdout);
	return ferror(in) || fflush(stdout) ? CODE_UNREACHED : CODE_OK;
}

static int ask(const char *path, const char *question, size_t len)
{
	int fd = reach(path), code;
	FILE *in;

	if (fd < 0) {
		fprintf(stderr, "rftpctl: %s: %s (does rftpd run, with `control = %s`?)\n", path,
			strerror(errno), path);
		return CODE_UNREACHED;
	}
	in = fdopen(fd, "r");
	if (!in || send(fd, question, len, MSG_NOSIGNAL) != (ssize_t)len) {
		fprintf(stderr, "rftpctl: %s: %s\n", path, strerror(errno));
		return CODE_UNREACHED;
	}
	code = print_answer(in);
	fclose(in);
	return code;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
		{"socket", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
	const char *path = CONTROL_PATH;
	char question[QUESTION_MAX];
	bool json = false;
	size_t len;
	int c;

	while ((c = getopt_long(argc, argv, "+js:hV", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 's':
			path = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return fflush(stdout) ? CODE_UNREACHED : CODE_OK;
		case 'V':
			puts("rftpctl " RFTP_VERSION);
			return fflush(stdout) ? CODE_UNREACHED : CODE_OK;
		default:
			fputs("rftpctl: try rftpctl --help\n", stderr);
			return CODE_USAGE;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return CODE_USAGE;
	}
	json |= take_json(argv + optind);
	len = put_question(question, json, argv + optind);
	if (!len) {
		fputs("rftpctl: a word is too long, or has a blank\n", stderr);
		return CODE_USAGE;
	}
	return ask(path, question, len);
}
