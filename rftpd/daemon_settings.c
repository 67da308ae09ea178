/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/daemon_settings: see daemon_settings.h.
 *
 * Owns the table and the forms of values.  Knows neither getopt nor the file's syntax.
 */
#include "rftpd/daemon_settings.h"

#include "base/addr.h"
#include "base/number.h"
#include "fabric/select.h"
#include "proto/message.h"
#include "proto/transfer.h"
#include "rftpd/copy_rule.h"
#include "rftpd/jobs/budget.h"
#include "transfer/bucket.h"
#include "tree/place.h"
#include "tree/incoming.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ADMISSION_BANDWIDTH_MIN (UINT64_C(1) << 16)
#define ADMISSION_BANDWIDTH_MAX (UINT64_C(1) << 50)
#define ADMISSION_TURN_MIN (UINT64_C(1) << 20) /* an eighth of it is a window of two blocks */

#define BLOCK_MULTIPLE 4096u /* of max-block: as proto/transfer.h says of blocks */

enum kind {
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

struct row {
	const char *name;
	enum kind kind;
	size_t offset; /* of the field, for kinds that have one */
	uint64_t min, max;
	const char *values, *help;
	const char *standard; /* the default: a value, or in words what it depends on; NULL: none */
};

#define FIELD(name) offsetof(struct daemon_settings, name)

static const struct row rows[] = {
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

static void clear_listen(struct daemon_settings *s)
{
	while (s->listen_count)
		free(s->listen[--s->listen_count]);
}

static void clear_classes(struct daemon_settings *s)
{
	while (s->class_count)
		admission_rule_fini(&s->classes[--s->class_count]);
}

static void clear_limits(struct daemon_settings *s)
{
	while (s->limit_count)
		limit_rule_fini(&s->limits[--s->limit_count]);
}

static void clear_exports(struct daemon_settings *s)
{
	while (s->export_count)
		export_rule_free(s->exports[--s->export_count]);
}

void daemon_settings_fini(struct daemon_settings *s)
{
	clear_classes(s);
	free(s->classes);
	clear_limits(s);
	free(s->limits);
	clear_listen(s);
	clear_exports(s);
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

/* ---- forms ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int parse_switch(const char *value, bool *out)
{
	static const char *const words[][2] = {
		{"no", "yes"}, {"off", "on"}, {"false", "true"}, {"0", "1"}};

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		for (unsigned on = 0; on < 2; on++)
			if (!strcasecmp(value, words[i][on])) {
				*out = on;
				return 0;
			}
	return -EINVAL;
}

static int set_number(
	uint64_t *field, const struct row *row, const char *value, char why[DAEMON_WHY_MAX])
{
	uint64_t n = 0;
	int err = row->kind == KIND_SIZE ? number_parse_size(value, &n)
					 : number_parse(value, 0, UINT64_MAX, &n);

	if (err == -EINVAL) {
		snprintf(why, DAEMON_WHY_MAX, "%s: \"%.60s\" is not a %s", row->name, value,
			row->kind == KIND_SIZE ? "size (such as 4096, 512K, 64M)" : "number");
		return err;
	}
	if (err || n < row->min || n > row->max) {
		snprintf(why, DAEMON_WHY_MAX, "%s: %.60s is outside %llu..%llu", row->name, value,
			(unsigned long long)row->min, (unsigned long long)row->max);
		return -EINVAL;
	}
	if (row->kind == KIND_SIZE && row->max == TRANSFER_BLOCK_MAX && n % BLOCK_MULTIPLE) {
		snprintf(why, DAEMON_WHY_MAX, "%s: %.60s is not a multiple of %u", row->name, value,
			BLOCK_MULTIPLE);
		return -EINVAL;
	}
	*field = n;
	return 0;
}

static int set_text(char **field, const char *value, size_t len)
{
	char *copy = strndup(value, len);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int set_listen(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	char host[256], alone[sizeof "127.0.0.1:65535"];
	uint16_t port;

	if (*value && !value[strspn(value, "0123456789")]) { /* as a host it would be 0.0.28.219 */
		uint64_t n = 0;

		if (number_parse(value, 0, UINT16_MAX, &n)) {
			snprintf(why, DAEMON_WHY_MAX, "listen: %.60s is no port (0 to 65535)",
				value);
			return -EINVAL;
		}
		snprintf(alone, sizeof alone, "127.0.0.1:%u", (unsigned)n);
		value = alone;
	}
	if (addr_split(value, host, sizeof host, ADDR_DEFAULT_PORT, &port)) {
		snprintf(why, DAEMON_WHY_MAX,
			"listen: \"%.100s\" is not ADDR:PORT (an IPv6 address stands in brackets: "
			"[::1]:7387)",
			value);
		return -EINVAL;
	}
	if (s->listen_count == DAEMON_LISTEN_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "listen: more than %u addresses", DAEMON_LISTEN_MAX);
		return -ENOSPC;
	}
	s->listen[s->listen_count] = strdup(value);
	if (!s->listen[s->listen_count])
		return -ENOMEM;
	s->listen_count++;
	return 0;
}

