/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/log: base/log.  Each case points stderr at a file of its own and reads it back.
 */
#include "base/log.h"
#include "tests/harness.h"

#include <pthread.h>
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
	{"lines_of_threads_stay_whole", lines_of_threads_stay_whole})
