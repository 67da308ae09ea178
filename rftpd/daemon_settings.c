/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_settings: see daemon_settings.h.
 *
 * Owns the table, and which of several values counts.  How each is read from a text is
 * rftpd/daemon_values'.
 */
#include "rftpd/daemon_settings.h"

#include "proto/message.h"
#include "proto/transfer.h"
#include "rftpd/copy_rule.h"
#include "rftpd/daemon_values.h"
#include "rftpd/jobs/budget.h"
#include "transfer/bucket.h"
#include "tree/place.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMISSION_BANDWIDTH_MIN (UINT64_C(1) << 16)
#define ADMISSION_BANDWIDTH_MAX (UINT64_C(1) << 50)
#define ADMISSION_TURN_MIN (UINT64_C(1) << 20) /* an eighth of it is a window of two blocks */

#define FIELD(name) offsetof(struct daemon_settings, name)

static const struct daemon_value rows[] = {
	{"listen", KIND_LISTEN, 0, 0, 0, "[ADDR:]PORT",
		"listen there; may be repeated; port 0 takes a free one", DAEMON_LISTEN_DEFAULT},
	{"export", KIND_EXPORT, 0, 0, 0, "DIR[:ro|:rw]",
		"the directory that is served, :ro unless :rw is said; \"NAME DIR ...\": one of "
		"several",
		NULL},
	{"users", KIND_PATH, FIELD(users), 0, 0, "FILE",
		"who may log in with a password; rftpd passwd writes it", NULL},
	{"authorized-keys", KIND_PATH, FIELD(authorized_keys), 0, 0, "FILE",
		"who may log in with an Ed25519 key: OpenSSH's file; %u is the user", NULL},
	{"client-ca", KIND_PATH, FIELD(client_ca), 0, 0, "FILE",
		"authorities (PEM) whose certificates clients may log in with", NULL},
	{"certificate-users", KIND_PATH, FIELD(certificate_users), 0, 0, "FILE",
		"which user a client's certificate stands for: lines of USER NAME", NULL},
	{"anonymous", KIND_ANONYMOUS, 0, 0, 0, "auto|yes|no",
		"serve who does not log in; auto: while there is nothing to log in with", "auto"},
	{"host-key", KIND_PATH, FIELD(host_key), 0, 0, "FILE",
		"the private key by which clients know the daemon; made if it is not there",
		"host_key in the state directory"},
	{"certificate", KIND_PATH, FIELD(certificate), 0, 0, "FILE",
		"a chain of certificates for that key, from an authority", NULL},
	{"fabric", KIND_FABRIC, 0, 0, 0, "auto|NAME[,NAME...]", "transports to serve", "auto"},
	{"crc", KIND_SWITCH, FIELD(crc), 0, 0, "yes|no", "ask for a CRC on every packet of `soft`",
		"no"},
	{"max-sessions", KIND_NUMBER, FIELD(max_sessions), 1, 1000000, "N", "sessions at once",
		"4096"},
	{"max-per-address", KIND_NUMBER, FIELD(max_per_address), 1, 1000000, "N",
		"and of one client's address", "1024"},
	{"max-per-user", KIND_NUMBER, FIELD(max_per_user), 1, 1000000, "N",
		"and of one who has logged in", "1024"},
	{"max-startups", KIND_STARTUPS, 0, 0, 0, "N[:PERCENT:FULL]",
		"and of those, not yet set up: from N on PERCENT of new ones are refused, all at "
		"FULL",
		"512:30:1024"},
	{"max-half-open", KIND_NUMBER, FIELD(max_half_open), 1, 1000000, "N",
		"sessions in all that are not yet set up; one more ends the oldest", "2048"},
	{"penalties", KIND_PENALTIES, 0, 0, 0, "no|remote|all",
		"refuse addresses that keep failing to set up a session for a while", "remote"},
	{"max-channels", KIND_NUMBER, FIELD(max_channels), 1, MESSAGE_CHANNELS_MAX, "N",
		"data channels of a session", "64"},
	{"max-block", KIND_SIZE, FIELD(max_block_bytes), TRANSFER_BLOCK_MIN, TRANSFER_BLOCK_MAX,
		"SIZE", "bytes of a block", "16M"},
	{"inline-max", KIND_SIZE, FIELD(inline_max), 0, MESSAGE_INLINE_MAX, "SIZE",
		"bytes of a file that comes and goes in a single request; 0: none", "60K"},
	{"max-window", KIND_SIZE, FIELD(max_window_bytes), 1u << 20, UINT64_C(1) << 40, "SIZE",
		"memory of one transfer", "512M"},
	{"early-memory", KIND_SIZE, FIELD(early_memory_bytes), 0, UINT64_C(1) << 40, "SIZE",
		"memory for what clients send before they are answered, 1M a session", "64M"},
	{"memory", KIND_SIZE, FIELD(memory_bytes), BUDGET_MEMORY_MIN, UINT64_C(1) << 50, "SIZE",
		"memory of all transfers", "a quarter of what is available"},
	{"open-files", KIND_NUMBER, FIELD(open_files), BUDGET_FILES_MIN, 1000000, "N",
		"files that all transfers have open at once", "an eighth of RLIMIT_NOFILE"},
	{"threads", KIND_NUMBER, FIELD(threads), BUDGET_THREADS_MIN, 65535, "N",
		"threads of all transfers", "16 for each CPU, at least 32"},
	{"bandwidth", KIND_RATE, FIELD(bandwidth), ADMISSION_BANDWIDTH_MIN, ADMISSION_BANDWIDTH_MAX,
		"RATE", "bytes a second of all transfers: they wait for their turn of it", NULL},
	{"share", KIND_RATE, FIELD(share), BUCKET_RATE_MIN, ADMISSION_BANDWIDTH_MAX, "RATE",
		"of it, what a transfer gets in its turn", "half of the bandwidth"},
	{"turn", KIND_TURN, FIELD(turn_bytes), ADMISSION_TURN_MIN, UINT64_C(1) << 50, "SIZE|none",
		"bytes after which a transfer queues again", "25M"},
	{"age", KIND_NUMBER, FIELD(age_s), 0, 31536000, "SECONDS",
		"who waits so long counts as one class higher; 0: never", "30"},
	{"queue", KIND_NUMBER, FIELD(queue_max), 1, 1000000, "N", "transfers that may wait",
		"1024"},
	{"class", KIND_CLASS, 0, 0, 0, "NAME RANK [OPTION=VALUE ...]",
		"transfers of a kind: rank 0 goes first; may be repeated", NULL},
	{"limit", KIND_LIMIT, 0, 0, 0, "[user=USER] [address=NET] [export=NAME] LIMIT=VALUE ...",
		"what a user, a network or an export may have in all: sessions, memory, "
		"open-files, rate, quota, files; may be repeated",
		NULL},
	{"quota-scan", KIND_NUMBER, FIELD(quota_scan_s), 0, 31536000, "SECONDS",
		"what lies in exports that have a quota is counted anew so often; 0: never",
		"3600"},
	{"limit-rate", KIND_RATE, FIELD(limit_rate), BUCKET_RATE_MIN, ADMISSION_BANDWIDTH_MAX,
		"RATE", "bytes a second of one transfer, at most", NULL},
	{"stall-timeout", KIND_NUMBER, FIELD(stall_timeout_s), 0, 86400, "SECONDS",
		"a transfer that moves nothing ends after this if others wait; 0: never", "30"},
	{"handshake-timeout", KIND_NUMBER, FIELD(handshake_timeout_s), 1, 3600, "SECONDS",
		"a client that connects says something within this", "10"},
	{"login-timeout", KIND_NUMBER, FIELD(login_timeout_s), 1, 3600, "SECONDS",
		"from its connection until it has logged in, a client has this", "60"},
	{"idle-timeout", KIND_NUMBER, FIELD(idle_timeout_s), 0, 31536000, "SECONDS",
		"a session that asks for nothing is ended after this; 0: never", "900"},
	{"drain-timeout", KIND_NUMBER, FIELD(drain_timeout_s), 0, 86400, "SECONDS",
		"transfers may go on for so long after SIGTERM", "10"},
	{"control", KIND_PATH, FIELD(control), 0, 0, "SOCKET",
		"where rftpctl reaches this daemon: a local socket", NULL},
	{"metrics", KIND_PATH, FIELD(metrics), 0, 0, "ADDR:PORT",
		"tell Prometheus there what was done: http://ADDR:PORT/metrics", NULL},
	{"log-file", KIND_PATH, FIELD(log_file), 0, 0, "FILE",
		"messages go there, not to standard error", NULL},
	{"protect", KIND_PROTECT, 0, 0, 0, "clear|safe|private",
		"the least protection of what files contain: none, authentication, encryption",
		"clear"},
	{"fsync", KIND_FSYNC, 0, 0, 0, "never|end|file",
		"the least that is done for what arrives, whatever a client asks for", "never"},
	{"log-level", KIND_LEVEL, 0, 0, 0, "error|warning|info|debug", "what is logged", "info"},
	{"audit-log", KIND_PATH, FIELD(audit_log), 0, 0, "FILE|stderr",
		"a line of JSON there for each session, file and change of a name", NULL},
	{"xferlog", KIND_PATH, FIELD(xferlog), 0, 0, "FILE|stderr",
		"a line of xferlog(5) there for each file, as FTP servers write it", NULL},
	{"system-users", KIND_SWITCH, FIELD(system_users), 0, 0, "yes|no",
		"users of this host may log in, and have the rights on files that they have there",
		"no"},
	{"pam-service", KIND_PATH, FIELD(pam_service), 0, 0, "NAME|FILE", "what PAM asks of them",
		"rftpd"},
	{"user", KIND_PATH, FIELD(user), 0, 0, "NAME",
		"with system-users: as whom the daemon goes on once root has started it", "rftpd"},
	{"sandbox", KIND_SWITCH, FIELD(sandbox), 0, 0, "yes|no",
		"give up all files and system calls but its own, where the kernel has that", "yes"},
	{"require-sandbox", KIND_SWITCH, FIELD(require_sandbox), 0, 0, "yes|no",
		"and do not serve where the kernel does not have it", "no"},
	{"keep-partial", KIND_NUMBER, FIELD(keep_partial_s), 0, 31536000, "SECONDS",
		"how long what was cut off is kept, to be gone on with", "604800"},
	{"copies-to", KIND_COPIES, 0, 0, 0, "NETWORK[,NETWORK...] [ports=FIRST[-LAST]]",
		"send files to servers there, as clients ask; ports: 7387 unless given", NULL},
	{"copies-from", KIND_SWITCH, FIELD(copies_from), 0, 0, "yes|no",
		"let clients grant another server to store what they may store", "yes"},
	{"grant-lifetime", KIND_NUMBER, FIELD(grant_lifetime_s), 1, 86400, "SECONDS",
		"how long such a grant is good for one login", "3600"},
	{"insecure", KIND_SWITCH, FIELD(insecure), 0, 0, "yes|no",
		"listen beyond loopback without logins, where anybody may use the exports", "no"},
};

