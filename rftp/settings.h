/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings: what the user may choose for transfers and reports, by name, in one table that
 * serves the options, --help, the shell's `set` and completion alike.  Zeros mean auto.
 */
#ifndef RFTP_SETTINGS_H
#define RFTP_SETTINGS_H

#include "end/end.h"
#include "proto/message.h"
#include "rftp/remote/trust.h"
#include "rftp/ui/text.h"
#include "transfer/plan.h"
#include "tree/compare.h"
#include "tree/walk.h"

#include <limits.h>
#include <stdint.h>

#define SETTINGS_RULES_MAX 8192u /* bytes; of more, a file of rules */

/* When files that arrive are flushed to stable storage. */
enum settings_fsync {
	SETTINGS_FSYNC_AUTO, /* FILE */
	SETTINGS_FSYNC_FILE,
	SETTINGS_FSYNC_END,
	SETTINGS_FSYNC_NEVER
};

/* What is compared beside what crossed. */
enum settings_verify {
	SETTINGS_VERIFY_WIRE, /* nothing more */
	SETTINGS_VERIFY_FILE, /* what the source's disk has */
	SETTINGS_VERIFY_READBACK,
	SETTINGS_VERIFY_ALL
};

struct settings {
	char fabric[16]; /* names with commas between, in order; "" = the best that connects */
	uint8_t engine;  /* enum message_engine; 0 = auto */
	uint16_t channels;
	uint32_t block, depth;
	enum end_direct direct;
	bool crc; /* soft: ask for MPA's CRC32C */
	unsigned connect_timeout_ms;
	/* which server is the right one: rftp/remote/trust; "": none */
	enum trust_policy host_keys;
	uint8_t protect; /* enum message_protect */
	char host_key[TLS_FINGERPRINT_MAX];
	char ca[PATH_MAX], known_hosts[PATH_MAX];
	/* who logs in, and with what: rftp/remote/login; "": none */
	char user[256], password_file[PATH_MAX], password_command[PATH_MAX];
	char ssh[PATH_MAX], rftpd_path[PATH_MAX]; /* of ssh:// */
	char identity[PATH_MAX], cert[PATH_MAX], key[PATH_MAX];
	unsigned retries;          /* of a copy, */
	unsigned retry_time_ms;    /* begun within this time; 0 = whenever */
	unsigned stall_timeout_ms; /* without a move; 0 = none of its own */
	bool stop_on_error;        /* the first file that fails is the last one */
	/* files of names: those that failed, and the only ones to be copied; "": none */
	char failures[PATH_MAX], retry_from[PATH_MAX];
	char files_from[PATH_MAX]; /* a list of names; "-": standard input; "": none */
	bool from0;                /* they have NUL behind them, not a line feed */
	enum settings_fsync fsync;
	enum settings_verify verify;
	enum plan_early_mode early;
	uint32_t inline_max;   /* files of at most so many bytes may be requests; 0: none */
	uint64_t resume_bytes; /* files of that size and more are gone on with; 0 = none */
	unsigned timeout_ms;   /* of a server that does not answer or go on */
	uint64_t segment_bytes, segment_ns; /* of a feed; 0 = no limit */
	bool drop_oldest;
	bool recursive;
	enum walk_links links; /* in trees */
	/* what is kept beyond modes and times */
	bool owner, group, xattrs, acls, numeric_ids;
	bool hard_links, preallocate;
	unsigned compress; /* zlib's level; 0: off */
	bool parents;      /* missing directories on the way to the destination are made */
	bool replace;
	bool in_place;                /* a put writes to a file that is there, from: */
	uint64_t offset;              /* MESSAGE_UNKNOWN: behind its end */
	bool update, ignore_existing; /* what is there is kept, and no error */
	enum compare_level compare;   /* of a sync */
	bool delete, detect_renames, dry_run;
	uint64_t max_delete;                  /* names; UINT64_MAX: no limit */
	char rules[SETTINGS_RULES_MAX];       /* of tree/filter, with newlines between; "": none */
	char priority[MESSAGE_CLASS_MAX + 1]; /* a class of the server's; "" = as it likes */
	bool has_deadline, deadline_fails;
	uint64_t deadline_ns; /* from the request on */
	uint64_t limit_rate;  /* bytes a second; 0 = none */
	bool json;
	int verbosity; /* -1 quiet, 0, 1, 2 */
};

void settings_init(struct settings *);
/* -a: a tree with all that a copy of it is expected to keep. */
void settings_archive(struct settings *);

#define SETTINGS_MAX 96u /* there are fewer */

struct setting {
	const char *name, *help;
	const char *option;      /* the long option; NULL: not by one of its own */
	char letter;             /* the short one; 0: none */
	const char *given;       /* what the option sets without a value; NULL: it needs one */
	bool optional;           /* with `given`: it may have a value, too */
	const char *option_help; /* what the option does, where `help` does not say so; or NULL */
};

/* The i-th setting, NULL past the last. */
const struct setting *settings_at(unsigned i);
/* What it may be set to: "auto|on|off"; capitals and digits stand for something to fill in. */
void settings_values(unsigned i, struct text *out);
/* Its value now, as settings_set would take it. */
void settings_show(const struct settings *, unsigned i, struct text *out);

/* -ENOENT: no such setting; -EINVAL: not such a value.  `why` then says so and lists what there is.
 */
int settings_set(struct settings *, const char *name, const char *value, struct text *why);

/* "credit"; for reports. */
const char *settings_engine_name(uint8_t engine);

#endif
