/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/audit: lines that do not mix, and one that broke off. */
#include "rftpd/audit.h"

#include "base/clock.h"
#include "tests/harness.h"
#include "tests/scratch.h"

#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 4u
#define LINES 400u
#define NAME_BYTES (3u * PIPE_BUF) /* a line takes several writes to a pipe */

static struct audit audit;

static void write_named(char letter, size_t bytes)
{
	char name[NAME_BYTES + 1];

	memset(name, letter, bytes);
	name[bytes] = '\0';
	audit_write(&audit, &(struct audit_event){.event = "put", .peer = "x", .path = name});
}

static int small_fifo(char *path, size_t room, unsigned holds)
{
	int fd;

	snprintf(path, room, "%s", scratch_path(scratch_dir(), "fifo"));
	fd = mkfifo(path, 0600) ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fcntl(fd, F_SETPIPE_SZ, (int)holds) > 0 ? fd : -1;
}

static void *write_many(void *letter)
{
	for (unsigned i = 0; i < LINES; i++)
		write_named(*(const char *)letter, NAME_BYTES);
	return NULL;
}

/* A line, or the begin of one: of one thread, by its letter. */
static bool is_one(const char *line)
{
	static const char begin[] = "{\"time\":\"", path[] = "\"path\":\"";
	static const char end[] = "\",\"status\":\"ok\"}";
	const char *name = strstr(line, path);
	size_t same;

	if (strncmp(line, begin, strlen(begin)) != 0 || strstr(line + 1, begin))
		return false;
	if (!name)
		return true;
	name += strlen(path);
	same = strspn(name, (char[]){*name, '\0'});
	return !strncmp(name + same, end, strlen(name + same));
}

/* More than fits, from several threads, while somebody reads in small pieces. */
static void long_lines_do_not_mix(void)
{
	static const char letters[THREADS + 1] = "abcd";
	const size_t room = (size_t)THREADS * LINES * (NAME_BYTES + 200);
	char path[PATH_MAX], *text = malloc(room + 1), *line, *rest;
	int fd = small_fifo(path, sizeof path, 4 * PIPE_BUF);
	pthread_t threads[THREADS];
	unsigned whole = 0, mixed = 0;
	size_t have = 0;
	ssize_t n;

	CHECK(text && fd >= 0);
	audit_init(&audit);
	CHECK(!audit_use(&audit.json, path));
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(
			&threads[i], NULL, write_many, (void *)(uintptr_t)&letters[i]));
	for (unsigned i = 0; i < 20000 && have + 1000 < room; i++) {
		n = read(fd, text + have, 1000);
		have += n > 0 ? (size_t)n : 0;
	}
	/* from now on nobody has to be waited for */
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	while (have < room && (n = read(fd, text + have, room - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		mixed += !is_one(line);
		whole += line[strlen(line) - 1] == '}';
	}
	printf("# %u of %u lines whole\n", whole, THREADS * LINES);
	CHECK_EQ(mixed, 0);
	CHECK(whole > 0);
	audit_fini(&audit);
	close(fd);
	free(text);
}

static char first_byte(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c = 0;

	if (fd < 0 || read(fd, &c, 1) != 1)
		c = 0;
	if (fd >= 0)
		close(fd);
	return c;
}

/* What is not at its end is the file that it broke off in, and stays so when that is opened anew.
 */
static void a_line_that_broke_off(void)
{
	char path[PATH_MAX], other[PATH_MAX], text[2 * PIPE_BUF];
	int fd = small_fifo(path, sizeof path, PIPE_BUF);

	CHECK(fd >= 0);
	snprintf(other, sizeof other, "%s", scratch_path(scratch_dir(), "other"));
	audit_init(&audit);
	CHECK(!audit_use(&audit.json, path));
	write_named('a', NAME_BYTES);
	CHECK(!audit_use(&audit.json, other));
	write_named('b', 10);
	CHECK_EQ(first_byte(other), '{');
	/* there and back; and without one for a while */
	CHECK(read(fd, text, sizeof text) > 0);
	CHECK(!audit_use(&audit.json, path));
	write_named('c', NAME_BYTES);
	CHECK(read(fd, text, sizeof text) > 0);
	CHECK(!audit_use(&audit.json, path));
	CHECK(!audit_use(&audit.json, NULL));
	CHECK(!audit_use(&audit.json, path));
	write_named('d', 10);
	CHECK(read(fd, text, sizeof text) > 2);
	CHECK_EQ(text[0], '\n');
	CHECK_EQ(text[1], '{');
	audit_fini(&audit);
	close(fd);
}

HARNESS_MAIN({"long_lines_do_not_mix", long_lines_do_not_mix},
	{"a_line_that_broke_off", a_line_that_broke_off})