static int set_rate(
	uint64_t *field, const struct row *row, const char *value, char why[DAEMON_WHY_MAX])
{
	uint64_t n = 0;

	if (number_parse_rate(value, &n) || n < row->min || n > row->max) {
		snprintf(why, DAEMON_WHY_MAX,
			"%s: \"%.60s\" is no rate: bytes a second (such as 500K, 125M, 2.5G), at "
			"least %llu",
			row->name, value, (unsigned long long)row->min);
		return -EINVAL;
	}
	*field = n;
	return 0;
}

static int set_turn(
	uint64_t *field, const struct row *row, const char *value, char why[DAEMON_WHY_MAX])
{
	uint64_t n = 0;

	if (!strcmp(value, "none")) {
		*field = ADMISSION_ENDLESS;
		return 0;
	}
	if (number_parse_rate(value, &n) || n < row->min || n > row->max) {
		snprintf(why, DAEMON_WHY_MAX,
			"%s: \"%.60s\" is neither none nor a size from %llu on", row->name, value,
			(unsigned long long)row->min);
		return -EINVAL;
	}
	*field = n;
	return 0;
}

/* Several rules may lead to one class, which has one rank. */
static int set_class(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	struct admission_rule *rule;
	int err;

	if (!s->classes)
		s->classes = calloc(ADMISSION_RULES_MAX, sizeof *s->classes);
	if (!s->classes)
		return -ENOMEM;
	if (s->class_count == ADMISSION_RULES_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "class: more than %u", ADMISSION_RULES_MAX);
		return -ENOSPC;
	}
	rule = &s->classes[s->class_count];
	err = admission_rule_parse(value, rule, why);
	if (err)
		return err;
	for (unsigned i = 0; i < s->class_count; i++)
		if (!strcmp(s->classes[i].name, rule->name) && s->classes[i].rank != rule->rank) {
			snprintf(why, DAEMON_WHY_MAX, "class %s: has two ranks, %u and %u",
				rule->name, s->classes[i].rank, rule->rank);
			admission_rule_fini(rule);
			return -EINVAL;
		}
	s->class_count++;
	return 0;
}

static int set_limit(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	int err;

	if (!s->limits)
		s->limits = calloc(LIMIT_RULES_MAX, sizeof *s->limits);
	if (!s->limits)
		return -ENOMEM;
	if (s->limit_count == LIMIT_RULES_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "limit: more than %u", LIMIT_RULES_MAX);
		return -ENOSPC;
	}
	err = limit_rule_parse(value, &s->limits[s->limit_count], why);
	if (!err)
		s->limit_count++;
	return err;
}

static int set_export(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	struct export_rule *rule;
	int err;

	if (s->export_count == DAEMON_EXPORTS_MAX) {
		snprintf(why, DAEMON_WHY_MAX, "export: more than %u", DAEMON_EXPORTS_MAX);
		return -ENOSPC;
	}
	err = export_rule_parse(value, &rule, why, DAEMON_WHY_MAX);
	if (err)
		return err;
	/* nobody means to lose an export */
	if (s->export_count && (!rule->name || !s->exports[0]->name)) {
		snprintf(why, DAEMON_WHY_MAX,
			"export is given twice: of several each has a name (NAME DIR)");
		export_rule_free(rule);
		return -EEXIST;
	}
	s->exports[s->export_count++] = rule;
	return 0;
}

static bool fabric_known(const char *name, size_t len)
{
	const char *known;

	for (unsigned i = 0; (known = select_name(i)); i++)
		if (strlen(known) == len && !strncmp(known, name, len))
			return true;
	return false;
}

