/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/known_hosts: the keys of servers that the user has trusted before, in files of
 * OpenSSH's form (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT").
 *
 * A line is "[MARKER] NAMES TYPE KEY [COMMENT]".  A name is a host, or [HOST]:PORT where the port
 * is not ADDR_DEFAULT_PORT; '*' and '?' stand for any characters, a '!' before a name takes it out.
 * One name may be hashed, by `ssh-keygen -H`.  The marker @revoked makes its key worth nothing;
 * lines with other markers are passed over.
 */
#ifndef RFTP_KNOWN_HOSTS_H
#define RFTP_KNOWN_HOSTS_H

#include "session/tls_key.h"

#include <stdint.h>

enum known_hosts_answer {
	KNOWN_HOSTS_NEW,     /* no line names this host */
	KNOWN_HOSTS_SAME,    /* a line has this key */
	KNOWN_HOSTS_CHANGED, /* lines name this host, and have other keys */
	KNOWN_HOSTS_REVOKED,
};

/* NAME as a line has it: "host" or "[host]:port", in small letters. */
#define KNOWN_HOSTS_NAME_MAX 300u
void known_hosts_name(const char *host, uint16_t port, char name[KNOWN_HOSTS_NAME_MAX]);

/*
 * What the file says of a host's key; a file that is not there says KNOWN_HOSTS_NEW.  *line is the
 * number of the line that decided, 0 where none did.  -errno when the file cannot be read.
 */
int known_hosts_find(const char *path, const char *name, const struct tls_key *,
	enum known_hosts_answer *, unsigned *line);

/* Appends a line; makes the file (mode 0600) and its directory (0700) where they are missing.
 * 0 or -errno. */
int known_hosts_add(const char *path, const char *name, const struct tls_key *);

#endif
