/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/secret: see secret.h.
 *
 * Reads byte by byte into the caller's buffer: stdio would leave copies behind.
 */
#include "base/secret.h"

#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

int secret_read_line(int fd, int cancel_fd, char *line, size_t size)
{
	size_t len = 0;
	char byte;
	int err;

	while ((err = (int)input_read(fd, cancel_fd, &byte, 1)) == 1 && byte != '\n') {
		if (len == size - 1) {
			err = -E2BIG;
			break;
		}
		line[len++] = byte;
	}
	if (len && line[len - 1] == '\r')
		len--;
	line[len] = '\0';
	if (err >= 0)
		err = memchr(line, '\0', len) ? -EINVAL : len ? 0 : -ENODATA;
	if (err)
		explicit_bzero(line, size);
	return err;
}

int secret_ask(const char *prompt, int cancel_fd, char *line, size_t size)
{
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC), err;
	struct termios before, quiet;

	if (tty < 0 || tcgetattr(tty, &before)) {
		if (tty >= 0)
			close(tty);
		return -ENOTTY;
	}
	quiet = before;
	quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
	quiet.c_lflag |= ICANON | ISIG;
	tcsetattr(tty, TCSAFLUSH, &quiet);
	dprintf(tty, "%s", prompt);
	err = secret_read_line(tty, cancel_fd, line, size);
	tcsetattr(tty, TCSAFLUSH, &before);
	dprintf(tty, "\n");
	close(tty);
	return err;
}