static int set_fabric(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	const char *at = value;

	for (bool automatic = !strcmp(value, "auto"); !automatic; at++) {
		size_t len = strcspn(at, ",");

		if (!fabric_known(at, len)) {
			int n = snprintf(why, DAEMON_WHY_MAX, "fabric: \"%.*s\" is none of auto",
				len < 60 ? (int)len : 60, at);
			const char *name;

			for (unsigned i = 0; (name = select_name(i)) && n < (int)DAEMON_WHY_MAX;
				i++)
				n += snprintf(why + n, DAEMON_WHY_MAX - (size_t)n, ", %s", name);
			return -EINVAL;
		}
		at += len;
		if (!*at)
			break;
	}
	return set_text(&s->fabric, value, strlen(value));
}

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static int set_level(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++)
		if (!strcmp(value, level_names[i])) {
			s->log_level = (enum log_level)i;
			return 0;
		}
	snprintf(why, DAEMON_WHY_MAX, "log-level: \"%.60s\" is none of error, warning, info, debug",
		value);
	return -EINVAL;
}

static int set_protect(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	for (uint8_t i = 0; message_protect_name(i); i++)
		if (!strcmp(value, message_protect_name(i))) {
			s->protect = i;
			return 0;
		}
	snprintf(why, DAEMON_WHY_MAX, "protect: \"%.60s\" is none of clear, safe, private", value);
	return -EINVAL;
}

/* As sshd's MaxStartups: "N" is all or nothing. */
static int set_startups(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	uint32_t *out[] = {&s->startups.begin, &s->startups.percent, &s->startups.full};
	uint64_t n[3] = {0, 100, 0};
	const char *at = value;
	unsigned count = 0;

	while (count < 3 && *at) {
		size_t len = strcspn(at, ":");
		char one[16];

		snprintf(one, sizeof one, "%.*s", len < 15 ? (int)len : 15, at);
		if (number_parse(one, 1, count == 1 ? 100 : 1000000, &n[count]))
			break;
		count++;
		at += len;
		at += *at == ':' && at[1];
	}
	if (count == 1)
		n[2] = n[0];
	if (*at || (count != 1 && count != 3) || n[0] > n[2]) {
		snprintf(why, DAEMON_WHY_MAX,
			"max-startups: \"%.60s\" is neither N nor N:PERCENT:FULL (such as "
			"512:30:1024)",
			value);
		return -EINVAL;
	}
	for (unsigned i = 0; i < 3; i++)
		*out[i] = (uint32_t)n[i];
	return 0;
}

static int set_penalties(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	static const char *const names[] = {
		[DAEMON_PENALTIES_NO] = "no",
		[DAEMON_PENALTIES_REMOTE] = "remote",
		[DAEMON_PENALTIES_ALL] = "all",
	};

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(value, names[i])) {
			s->penalties = (enum daemon_penalties)i;
			return 0;
		}
	snprintf(why, DAEMON_WHY_MAX, "penalties: \"%.60s\" is none of no, remote, all", value);
	return -EINVAL;
}

static int set_anonymous(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	bool on;

	if (!strcmp(value, "auto")) {
		s->anonymous = DAEMON_ANONYMOUS_AUTO;
		return 0;
	}
	if (!parse_switch(value, &on)) {
		s->anonymous = on ? DAEMON_ANONYMOUS_YES : DAEMON_ANONYMOUS_NO;
		return 0;
	}
	snprintf(why, DAEMON_WHY_MAX, "anonymous: \"%.60s\" is none of auto, yes, no", value);
	return -EINVAL;
}

static int set_fsync(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	static const char *const names[] = {[INCOMING_FSYNC_NEVER] = "never",
		[INCOMING_FSYNC_END] = "end",
		[INCOMING_FSYNC_FILE] = "file"};

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(value, names[i])) {
			s->fsync = (uint8_t)i;
			return 0;
		}
	snprintf(why, DAEMON_WHY_MAX, "fsync: \"%.60s\" is none of never, end, file", value);
	return -EINVAL;
}

static int set_copies(struct daemon_settings *s, const char *value, char why[DAEMON_WHY_MAX])
{
	struct copy_rule *rule;
	int err = copy_rule_parse(value, &rule, why, DAEMON_WHY_MAX);

	if (err)
		return err;
	free(s->copies_to);
	s->copies_to = rule;
	return 0;
}

