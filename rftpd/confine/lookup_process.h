/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/confine/lookup_process: processes that stay outside of the sandbox and answer one thing:
 * which number a user or group has, and which name a number (base/lookup).  One keeps the others:
 * it forks them, and again when one has ended.
 *
 * Inside, Landlock knows files, not names: /etc/passwd that useradd writes anew is another file,
 * which is out of reach.  All of /etc for reading would do, and give a daemon that is taken over
 * the host's configuration with its secrets; and there are name services that connect, load
 * libraries, or keep files elsewhere.  The monitor of system users could answer as well, where
 * there is one; but it is root, and reads nothing from the daemon for that reason.
 *
 * So they are processes with no right of their own: another user if the daemon is root, without
 * capabilities, nothing open but a connection to the daemon, and every file but for reading out of
 * their reach.
 */
#ifndef RFTPD_LOOKUP_PROCESS_H
#define RFTPD_LOOKUP_PROCESS_H

/* Forks it, before a device is opened or a thread started; from now on it and its children answer
 * base/lookup.  They end with this process.  0 or -errno, logged. */
int lookup_process_start(void);

#endif
