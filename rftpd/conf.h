/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/conf: the syntax of the configuration file: `name = value` lines, an optional [rftpd]
 * heading, comment lines.  Knows no setting: names and values go to a callback.
 */
#ifndef RFTPD_CONF_H
#define RFTPD_CONF_H

#include <stddef.h>

#define CONF_WHY_MAX 512u    /* "FILE:LINE: reason", with its NUL */
#define CONF_VALUE_MAX 4096u /* bytes of a name or a value, with its NUL */
#define CONF_FILE_MAX (1u << 20)

/* One line's setting: 0, or -errno and the reason in `why` (256 bytes). */
typedef int conf_set(void *ctx, const char *name, const char *value, char *why);

/*
 * Calls `set` for each line in order.  The first error ends it: -EINVAL (syntax) or what `set`
 * gave, and `why` says "FILE:LINE: reason".  `file` is used for that only.
 */
int conf_parse(const char *text, size_t len, const char *file, conf_set *set, void *ctx,
	char why[CONF_WHY_MAX]);

/* Reads the file and parses it.  Errors as above; those of open and read also in `why`; -EFBIG:
 * longer than CONF_FILE_MAX. */
int conf_load(const char *file, conf_set *set, void *ctx, char why[CONF_WHY_MAX]);

#endif
