/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/auth/users_file: who may log in with a password: a line `USER:HASH` for each, the hash as
 * crypt(5) has it.  Empty lines and those that begin with # are passed over.
 *
 * A line is broken that has no hash, or one that cannot be, or blanks beside its name.  It is the
 * user's all the same, whom nothing lets in: who is not there may be looked for elsewhere.
 *
 * It is read at each login, so that a change holds at once.  Others than the owner and the group
 * may neither read nor change it.
 */
#ifndef RFTPD_USERS_FILE_H
#define RFTPD_USERS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USERS_HASH_MAX 384u /* CRYPT_OUTPUT_SIZE */
#define USERS_FILE_BYTES_MAX (4u << 20)
#define USERS_WHY_MAX 512u

/* Whether it can be a user's name here: 1..255 bytes, none of them a colon, a slash, a blank or a
 * control character; neither - nor @ nor # first; not "." or "..". */
bool users_name_ok(const char *name);

/* In a text of `len` bytes: the number of the user's line, the first that is his; 0: there is none.
 * The hash is "" when the line is broken. */
unsigned users_find_in(const char *text, size_t len, const char *user, char hash[USERS_HASH_MAX]);
/* The first line that is broken; 0: none is. */
unsigned users_find_broken(const char *text, size_t len);
/* In a file: 1, and the hash, "" and the reason when the line is broken; 0: there is none; or
 * -errno and the reason; -EPERM: others may read or change it. */
int users_find(
	const char *path, const char *user, char hash[USERS_HASH_MAX], char why[USERS_WHY_MAX]);
/*
 * The same for who asks somebody else about a user that is not there.  A file that is written in
 * place, and not replaced, may lack him for a moment: where it has just been changed this waits
 * until it stays as it is for a second.  -EBUSY: it does not.
 */
int users_find_settled(
	const char *path, const char *user, char hash[USERS_HASH_MAX], char why[USERS_WHY_MAX]);
/* Whether a daemon that runs as `daemon` can use it: 0, or -errno and the reason.  With 0 `why` is
 * not "" where something has to be said: that as whom is not known ((uid_t)-1), and only some could
 * use the file, or that a line is broken. */
int users_check(const char *path, uid_t daemon, char why[USERS_WHY_MAX]);

/*
 * Puts the user's line there, or takes it away (a hash of NULL; -ENOENT: there is none).  The file
 * is replaced as a whole, mode 0600 where there was none; two at a time wait for each other.  0 or
 * -errno and the reason.
 */
int users_set(const char *path, const char *user, const char *hash, char why[USERS_WHY_MAX]);

/* A new hash of the password (yescrypt).  0 or -errno. */
int users_hash(const char *password, char hash[USERS_HASH_MAX]);
/*
 * Whether the password is the one of the hash.  A hash of "" is nobody's: it takes as long as any.
 * Takes its time, and memory.
 */
bool users_verify(const char *password, const char *hash);

#endif