#define ROWS (sizeof rows / sizeof *rows)
_Static_assert(LIMIT_WHY_MAX <= DAEMON_WHY_MAX, "room for what is wrong with a limit");
_Static_assert(ROWS <= DAEMON_SETTINGS_MAX, "room for the origin of every row");

void daemon_settings_fini(struct daemon_settings *s)
{
	daemon_value_clear(s, KIND_CLASS);
	free(s->classes);
	daemon_value_clear(s, KIND_LIMIT);
	free(s->limits);
	daemon_value_clear(s, KIND_LISTEN);
	daemon_value_clear(s, KIND_EXPORT);
	free(s->users);
	free(s->authorized_keys);
	free(s->client_ca);
	free(s->certificate_users);
	free(s->audit_log);
	free(s->xferlog);
	free(s->pam_service);
	free(s->user);
	free(s->host_key);
	free(s->certificate);
	free(s->fabric);
	free(s->log_file);
	free(s->control);
	free(s->metrics);
	free(s->copies_to);
	*s = (struct daemon_settings){0};
}

const char *daemon_settings_name(unsigned i)
{
	return i < ROWS ? rows[i].name : NULL;
}

bool daemon_settings_is_switch(unsigned i)
{
	return rows[i].kind == KIND_SWITCH;
}