static int set_row(struct daemon_settings *s, const struct row *row, const char *value,
	char why[DAEMON_WHY_MAX])
{
	void *field = (char *)s + row->offset;

	switch (row->kind) {
	case KIND_SWITCH:
		if (!parse_switch(value, field))
			return 0;
		snprintf(why, DAEMON_WHY_MAX, "%s: \"%.60s\" is neither yes nor no", row->name,
			value);
		return -EINVAL;
	case KIND_NUMBER:
	case KIND_SIZE:
		return set_number(field, row, value, why);
	case KIND_PATH:
		if (*value)
			return set_text(field, value, strlen(value));
		snprintf(why, DAEMON_WHY_MAX, "%s: no file is named", row->name);
		return -EINVAL;
	case KIND_LISTEN:
		return set_listen(s, value, why);
	case KIND_EXPORT:
		return set_export(s, value, why);
	case KIND_FABRIC:
		return set_fabric(s, value, why);
	case KIND_PROTECT:
		return set_protect(s, value, why);
	case KIND_STARTUPS:
		return set_startups(s, value, why);
	case KIND_PENALTIES:
		return set_penalties(s, value, why);
	case KIND_RATE:
		return set_rate(field, row, value, why);
	case KIND_TURN:
		return set_turn(field, row, value, why);
	case KIND_CLASS:
		return set_class(s, value, why);
	case KIND_LIMIT:
		return set_limit(s, value, why);
	case KIND_ANONYMOUS:
		return set_anonymous(s, value, why);
	case KIND_FSYNC:
		return set_fsync(s, value, why);
	case KIND_COPIES:
		return set_copies(s, value, why);
	default:
		return set_level(s, value, why);
	}
}

/* Addresses and fabrics are not put there: without any, all who ask take the default. */
void daemon_settings_init(struct daemon_settings *s)
{
	char why[DAEMON_WHY_MAX];

	*s = (struct daemon_settings){0};
	for (unsigned i = 0; i < ROWS; i++) {
		enum kind kind = rows[i].kind;

		if (kind == KIND_LEVEL || kind == KIND_SWITCH || kind == KIND_PROTECT ||
			kind == KIND_STARTUPS || kind == KIND_PENALTIES || kind == KIND_TURN ||
			kind == KIND_FSYNC)
			(void)set_row(s, &rows[i], rows[i].standard, why);
		else if ((kind == KIND_NUMBER || kind == KIND_SIZE) && is_digit(*rows[i].standard))
			(void)set_row(s, &rows[i], rows[i].standard, why);
	}
}

static bool is_repeated(enum kind kind)
{
	return kind == KIND_LISTEN || kind == KIND_CLASS || kind == KIND_EXPORT ||
	       kind == KIND_LIMIT;
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
	if (s->origin[i] == origin && !is_repeated(rows[i].kind) && origin == DAEMON_ORIGIN_FILE) {
		snprintf(why, DAEMON_WHY_MAX, "%s is given twice", name);
		return -EEXIST;
	}
	if (s->origin[i] > origin) { /* it does not count, but must be right */
		daemon_settings_init(&scratch);
		err = set_row(&scratch, &rows[i], value, why);
		daemon_settings_fini(&scratch);
		return err;
	}
	if (rows[i].kind == KIND_LISTEN && s->origin[i] < origin)
		clear_listen(s);
	if (rows[i].kind == KIND_CLASS && s->origin[i] < origin)
		clear_classes(s);
	if (rows[i].kind == KIND_LIMIT && s->origin[i] < origin)
		clear_limits(s);
	if (rows[i].kind == KIND_EXPORT && s->origin[i] < origin)
		clear_exports(s);
	err = set_row(s, &rows[i], value, why);
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

static bool is_limit(enum kind kind)
{
	return kind == KIND_NUMBER || kind == KIND_SIZE || kind == KIND_LEVEL ||
	       kind == KIND_RATE || kind == KIND_TURN;
}

int daemon_settings_set_limit(
	struct daemon_settings *s, const char *name, const char *value, char why[DAEMON_WHY_MAX])
{
	for (unsigned i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].name, name) && is_limit(rows[i].kind))
			return set_row(s, &rows[i], value, why);
	snprintf(why, DAEMON_WHY_MAX, "\"%.100s\" is no limit", name);
	return -ENOENT;
}

bool daemon_settings_show_limit(const struct daemon_settings *s, unsigned i, char *out, size_t size)
{
	static const char letters[] = "KMGT";
	uint64_t n;
	int letter = -1;

	if (!is_limit(rows[i].kind))
		return false;
	if (rows[i].kind == KIND_LEVEL) {
		snprintf(out, size, "%s", level_names[s->log_level]);
		return true;
	}
	n = *(const uint64_t *)(const void *)((const char *)s + rows[i].offset);
	if (rows[i].kind == KIND_TURN && n == ADMISSION_ENDLESS) {
		snprintf(out, size, "none");
		return true;
	}
	if (!n && rows[i].min) { /* not given: it depends */
		snprintf(out, size, "default");
		return true;
	}
	for (; rows[i].kind != KIND_NUMBER && n && n % 1024 == 0 && letter < 3; letter++)
		n /= 1024;
	snprintf(out, size, "%llu%.*s", (unsigned long long)n, letter >= 0,
		&letters[letter >= 0 ? letter : 0]);
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
