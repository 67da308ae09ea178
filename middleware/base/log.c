/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/log: owns the log level, the program's name and where lines go.  A line that cannot be
 * written is lost, for there is nobody to tell.
 */
#include "base/log.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX 1024

static _Atomic(const char *) log_program = "rftp";
static atomic_int log_level = LOG_LEVEL_WARNING;

static atomic_bool log_stamped;
static atomic_bool log_drawn; /* a line stands on the terminal */
/* the descriptor's number stays when a file is opened anew: threads write to it */
static atomic_int log_fd = STDERR_FILENO;
static atomic_bool log_is_journal;

static const char *const log_level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

void log_setup(const char *program, enum log_level level)
{
	atomic_store_explicit(&log_program, program, memory_order_relaxed);
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

enum log_level log_level_get(void)
{
	return (enum log_level)atomic_load_explicit(&log_level, memory_order_relaxed);
}

void log_stamp(bool on)
{
	atomic_store_explicit(&log_stamped, on, memory_order_relaxed);
}

int log_open(const char *path)
{
	const int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0640);

	/* a FIFO that nobody reads yet: with a reader of our own there always is one */
	if (fd < 0 && errno == ENXIO)
		fd = open(path, O_RDWR | flags);
	return fd < 0 ? -errno : fd;
}

int log_to_file(const char *path)
{
	int fd = path ? log_open(path) : STDERR_FILENO;
	int old = atomic_load(&log_fd);

	if (fd < 0)
		return fd;
	if (path && old != STDERR_FILENO) {
		if (dup3(fd, old, O_CLOEXEC) < 0) {
			int err = -errno;

			close(fd);
			return err;
		}
		close(fd);
		return 0;
	}
	atomic_store(
		&log_fd, fd); /* one that was a file stays open: a thread may be writing to it */
	return 0;
}

/* What JOURNAL_STREAM says: whether stderr is the journal's. */
static bool log_leads_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
}

int log_to_journal(const char *socket_path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd;

	if (!log_leads_to_journal())
		return -ENOTCONN;
	snprintf(to.sun_path, sizeof to.sun_path, "%s",
		socket_path ? socket_path : "/run/systemd/journal/socket");
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	atomic_store(&log_fd, fd);
	atomic_store(&log_is_journal, true);
	return 0;
}

/* What stands in front of a message.  Its length. */
static size_t log_head(enum log_level level, const char *fields, char *out, size_t size)
{
	static const int priorities[] = {3, 4, 6, 7}; /* of syslog(3) */
	const char *program = atomic_load_explicit(&log_program, memory_order_relaxed);
	struct timespec now;
	struct tm tm;
	size_t used = 0;
	int n;

	if (atomic_load_explicit(&log_is_journal, memory_order_relaxed)) {
		n = snprintf(out, size,
			"PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\n%sMESSAGE=", priorities[level], program,
			fields);
		return n < (int)size ? (size_t)n : size - 1;
	}
	if (atomic_load_explicit(&log_stamped, memory_order_relaxed) &&
		!clock_gettime(CLOCK_REALTIME, &now) && gmtime_r(&now.tv_sec, &tm)) {
		used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
		used += (size_t)snprintf(
			out + used, size - used, ".%03uZ ", (unsigned)(now.tv_nsec / 1000000));
	}
	n = snprintf(out + used, size - used, "%s: %s: ", program, log_level_names[level]);
	return n < (int)(size - used) ? used + (size_t)n : size - 1;
}

/*
 * Bytes of the printable UTF-8 character at s (n bytes are there), 0 when it must be escaped: a
 * control character (C0, DEL, C1) or a byte that is no UTF-8, which an 8-bit terminal may obey.
 */
static size_t log_printable(const char *s, size_t n)
{
	uint32_t code = 0;
	size_t bytes = utf8_decode(s, n, &code);

	return utf8_is_control(code) ? 0 : bytes;
}

/* Writes one escaped byte to out (room for 5 bytes); returns its length. */
static size_t log_escape(unsigned char c, char *out)
{
	switch (c) {
	case '\n':
		memcpy(out, "\\n", 3);
		return 2;
	case '\r':
		memcpy(out, "\\r", 3);
		return 2;
	case '\t':
		memcpy(out, "\\t", 3);
		return 2;
	default:
		return (size_t)snprintf(out, 5, "\\x%02x", c);
	}
}

void log_line_drawn(bool drawn)
{
	atomic_store_explicit(&log_drawn, drawn, memory_order_relaxed);
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	log_write_about(level, "", format, ap);
	va_end(ap);
}

void log_write_about(enum log_level level, const char *fields, const char *format, va_list ap)
{
	static const char cut[] = "...", erase[] = "\r\033[K";
	char line[LOG_LINE_MAX], message[LOG_LINE_MAX], escaped[5];
	size_t used, length, room, i = 0;
	int saved = errno, n;
	bool whole;

	if (level > log_level_get())
		return;
	used = atomic_load_explicit(&log_drawn, memory_order_relaxed) ? sizeof erase - 1 : 0;
	memcpy(line, erase, used);
	used += log_head(level, fields, line + used, sizeof line / 2);
	errno = saved; /* for %m */
	n = vsnprintf(message, sizeof message, format, ap);
	if (n < 0)
		n = 0;
	whole = n < (int)sizeof message;
	length = whole ? (size_t)n : sizeof message - 1;

	room = sizeof line -
	       sizeof cut; /* always keeps place for the mark of a cut and the newline */
	while (i < length) {
		const char *text = message + i;
		size_t in = log_printable(text, length - i), out = in;

		if (!in) {
			in = 1;
			out = log_escape((unsigned char)*text, escaped);
			text = escaped;
		}
		if (used + out > room) {
			whole = false;
			break;
		}
		memcpy(line + used, text, out);
		used += out;
		i += in;
	}
	if (!whole) {
		memcpy(line + used, cut, sizeof cut - 1);
		used += sizeof cut - 1;
	}
	line[used++] = '\n';

	while (write(atomic_load_explicit(&log_fd, memory_order_relaxed), line, used) < 0 &&
		errno == EINTR)
		;
	errno = saved;
}
