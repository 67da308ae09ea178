/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/audit: who did what, and how it ended: one line of JSON for each session's begin and end,
 * each file that went through, each change of a name, and each refusal of these (rftpd(8), AUDIT
 * LOG).
 *
 * Any thread writes, one at a time, so that lines do not mix, also where a long one goes to a FIFO
 * in pieces; control characters are escaped, so that nobody's file name makes a line of its own.
 * Nobody waits for a file that takes none, such as a FIFO that is full: the line is lost, which is
 * said once, and what was begun of it is a line by itself.
 */
#ifndef RFTPD_AUDIT_H
#define RFTPD_AUDIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct audit_file {
	const char *name;     /* of its setting */
	atomic_bool kept;     /* it is written to */
	pthread_mutex_t lock; /* of what follows, and of the end of the file */
	int fd;               /* -1: there was none yet */
	bool failed;          /* a line could not be written, and it was said */
	bool torn;            /* the last line has no end */
};

struct audit {
	struct audit_file json;
	struct audit_file xferlog; /* the files among it, as FTP servers tell of them */
};

struct audit_event {
	const char *event;
	const char *peer;
	uint32_t session;      /* 0: none */
	const char *path, *to; /* NULL: none; any bytes */
	uint64_t removed;      /* names; 0: not told */
	bool moved;            /* these three are told: */
	uint64_t files, bytes;
	uint64_t since_ns;          /* clock_now_ns when it began */
	uint16_t status;            /* STATUS_OK: it was done */
	const char *text;           /* NULL or "": none */
	const char *agent, *fabric; /* NULL: none */
	const char *user;           /* whose session it is, or as whom somebody tried; NULL: none */
	const char *method;         /* of a login */
	const char *mode;           /* that a name was to get, octal; NULL or "": none */
	const char *owner;          /* that a name was to get, as of chown(1); NULL or "": none */
	const char *export_name;    /* that `path` is beneath, where exports have names */
};

void audit_init(struct audit *);
void audit_fini(struct audit *);
/*
 * Writes to `path` from now on: a file, which is appended to, "stderr", or NULL for none.  With the
 * same name again it opens the file anew, as after somebody has renamed it.  0, or -errno, logged,
 * and all is as it was.  One thread calls this; others may write meanwhile.
 */
int audit_use(struct audit_file *, const char *path);
/* What audit_use would say, without making anything.  `name`: of the setting. */
int audit_check(const char *name, const char *path);

void audit_write(struct audit *, const struct audit_event *);

#endif
