/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings.c: owns the table of settings.
 */
#include "rftp/settings.h"

#include "engine/engine.h"
#include "fabric/select.h"
#include "rftp/settings_values.h"
#include "rftp/ui/escape.h"

#include <errno.h>
#include <string.h>

#define SETTINGS_CONNECT_TIMEOUT_MS 10000u
#define SETTINGS_TIMEOUT_MS 60000u
#define SETTINGS_SEGMENT_BYTES (64u << 20)
#define SETTINGS_RESUME_BYTES (16u << 20) /* smaller files are sent again in no time */

void settings_init(struct settings *s)
{
	*s = (struct settings){.replace = true,
		.parents = true,
		.connect_timeout_ms = SETTINGS_CONNECT_TIMEOUT_MS,
		.timeout_ms = SETTINGS_TIMEOUT_MS,
		.segment_bytes = SETTINGS_SEGMENT_BYTES,
		.max_delete = UINT64_MAX,
		.ssh = "ssh",
		.rftpd_path = "rftpd",
		.inline_max = MESSAGE_INLINE_MAX,
		.resume_bytes = SETTINGS_RESUME_BYTES};
}

void settings_archive(struct settings *s)
{
	s->recursive = s->owner = s->group = true;
	s->links = WALK_LINKS_KEEP;
}

const char *settings_engine_name(uint8_t engine)
{
	const struct engine_ops *ops = engine ? engine_by_id(engine) : NULL;

	return ops ? ops->name : "auto";
}

static const char *name_of_engine(unsigned i)
{
	return engine_at(i) ? engine_at(i)->name : NULL;
}

