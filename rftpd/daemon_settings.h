/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_settings: what may be configured, in one table that serves the long options, --help
 * and the configuration file alike.
 *
 * It checks the form of each value and nothing that needs the host: no file, address or device is
 * looked at.  What the command line says outweighs the file, whichever is read first.
 */
#ifndef RFTPD_DAEMON_SETTINGS_H
#define RFTPD_DAEMON_SETTINGS_H

#include "base/log.h"
#include "rftpd/jobs/admission_rule.h"
#include "rftpd/export_rule.h"
#include "rftpd/limit_rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DAEMON_LISTEN_MAX 16u
#define DAEMON_LISTEN_DEFAULT "127.0.0.1:7387"
#define DAEMON_EXPORTS_MAX 64u
#define DAEMON_SETTINGS_MAX 64u /* rows of the table, at most */
#define DAEMON_WHY_MAX 256u     /* a reason, with its NUL */

enum daemon_anonymous {
	DAEMON_ANONYMOUS_AUTO, /* while there are no logins */
	DAEMON_ANONYMOUS_NO,
	DAEMON_ANONYMOUS_YES,
};

enum daemon_origin { DAEMON_ORIGIN_DEFAULT, DAEMON_ORIGIN_FILE, DAEMON_ORIGIN_COMMAND };

/* Whose failings count (rftpd/serve/penalties). */
enum daemon_penalties { DAEMON_PENALTIES_NO, DAEMON_PENALTIES_REMOTE, DAEMON_PENALTIES_ALL };

/* Of sessions that are being set up: from `begin` on `percent` of new ones are refused, rising to
 * all at `full`. */
struct daemon_startups {
	uint32_t begin, percent, full;
};

struct daemon_settings {
	char *listen[DAEMON_LISTEN_MAX]; /* HOST:PORT, as written; none: DAEMON_LISTEN_DEFAULT */
	unsigned listen_count;
	int inherited[DAEMON_LISTEN_MAX]; /* sockets that listen already (rftpd/activation) */
	unsigned inherited_count;
	char *audit_log;              /* a file, or "stderr"; NULL: none */
	char *xferlog;                /* the same */
	char *host_key, *certificate; /* files; NULL: the default one; made from the key */
	struct export_rule *exports[DAEMON_EXPORTS_MAX];
	unsigned export_count;               /* one without a name, or all with one */
	char *users;                         /* a file of passwords; NULL: none */
	char *authorized_keys;               /* a file with %u in its name; NULL: none */
	char *client_ca, *certificate_users; /* both, or neither */
	const uint8_t
		*once_key;     /* of one session, MESSAGE_LOGIN_ONCE_BYTES; NULL: none.  Not ours */
	const char *once_user; /* whose session that is */
	enum daemon_anonymous anonymous;
	char *fabric;   /* "auto", or names with commas between */
	char *log_file; /* NULL: standard error, or the journal */
	char *control;  /* rftpctl's socket; NULL: none */
	char *metrics;  /* HOST:PORT; NULL: none */
	bool insecure, crc;
	bool sandbox, require_sandbox;
	bool system_users;        /* log in, too */
	char *pam_service, *user; /* of system_users; NULL: the usual */
	uint64_t max_sessions, max_per_address, max_channels;
	struct daemon_startups startups; /* of one address */
	uint64_t max_half_open, max_per_user;
	enum daemon_penalties penalties;
	uint64_t max_block_bytes;
	uint64_t inline_max;         /* bytes of a file in PUT and GET; 0: none */
	uint64_t max_window_bytes;   /* memory for the blocks of one transfer */
	uint64_t early_memory_bytes; /* of all areas for early data; 0: there are none */
	/* for all transfers together; 0: what suits the host (rftpd/jobs/budget) */
	uint64_t memory_bytes, open_files, threads;
	uint64_t stall_timeout_s; /* 0: none */
	uint64_t handshake_timeout_s;
	uint64_t login_timeout_s;
	uint64_t idle_timeout_s; /* 0: none */
	uint64_t drain_timeout_s;
	uint64_t keep_partial_s;
	uint8_t fsync;   /* enum incoming_fsync: the least */
	uint8_t protect; /* enum message_protect: the least that is served */
	/* admission by priority (rftpd/jobs/admission); bandwidth 0: there is none */
	uint64_t bandwidth, share, turn_bytes, age_s, queue_max;
	uint64_t limit_rate;            /* of one transfer; 0: none */
	struct admission_rule *classes; /* ADMISSION_RULES_MAX of them, or NULL */
	unsigned class_count;
	struct limit_rule *limits; /* LIMIT_RULES_MAX of them, or NULL */
	unsigned limit_count;
	struct copy_rule *copies_to; /* where it may send copies; NULL: nowhere */
	bool copies_from;            /* other servers may, as sessions grant it */
	uint64_t grant_lifetime_s;
	uint64_t quota_scan_s; /* 0: at the start only */
	enum log_level log_level;

	enum daemon_origin origin[DAEMON_SETTINGS_MAX]; /* by row */
};

void daemon_settings_init(struct daemon_settings *);
void daemon_settings_fini(struct daemon_settings *);

/*
 * One value.  -ENOENT: no such name; -EINVAL: not such a value; -EEXIST: a single value given twice
 * in the file (on the command line the last one counts, of exports none); -ENOSPC: too many;
 * -ENOMEM.  `why` then says so.
 */
int daemon_settings_set(struct daemon_settings *, enum daemon_origin, const char *name,
	const char *value, char why[DAEMON_WHY_MAX]);

/*
 * A number, a size or the log level, in place of whatever was said before.  -ENOENT: it is none of
 * these; or as above.
 */
int daemon_settings_set_limit(
	struct daemon_settings *, const char *name, const char *value, char why[DAEMON_WHY_MAX]);
/* Bytes of all areas for early data: with limit-rate none, for what comes early comes at once. */
uint64_t daemon_settings_early_memory(const struct daemon_settings *);
/* What the line for bandwidth has of them. */
void daemon_settings_admission(const struct daemon_settings *, struct admission_limits *out);
/* Its value, as it may be given.  false: the i-th row is no limit. */
bool daemon_settings_show_limit(const struct daemon_settings *, unsigned i, char *out, size_t size);

/* Whether there is any way to log in as somebody. */
bool daemon_settings_has_logins(const struct daemon_settings *);
/* Whether who shows nothing is let in. */
bool daemon_settings_lets_anonymous(const struct daemon_settings *);
/* Whether nobody has said that everybody may do what everybody may do: so it is beyond loopback
 * only where `insecure` says so. */
bool daemon_settings_is_open(const struct daemon_settings *);

/* The i-th row: its name (NULL past the last), whether it is a plain switch (its value may be left
 * out on the command line), what may be given, and what it does. */
const char *daemon_settings_name(unsigned i);
bool daemon_settings_is_switch(unsigned i);
const char *daemon_settings_values(unsigned i);
const char *daemon_settings_help(unsigned i);
/* What it is unless given: a value, or words; NULL: it has none. */
const char *daemon_settings_default(unsigned i);

#endif
