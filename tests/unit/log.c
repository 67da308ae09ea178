/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/log: base/log.  Each case points stderr at a file of its own and reads it back.
 */
#include "base/log.h"
#include "tests/harness.h"
#include "tests/scratch.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int saved_stderr = -1;
static FILE *captured;

static bool capture_start(void)
{
	captured = tmpfile();
	saved_stderr = dup(STDERR_FILENO);
	return captured && saved_stderr >= 0 && dup2(fileno(captured), STDERR_FILENO) >= 0;
}

/* What was written since, NUL-terminated; its length in *bytes unless NULL.  The caller frees. */
static char *capture_end(size_t *bytes)
{
	long end;
	char *text;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	end = lseek(fileno(captured), 0, SEEK_END);
	text = calloc(1, (size_t)end + 1);
	if (text && pread(fileno(captured), text, (size_t)end, 0) != end)
		*text = '\0';
	fclose(captured);
	if (bytes)
		*bytes = (size_t)end;
	return text;
}

static bool writes(const char *message, const char *expected)
{
	char *text, line[2048];
	bool same;

	if (!capture_start())
		return false;
	log_error("%s", message);
	text = capture_end(NULL);
	snprintf(line, sizeof line, "prog: error: %s\n", expected);
	same = text && !strcmp(text, line);
	if (!same)
		printf("# got <%s>, expected <%s>\n", text ? text : "", line);
	free(text);
	return same;
}

static void shows_program_and_level(void)
{
	char *text;

	log_setup("prog", LOG_LEVEL_DEBUG);
	CHECK_EQ(log_level_get(), LOG_LEVEL_DEBUG);
	CHECK(capture_start());
	log_error("lost %d", 1);
	log_warning("slow %s", "disk");
	log_info("session %u", 7u);
	log_debug("detail");
	text = capture_end(NULL);
	CHECK(text);
	CHECK(!strcmp(text, "prog: error: lost 1\nprog: warning: slow disk\n"
			    "prog: info: session 7\nprog: debug: detail\n"));
	free(text);
}

static void drops_what_is_above_the_level(void)
{
	char *text;

	log_setup("prog", LOG_LEVEL_WARNING);
	CHECK(capture_start());
	log_debug("no");
	log_info("no");
	log_warning("yes");
	log_setup("prog", LOG_LEVEL_ERROR);
	log_warning("no");
	log_error("yes");
	text = capture_end(NULL);
	CHECK(text);
	CHECK(!strcmp(text, "prog: warning: yes\nprog: error: yes\n"));
	free(text);
}

static void a_message_cannot_forge_a_line(void)
{
	log_setup("prog", LOG_LEVEL_INFO);
	CHECK(writes("a\nb", "a\\nb"));
	CHECK(writes("a\r\tb", "a\\r\\tb"));
	CHECK(writes("\x1b[2J\x7f\x01", "\\x1b[2J\\x7f\\x01"));
	CHECK(writes("C1 \xc2\x9b here", "C1 \\xc2\\x9b here"));
}

static void text_stays_and_what_is_no_utf8_is_shown_in_hex(void)
{
	log_setup("prog", LOG_LEVEL_INFO);
	CHECK(writes("gr\xc3\xbc\xc3\x9f \xe6\x96\x87 \xf0\x9f\x98\x80",
		"gr\xc3\xbc\xc3\x9f \xe6\x96\x87 \xf0\x9f\x98\x80"));
	CHECK(writes("\x9b \xff \xc3", "\\x9b \\xff \\xc3"));
	CHECK(writes("\xc0\xaf \xe0\x80\xaf", "\\xc0\\xaf \\xe0\\x80\\xaf")); /* overlong */
	CHECK(writes("\xed\xa0\x80 \xf4\x90\x80\x80", "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80"));
	CHECK(writes("\xe6\x96"
		     "a",
		"\\xe6\\x96"
		"a")); /* cut short */
}

static void a_long_message_is_cut_and_says_so(void)
{
	static char message[5000];
	const char *const fills[] = {"x", "\n", "\xc3\xbc", "\xff"};
	char *text;
	size_t bytes;

	log_setup("prog", LOG_LEVEL_INFO);
	for (size_t f = 0; f < sizeof fills / sizeof fills[0]; f++) {
		size_t step = strlen(fills[f]);

		for (size_t i = 0; i + step < sizeof message; i += step)
			memcpy(message + i, fills[f], step);
		CHECK(capture_start());
		log_error("%s", message);
		text = capture_end(&bytes);
		CHECK(text);
		CHECK(bytes <= 1024);
		CHECK(bytes > 1000);
		CHECK(!strcmp(text + bytes - 4, "...\n"));
		CHECK(strchr(text, '\n') == text + bytes - 1);
		free(text);
	}
}

static void leaves_errno_alone(void)
{
	char *text;

	log_setup("prog", LOG_LEVEL_INFO);
	CHECK(capture_start());
	errno = ENOSPC;
	log_error("%m");
	CHECK_EQ(errno, ENOSPC);
	text = capture_end(NULL);
	CHECK(text);
	CHECK(strstr(text, strerror(ENOSPC)));
	free(text);
}