const char *daemon_settings_values(unsigned i)
{
	return rows[i].values;
}

const char *daemon_settings_help(unsigned i)
{
	return rows[i].help;
}

const char *daemon_settings_default(unsigned i)
{
	return rows[i].standard;
}

/* Addresses and fabrics are not put there: without any, all who ask take the default. */
void daemon_settings_init(struct daemon_settings *s)
{
	char why[DAEMON_WHY_MAX];

	*s = (struct daemon_settings){0};
	for (unsigned i = 0; i < ROWS; i++) {
		enum daemon_value_kind kind = rows[i].kind;

		if (kind == KIND_SWITCH || kind == KIND_PROTECT || kind == KIND_STARTUPS ||
			kind == KIND_PENALTIES || kind == KIND_FSYNC)
			(void)daemon_value_set(s, &rows[i], rows[i].standard, why);
		else if (daemon_value_is_limit(kind))
			daemon_value_reset(s, &rows[i]);
	}
}

int daemon_settings_set(struct daemon_settings *s, enum daemon_origin origin, const char *name,
	const char *value, char why[DAEMON_WHY_MAX])
{
	struct daemon_settings scratch;
	unsigned i = 0;
	int err;

	snprintf(why, DAEMON_WHY_MAX, "out of memory");
	while (i < ROWS && strcmp(rows[i].name, name) != 0)
		i++;
	if (i == ROWS) {
		snprintf(why, DAEMON_WHY_MAX, "unknown setting \"%.100s\"", name);
		return -ENOENT;
	}
	/* of another option the last one on the command line counts */
	if (s->origin[i] == origin && !daemon_value_is_repeated(rows[i].kind) &&
		origin == DAEMON_ORIGIN_FILE) {
		snprintf(why, DAEMON_WHY_MAX, "%s is given twice", name);
		return -EEXIST;
	}
	if (s->origin[i] > origin) { /* it does not count, but must be right */
		daemon_settings_init(&scratch);
		err = daemon_value_set(&scratch, &rows[i], value, why);
		daemon_settings_fini(&scratch);
		return err;
	}
	if (daemon_value_is_repeated(rows[i].kind) && s->origin[i] < origin)
		daemon_value_clear(s, rows[i].kind);
	err = daemon_value_set(s, &rows[i], value, why);
	if (!err)
		s->origin[i] = origin;
	return err;
}

