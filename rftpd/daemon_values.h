/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_values: how the value of a setting is read from a text, and shown as one.
 *
 * For rftpd/daemon_settings alone, whose table has a row for each setting.
 */
#ifndef RFTPD_DAEMON_VALUES_H
#define RFTPD_DAEMON_VALUES_H

#include "rftpd/daemon_settings.h"

enum daemon_value_kind {
	KIND_SWITCH,
	KIND_NUMBER,
	KIND_SIZE,
	KIND_PATH,
	KIND_LISTEN,
	KIND_EXPORT,
	KIND_FABRIC,
	KIND_PROTECT,
	KIND_STARTUPS,
	KIND_PENALTIES,
	KIND_RATE,
	KIND_TURN,
	KIND_CLASS,
	KIND_LIMIT,
	KIND_ANONYMOUS,
	KIND_FSYNC,
	KIND_COPIES,
	KIND_LEVEL
};

struct daemon_value { /* a row of the table */
	const char *name;
	enum daemon_value_kind kind;
	size_t offset; /* of the field, for kinds that have one */
	uint64_t min, max;
	const char *values, *help;
	const char *standard; /* the default: a value, or in words what it depends on; NULL: none */
};

/* Checks the form of `value`, and takes it.  0; -EINVAL, -ENOSPC or -EEXIST, and `why` says what is
 * wrong; -ENOMEM. */
int daemon_value_set(struct daemon_settings *, const struct daemon_value *row, const char *value,
	char why[DAEMON_WHY_MAX]);
/* Whether it may stand there several times, each value one more; then they can be cleared. */
bool daemon_value_is_repeated(enum daemon_value_kind);
void daemon_value_clear(struct daemon_settings *, enum daemon_value_kind);
/* Whether it may be set and shown while the daemon runs. */
bool daemon_value_is_limit(enum daemon_value_kind);
/* Of a limit: its default, which may be that it depends. */
void daemon_value_reset(struct daemon_settings *, const struct daemon_value *row);
/* Of a limit: as daemon_value_set would take it, or "default". */
void daemon_value_show(
	const struct daemon_settings *, const struct daemon_value *row, char *out, size_t size);

#endif