static void with_the_time(void)
{
	unsigned year, month, day, hour, minute, second, ms;
	char *text, rest[40] = "";

	log_setup("prog", LOG_LEVEL_INFO);
	log_stamp(true);
	CHECK(capture_start());
	log_error("lost");
	text = capture_end(NULL);
	log_stamp(false);
	CHECK_EQ(sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ %39[^\n]", &year, &month, &day, &hour,
			 &minute, &second, &ms, rest),
		8);
	CHECK(year > 2000 && month <= 12 && day <= 31 && hour < 24 && minute < 60);
	CHECK(!strcmp(rest, "prog: error: lost"));
	free(text);
}

static bool file_is(const char *path, const char *expected)
{
	char text[256] = "";
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

	text[n] = '\0';
	if (f)
		fclose(f);
	return !strcmp(text, expected);
}

static void to_a_file_that_is_renamed(void)
{
	const char *top = scratch_dir();
	char path[300], old[300], missing[300];

	snprintf(path, sizeof path, "%s/log", top);
	snprintf(old, sizeof old, "%s/log.1", top);
	snprintf(missing, sizeof missing, "%s/missing/log", top);
	log_setup("prog", LOG_LEVEL_INFO);
	CHECK_EQ(log_to_file(missing), -ENOENT);
	CHECK_EQ(log_to_file(path), 0);
	log_info("one");
	CHECK_EQ(rename(path, old), 0);
	log_info("two");
	CHECK_EQ(log_to_file(path), 0);
	log_info("three");
	CHECK_EQ(log_to_file(missing), -ENOENT);
	log_info("four");
	CHECK_EQ(log_to_file(NULL), 0);
	CHECK(file_is(old, "prog: info: one\nprog: info: two\n"));
	CHECK(file_is(path, "prog: info: three\nprog: info: four\n"));
}

static void write_about(const char *fields, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	log_write_about(LOG_LEVEL_INFO, fields, format, ap);
	va_end(ap);
}

static void to_the_journal(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char stream[64], got[256];
	struct stat st;
	ssize_t n;

	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", scratch_dir());
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof at));
	log_setup("prog", LOG_LEVEL_INFO);
	log_stamp(true);
	CHECK(!fstat(STDERR_FILENO, &st));
	unsetenv("JOURNAL_STREAM");
	CHECK_EQ(log_to_journal(at.sun_path), -ENOTCONN);
	setenv("JOURNAL_STREAM", "1:1", 1); /* of a parent whose stderr was another */
	CHECK_EQ(log_to_journal(at.sun_path), -ENOTCONN);
	snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	CHECK_EQ(log_to_journal("/nowhere/at/all"), -ENOENT);
	CHECK_EQ(log_to_journal(at.sun_path), 0);
	log_warning("a\nPRIORITY=0");
	n = recv(fd, got, sizeof got - 1, 0);
	CHECK(n > 0);
	got[n] = '\0';
	CHECK(!strcmp(got, "PRIORITY=4\nSYSLOG_IDENTIFIER=prog\nMESSAGE=a\\nPRIORITY=0\n"));
	write_about("RFTP_SESSION=3\n", "%s it", "about");
	n = recv(fd, got, sizeof got - 1, 0);
	CHECK(n > 0);
	got[n] = '\0';
	CHECK(!strcmp(
		got, "PRIORITY=6\nSYSLOG_IDENTIFIER=prog\nRFTP_SESSION=3\nMESSAGE=about it\n"));
	close(fd);
}

enum { THREADS = 4, LINES = 500 };

static void *write_lines(void *arg)
{
	for (int i = 0; i < LINES; i++)
		log_info("thread %d line %d end", *(int *)arg, i);
	return NULL;
}

static void lines_of_threads_stay_whole(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], next[THREADS] = {0}, lines = 0;
	char *text, *save = NULL;

	log_setup("prog", LOG_LEVEL_INFO);
	CHECK(capture_start());
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK_EQ(pthread_create(&threads[i], NULL, write_lines, &numbers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	text = capture_end(NULL);
	CHECK(text);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int thread, number, used = 0;

		CHECK_EQ(sscanf(line, "prog: info: thread %d line %d end%n", &thread, &number,
				 &used),
			2);
		CHECK_EQ(used, strlen(line));
		CHECK(thread >= 0 && thread < THREADS);
		CHECK_EQ(number, next[thread]++);
		lines++;
	}
	CHECK_EQ(lines, THREADS * LINES);
	free(text);
}

HARNESS_MAIN({"shows_program_and_level", shows_program_and_level},
	{"drops_what_is_above_the_level", drops_what_is_above_the_level},
	{"a_message_cannot_forge_a_line", a_message_cannot_forge_a_line},
	{"text_stays_and_what_is_no_utf8_is_shown_in_hex",
		text_stays_and_what_is_no_utf8_is_shown_in_hex},
	{"a_long_message_is_cut_and_says_so", a_long_message_is_cut_and_says_so},
	{"leaves_errno_alone", leaves_errno_alone},
	{"lines_of_threads_stay_whole", lines_of_threads_stay_whole},
	{"with_the_time", with_the_time}, {"to_a_file_that_is_renamed", to_a_file_that_is_renamed},
	{"to_the_journal", to_the_journal}) /* the last: it does not lead away from there */