bool daemon_settings_has_logins(const struct daemon_settings *s)
{
	return s->users || s->system_users || s->authorized_keys || s->client_ca || s->once_key;
}

bool daemon_settings_lets_anonymous(const struct daemon_settings *s)
{
	return s->anonymous == DAEMON_ANONYMOUS_YES ||
	       (s->anonymous == DAEMON_ANONYMOUS_AUTO && !daemon_settings_has_logins(s));
}

bool daemon_settings_is_open(const struct daemon_settings *s)
{
	if (!daemon_settings_lets_anonymous(s))
		return false;
	if (s->anonymous != DAEMON_ANONYMOUS_YES)
		return true;
	/* for everybody to read was said; to write would have to be said once more */
	for (unsigned i = 0; i < s->export_count; i++)
		if (export_rule_changes(s->exports[i], !daemon_settings_has_logins(s)))
			return true;
	return false;
}

int daemon_settings_set_limit(
	struct daemon_settings *s, const char *name, const char *value, char why[DAEMON_WHY_MAX])
{
	for (unsigned i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].name, name) && daemon_value_is_limit(rows[i].kind)) {
			if (strcmp(value, "default") != 0)
				return daemon_value_set(s, &rows[i], value, why);
			daemon_value_reset(s, &rows[i]);
			return 0;
		}
	snprintf(why, DAEMON_WHY_MAX, "\"%.100s\" is no limit", name);
	return -ENOENT;
}

bool daemon_settings_show_limit(const struct daemon_settings *s, unsigned i, char *out, size_t size)
{
	if (!daemon_value_is_limit(rows[i].kind))
		return false;
	daemon_value_show(s, &rows[i], out, size);
	return true;
}

void daemon_settings_admission(const struct daemon_settings *s, struct admission_limits *out)
{
	*out = (struct admission_limits){
		.bandwidth = s->bandwidth,
		.turn_bytes = s->turn_bytes,
		.age_ns = s->age_s * UINT64_C(1000000000),
		.queue_max = (unsigned)s->queue_max,
	};
}

uint64_t daemon_settings_early_memory(const struct daemon_settings *s)
{
	return s->limit_rate ? 0 : s->early_memory_bytes;
}