static const struct row {
	struct setting setting;
	const char *values;            /* what may be set */
	const char *(*more)(unsigned); /* and these names; NULL: no more */
	int (*set)(struct settings *, const char *, struct text *);
	void (*show)(const struct settings *, struct text *);
} rows[] = {
	{{.name = "recursive",
		 .option = "recursive",
		 .letter = 'r',
		 .given = "on",
		 .help = "copy directories and what is in them"},
		"on|off", NULL, settings_set_recursive, settings_show_recursive},
	{{.name = "links",
		 .option = "links",
		 .help = "symbolic links in a tree: copied, or what they lead to is"},
		"keep|follow|skip", NULL, settings_set_links, settings_show_links},
	{{.name = "owner",
		 .option = "owner",
		 .letter = 'o',
		 .given = "on",
		 .help = "keep owners, as far as the receiving side may"},
		"on|off", NULL, settings_set_owner, settings_show_owner},
	{{.name = "group",
		 .option = "group",
		 .letter = 'g',
		 .given = "on",
		 .help = "keep groups, likewise"},
		"on|off", NULL, settings_set_group, settings_show_group},
	{{.name = "numeric-ids",
		 .option = "numeric-ids",
		 .given = "on",
		 .help = "owners and groups by number, whatever they are called"},
		"on|off", NULL, settings_set_numeric_ids, settings_show_numeric_ids},
	{{.name = "xattrs",
		 .option = "xattrs",
		 .letter = 'X',
		 .given = "on",
		 .help = "keep extended attributes of users"},
		"on|off", NULL, settings_set_xattrs, settings_show_xattrs},
	{{.name = "acls",
		 .option = "acls",
		 .letter = 'A',
		 .given = "on",
		 .help = "keep access control lists"},
		"on|off", NULL, settings_set_acls, settings_show_acls},
	{{.name = "compress",
		 .option = "compress",
		 .letter = 'z',
		 .given = "on",
		 .optional = true,
		 .help = "compress blocks, where the link is slower than that"},
		"on|off|1..9", NULL, settings_set_compress, settings_show_compress},
	{{.name = "hard-links",
		 .option = "hard-links",
		 .letter = 'H',
		 .given = "on",
		 .help = "keep hard links between files of one transfer"},
		"on|off", NULL, settings_set_hard_links, settings_show_hard_links},
	{{.name = "preallocate",
		 .option = "preallocate",
		 .given = "on",
		 .help = "take the disk space of a file before it comes"},
		"on|off", NULL, settings_set_preallocate, settings_show_preallocate},
	{{.name = "parents",
		 .option = "parents",
		 .help = "make missing directories on the way to the destination"},
		"on|off", NULL, settings_set_parents, settings_show_parents},
	{{.name = "replace",
		 .option = "no-replace",
		 .given = "off",
		 .help = "replace existing files",
		 .option_help = "an existing file is an error"},
		"on|off", NULL, settings_set_replace, settings_show_replace},
	{{.name = "update",
		 .option = "update",
		 .letter = 'u',
		 .given = "on",
		 .help = "leave out files that are not newer than what is there"},
		"on|off", NULL, settings_set_update, settings_show_update},
	{{.name = "ignore-existing",
		 .option = "ignore-existing",
		 .given = "on",
		 .help = "leave out files that are there already"},
		"on|off", NULL, settings_set_ignore_existing, settings_show_ignore_existing},
	{{.name = "files-from",
		 .option = "files-from",
		 .help = "copy only what is named there, of one directory; -: standard input"},
		"none|FILE", NULL, settings_set_files_from, settings_show_files_from},
	{{.name = "from0",
		 .option = "from0",
		 .letter = '0',
		 .given = "on",
		 .help = "names of --files-from end with NUL, as find -print0 has it"},
		"on|off", NULL, settings_set_from0, settings_show_from0},
	{{.name = "offset",
		 .option = "offset",
		 .help = "put: write into the file that is there, from this byte on"},
		"none|end|BYTES", NULL, settings_set_offset, settings_show_offset},
	{{.name = "compare",
		 .option = "compare",
		 .help = "sync: files are the same if this is (mtime: and the size)"},
		"mtime|size|exists|digest", NULL, settings_set_compare, settings_show_compare},
	{{.name = "delete",
		 .option = "delete",
		 .given = "on",
		 .help = "sync: remove what the destination has and the source has not"},
		"on|off", NULL, settings_set_delete, settings_show_delete},
	{{.name = "detect-renames",
		 .option = "detect-renames",
		 .given = "on",
		 .help = "sync --delete: a file that has another name now is renamed, not copied"},
		"on|off", NULL, settings_set_detect_renames, settings_show_detect_renames},
	{{.name = "max-delete",
		 .option = "max-delete",
		 .help = "sync: remove nothing when it would be more names"},
		"none|0..1000000000", NULL, settings_set_max_delete, settings_show_max_delete},
	{{.name = "dry-run",
		 .option = "dry-run",
		 .letter = 'n',
		 .given = "on",
		 .help = "copies and sync: print what would be done, as commands"},
		"on|off", NULL, settings_set_dry_run, settings_show_dry_run},
	{{.name = "filter",
		 .option = "filter",
		 .help = "one more rule of what is copied of a tree: \"- *.o\", \"+ keep.o\""},
		"none|RULE", NULL, settings_set_filter, settings_show_filter},
	{{.name = "fabric",
		 .option = "fabric",
		 .help = "transport: verbs is RDMA, soft is iWARP over TCP"},
		"auto", select_name, settings_set_fabric, settings_show_fabric},
	{{.name = "engine", .option = "engine", .help = "how blocks cross"}, "auto", name_of_engine,
		settings_set_engine, settings_show_engine},
	{{.name = "channels", .option = "channels", .help = "connections that carry data"},
		"auto|1..64", NULL, settings_set_channels, settings_show_channels},
	{{.name = "block", .option = "block", .help = "bytes of a block"}, "auto|64K..16M", NULL,
		settings_set_block, settings_show_block},
	{{.name = "depth", .option = "depth", .help = "blocks that the receiving side has"},
		"auto|1..65536", NULL, settings_set_depth, settings_show_depth},
	{{.name = "direct", .option = "direct", .help = "O_DIRECT, past the page cache"},
		"auto|on|off", NULL, settings_set_direct, settings_show_direct},
	{{.name = "crc",
		 .option = "crc",
		 .given = "on",
		 .help = "fabric soft: ask for CRC32C on the wire"},
		"on|off", NULL, settings_set_crc, settings_show_crc},
	{{.name = "connect-timeout",
		 .option = "connect-timeout",
		 .help = "how long to try to connect"},
		"SECONDS", NULL, settings_set_connect_timeout, settings_show_connect_timeout},
	{{.name = "timeout", .option = "timeout", .help = "how long a server may be silent"},
		"SECONDS", NULL, settings_set_timeout, settings_show_timeout},
	{{.name = "retries",
		 .option = "retries",
		 .help = "how often a copy is begun again when the connection is lost"},
		"0..1000000", NULL, settings_set_retries, settings_show_retries},
	{{.name = "retry-time",
		 .option = "retry-time",
		 .help = "how long after its start a copy may be begun again"},
		"none|SECONDS", NULL, settings_set_retry_time, settings_show_retry_time},
	{{.name = "stall-timeout",
		 .option = "stall-timeout",
		 .help = "how long a transfer may stand still"},
		"none|SECONDS", NULL, settings_set_stall_timeout, settings_show_stall_timeout},
	{{.name = "stop-on-error",
		 .option = "stop-on-error",
		 .given = "on",
		 .help = "stop a copy of many files at the first one that fails"},
		"on|off", NULL, settings_set_stop_on_error, settings_show_stop_on_error},
	{{.name = "failures",
		 .option = "failures",
		 .help = "write the names of files that failed there"},
		"none|FILE", NULL, settings_set_failures, settings_show_failures},
	{{.name = "retry-from",
		 .option = "retry-from",
		 .help = "copy only what is named there, as failures wrote it"},
		"none|FILE", NULL, settings_set_retry_from, settings_show_retry_from},
	{{.name = "fsync",
		 .option = "fsync",
		 .help = "flush each file that arrives, all at the end, or none"},
		"auto|file|end|never", NULL, settings_set_fsync, settings_show_fsync},
	{{.name = "verify",
		 .option = "verify",
		 .help = "compare what crossed, and what is on the disk of source, sink or both"},
		"wire|file|readback|all", NULL, settings_set_verify, settings_show_verify},
	{{.name = "early",
		 .option = "early",
		 .help = "send a file without waiting for the server to be ready for it"},
		"auto|always|never|timeout", NULL, settings_set_early, settings_show_early},
	{{.name = "resume",
		 .option = "resume",
		 .help = "go on with files of that size and more that were cut off"},
		"never|SIZE", NULL, settings_set_resume, settings_show_resume},
	{{.name = "inline-max",
		 .option = "inline-max",
		 .help = "files of at most so many bytes may go as single requests"},
		"SIZE", NULL, settings_set_inline_max, settings_show_inline_max},
	{{.name = "protect",
		 .option = "protect",
		 .help = "what files contain: checksums, authentication, encryption"},
		"clear|safe|private", NULL, settings_set_protect, settings_show_protect},
	{{.name = "host-keys",
		 .option = "host-keys",
		 .help = "a server whose key is not known yet"},
		"auto|ask|accept-new|strict", NULL, settings_set_host_keys,
		settings_show_host_keys},
	{{.name = "host-key", .option = "host-key", .help = "the one key that the server may have"},
		"none|FINGERPRINT", NULL, settings_set_host_key, settings_show_host_key},
	{{.name = "known-hosts", .option = "known-hosts", .help = "keys that were trusted before"},
		"auto|FILE", NULL, settings_set_known_hosts, settings_show_known_hosts},
	{{.name = "ca", .option = "ca", .help = "authorities that may vouch for servers (PEM)"},
		"none|FILE", NULL, settings_set_ca, settings_show_ca},
	{{.name = "priority",
		 .option = "priority",
		 .help = "the class in which transfers wait at the server"},
		"auto|CLASS", NULL, settings_set_priority, settings_show_priority},
	{{.name = "deadline",
		 .option = "deadline",
		 .help = "when a transfer is to have ended; fail: do not begin later"},
		"none|TIME[,fail]", NULL, settings_set_deadline, settings_show_deadline},
	{{.name = "limit-rate",
		 .option = "limit-rate",
		 .help = "bytes a second that a transfer may move"},
		"none|RATE", NULL, settings_set_limit_rate, settings_show_limit_rate},
	{{.name = "user", .option = "user", .help = "who logs in, where the URL names nobody"},
		"none|USER", NULL, settings_set_user, settings_show_user},
	{{.name = "identity",
		 .option = "identity",
		 .letter = 'i',
		 .help = "the private key to log in with (Ed25519, as ssh-keygen makes it)"},
		"none|FILE", NULL, settings_set_identity, settings_show_identity},
	{{.name = "cert", .option = "cert", .help = "a certificate to log in with (PEM)"},
		"none|FILE", NULL, settings_set_cert, settings_show_cert},
	{{.name = "key",
		 .option = "key",
		 .help = "the private key of --cert (PEM), where it is not in that file"},
		"none|FILE", NULL, settings_set_key, settings_show_key},
	{{.name = "password-file",
		 .option = "password-file",
		 .help = "has the password in its first line"},
		"none|FILE", NULL, settings_set_password_file, settings_show_password_file},
	{{.name = "password-command",
		 .option = "password-command",
		 .help = "writes the password to its standard output"},
		"none|COMMAND", NULL, settings_set_password_command,
		settings_show_password_command},
	{{.name = "ssh", .option = "ssh", .help = "ssh://: the ssh to use, with its options"},
		"COMMAND", NULL, settings_set_ssh, settings_show_ssh},
	{{.name = "rftpd-path", .option = "rftpd-path", .help = "ssh://: rftpd at the other side"},
		"PROGRAM", NULL, settings_set_rftpd_path, settings_show_rftpd_path},
	{{.name = "segment",
		 .option = "segment",
		 .help = "feed: begin another file at this size or age"},
		"none|SIZE|SECONDSs", NULL, settings_set_segment, settings_show_segment},
	{{.name = "drop",
		 .option = "drop",
		 .help = "feed: without room, wait (none), or drop the oldest packets"},
		"none|oldest", NULL, settings_set_drop, settings_show_drop},
	{{.name = "json",
		 .option = "json",
		 .given = "on",
		 .help = "report as one JSON object a line"},
		"on|off", NULL, settings_set_json, settings_show_json},
	{{.name = "verbosity", .help = "how much is said"}, "quiet|normal|verbose|debug", NULL,
		settings_set_verbosity, settings_show_verbosity},
};
#define ROWS (sizeof rows / sizeof *rows)
_Static_assert(ROWS <= SETTINGS_MAX, "those who keep something of each have room");

const struct setting *settings_at(unsigned i)
{
	return i < ROWS ? &rows[i].setting : NULL;
}

void settings_values(unsigned i, struct text *out)
{
	text_puts(out, rows[i].values);
	for (unsigned k = 0; rows[i].more && rows[i].more(k); k++)
		text_printf(out, "|%s", rows[i].more(k));
}

void settings_show(const struct settings *s, unsigned i, struct text *out)
{
	rows[i].show(s, out);
}

int settings_set(struct settings *s, const char *name, const char *value, struct text *why)
{
	struct text list = {0};
	int err = -ENOENT;

	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].setting.name, name))
			continue;
		err = rows[i].set(s, value, &list);
		if (err) {
			text_printf(why, "%s cannot be ", name);
			escape_shell(why, value, strlen(value));
			text_printf(why, ": %s", text_str(&list));
		}
		text_fini(&list);
		return err;
	}
	text_puts(why, "no such setting: ");
	escape_display(why, name, strlen(name));
	text_puts(why, "; there are");
	for (size_t i = 0; i < ROWS; i++)
		text_printf(why, "%s %s", i ? "," : "", rows[i].setting.name);
	return err;
}
