/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/passwd: `rftpd passwd [-d] USER --users FILE`: sets a user's password, or takes the user
 * away.
 */
#ifndef RFTPD_PASSWD_H
#define RFTPD_PASSWD_H

/* argv[0] is "passwd".  0; -EINVAL: wrongly used; -errno: it could not be done.  Logged. */
int passwd_run(int argc, char **argv);

#endif
