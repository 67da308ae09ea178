/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings.c: owns the table of settings.  Does not know what they do to a transfer.
 */
#include "rftp/settings.h"

#include "base/number.h"
#include "engine/engine.h"
#include "fabric/select.h"
#include "proto/transfer.h"
#include "rftp/ui/escape.h"
#include "rftp/ui/units.h"

#include <errno.h>
#include <string.h>

#define SETTINGS_CONNECT_TIMEOUT_MS 10000u
#define SETTINGS_TIMEOUT_MS 60000u
#define SETTINGS_SEGMENT_BYTES (64u << 20)
#define SETTINGS_NS_PER_S 1000000000ull

void settings_init(struct settings *s)
{
	*s = (struct settings){.replace = true,
		.connect_timeout_ms = SETTINGS_CONNECT_TIMEOUT_MS,
		.timeout_ms = SETTINGS_TIMEOUT_MS,
		.segment_bytes = SETTINGS_SEGMENT_BYTES};
}

const char *settings_engine_name(uint8_t engine)
{
	const struct engine_ops *ops = engine ? engine_by_id(engine) : NULL;

	return ops ? ops->name : "auto";
}

static bool is_auto(const char *value)
{
	return !strcmp(value, "auto");
}

/* Names with commas between, each of them known. */
static bool is_fabric_list(const char *list)
{
	bool known;

	do {
		size_t len = strcspn(list, ",");

		known = false;
		for (unsigned i = 0; select_name(i); i++)
			known |= strlen(select_name(i)) == len &&
				 !strncmp(select_name(i), list, len);
		list += len;
	} while (known && *list++);
	return known;
}

static int set_fabric(struct settings *s, const char *value, struct text *why)
{
	if (is_auto(value)) {
		s->fabric[0] = '\0';
		return 0;
	}
	if (is_fabric_list(value) && strlen(value) < sizeof s->fabric) {
		strcpy(s->fabric, value);
		return 0;
	}
	text_puts(why, "this build has: auto");
	for (unsigned i = 0; select_name(i); i++)
		text_printf(why, ", %s", select_name(i));
	return -EINVAL;
}

static void show_fabric(const struct settings *s, struct text *out)
{
	text_puts(out, s->fabric[0] ? s->fabric : "auto");
}

static int set_engine(struct settings *s, const char *value, struct text *why)
{
	const struct engine_ops *ops = engine_by_name(value);

	if (ops || is_auto(value)) {
		s->engine = ops ? ops->id : 0;
		return 0;
	}
	text_puts(why, "this build has: auto");
	for (unsigned i = 0; engine_at(i); i++)
		text_printf(why, ", %s", engine_at(i)->name);
	return -EINVAL;
}

static void show_engine(const struct settings *s, struct text *out)
{
	text_puts(out, settings_engine_name(s->engine));
}

static int set_channels(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!is_auto(value) && number_parse(value, 1, MESSAGE_CHANNELS_MAX, &n)) {
		text_printf(why, "auto, or 1 to %u", MESSAGE_CHANNELS_MAX);
		return -EINVAL;
	}
	s->channels = (uint16_t)n;
	return 0;
}

static void show_number(uint32_t n, struct text *out)
{
	if (n)
		text_printf(out, "%u", n);
	else
		text_puts(out, "auto");
}

static void show_channels(const struct settings *s, struct text *out)
{
	show_number(s->channels, out);
}

static int set_block(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!is_auto(value) && (number_parse_size(value, &n) || n < TRANSFER_BLOCK_MIN ||
				       n > TRANSFER_BLOCK_MAX || n % 4096)) {
		text_puts(why, "auto, or 64K to 16M in steps of 4K");
		return -EINVAL;
	}
	s->block = (uint32_t)n;
	return 0;
}

static void show_block(const struct settings *s, struct text *out)
{
	if (s->block && s->block % (1u << 20) == 0)
		text_printf(out, "%uM", s->block >> 20);
	else if (s->block)
		text_printf(out, "%uK", s->block >> 10);
	else
		text_puts(out, "auto");
}

static int set_depth(struct settings *s, const char *value, struct text *why)
{
	uint64_t n = 0;

	if (!is_auto(value) && number_parse(value, 1, TRANSFER_DEPTH_MAX, &n)) {
		text_printf(why, "auto, or 1 to %u blocks", TRANSFER_DEPTH_MAX);
		return -EINVAL;
	}
	s->depth = (uint32_t)n;
	return 0;
}

static void show_depth(const struct settings *s, struct text *out)
{
	show_number(s->depth, out);
}

static int parse_bool(const char *value, bool *out, struct text *why)
{
	if (!strcmp(value, "on") || !strcmp(value, "yes"))
		*out = true;
	else if (!strcmp(value, "off") || !strcmp(value, "no"))
		*out = false;
	else {
		text_puts(why, "on or off");
		return -EINVAL;
	}
	return 0;
}

static int set_direct(struct settings *s, const char *value, struct text *why)
{
	bool on;

	if (is_auto(value)) {
		s->direct = END_DIRECT_AUTO;
		return 0;
	}
	if (parse_bool(value, &on, why)) {
		text_clear(why);
		text_puts(why, "auto, on or off");
		return -EINVAL;
	}
	s->direct = on ? END_DIRECT_ON : END_DIRECT_OFF;
	return 0;
}

static void show_direct(const struct settings *s, struct text *out)
{
	text_puts(out, s->direct == END_DIRECT_ON    ? "on"
		       : s->direct == END_DIRECT_OFF ? "off"
						     : "auto");
}

static int parse_seconds(const char *value, unsigned *ms, struct text *why)
{
	uint64_t n;

	if (number_parse(value, 1, 86400, &n)) {
		text_puts(why, "1 to 86400 seconds");
		return -EINVAL;
	}
	*ms = (unsigned)n * 1000;
	return 0;
}

static int set_connect_timeout(struct settings *s, const char *value, struct text *why)
{
	return parse_seconds(value, &s->connect_timeout_ms, why);
}

static void show_connect_timeout(const struct settings *s, struct text *out)
{
	text_printf(out, "%u", s->connect_timeout_ms / 1000);
}

static int set_retries(struct settings *s, const char *value, struct text *why)
{
	uint64_t n;

	if (number_parse(value, 0, 1000000, &n)) {
		text_puts(why, "0 to 1000000");
		return -EINVAL;
	}
	s->retries = (unsigned)n;
	return 0;
}

static void show_retries(const struct settings *s, struct text *out)
{
	text_printf(out, "%u", s->retries);
}

static int set_timeout(struct settings *s, const char *value, struct text *why)
{
	return parse_seconds(value, &s->timeout_ms, why);
}

static void show_timeout(const struct settings *s, struct text *out)
{
	text_printf(out, "%u", s->timeout_ms / 1000);
}

/* One of them: a size, or seconds with an "s" behind. */
static int parse_segment(const char *value, size_t len, struct settings *s)
{
	char text[UNITS_TEXT_MAX];
	uint64_t n;

	if (!len || len >= sizeof text)
		return -EINVAL;
	memcpy(text, value, len);
	text[len] = '\0';
	if (text[len - 1] == 's') {
		text[len - 1] = '\0';
		if (s->segment_ns || number_parse(text, 1, 86400 * 366, &n))
			return -EINVAL;
		s->segment_ns = n * SETTINGS_NS_PER_S;
		return 0;
	}
	if (s->segment_bytes || number_parse_size(text, &n) || n < MESSAGE_SEGMENT_BYTES_MIN ||
		n > TRANSFER_SIZE_MAX)
		return -EINVAL;
	s->segment_bytes = n;
	return 0;
}

static int set_segment(struct settings *s, const char *value, struct text *why)
{
	struct settings parsed = {0};
	const char *comma = strchr(value, ',');
	int err = 0;

	if (strcmp(value, "none")) {
		err = parse_segment(
			value, comma ? (size_t)(comma - value) : strlen(value), &parsed);
		if (!err && comma)
			err = parse_segment(comma + 1, strlen(comma + 1), &parsed);
	}
	if (err) {
		text_puts(why, "a size from 4K on (64M), seconds (10s), both (64M,10s), or none");
		return -EINVAL;
	}
	s->segment_bytes = parsed.segment_bytes;
	s->segment_ns = parsed.segment_ns;
	return 0;
}

static void show_segment(const struct settings *s, struct text *out)
{
	static const char letters[] = "KMGT";
	uint64_t n = s->segment_bytes;
	int letter = -1;

	for (; n && n % 1024 == 0 && letter < 3; letter++)
		n /= 1024;
	if (n)
		text_printf(out, "%ju%.*s", (uintmax_t)n, letter >= 0,
			&letters[letter >= 0 ? letter : 0]);
	if (s->segment_ns)
		text_printf(out, "%s%jus", n ? "," : "",
			(uintmax_t)(s->segment_ns / SETTINGS_NS_PER_S));
	if (!n && !s->segment_ns)
		text_puts(out, "none");
}

static int set_drop(struct settings *s, const char *value, struct text *why)
{
	if (strcmp(value, "none") && strcmp(value, "oldest")) {
		text_puts(why, "none or oldest");
		return -EINVAL;
	}
	s->drop_oldest = !strcmp(value, "oldest");
	return 0;
}

static void show_drop(const struct settings *s, struct text *out)
{
	text_puts(out, s->drop_oldest ? "oldest" : "none");
}

static int set_verbosity(struct settings *s, const char *value, struct text *why)
{
	static const char *const names[] = {"quiet", "normal", "verbose", "debug"};

	for (int i = 0; i < 4; i++) {
		if (strcmp(names[i], value))
			continue;
		s->verbosity = i - 1;
		return 0;
	}
	text_puts(why, "quiet, normal, verbose or debug");
	return -EINVAL;
}

static void show_verbosity(const struct settings *s, struct text *out)
{
	text_puts(out, s->verbosity < 0    ? "quiet"
		       : !s->verbosity     ? "normal"
		       : s->verbosity == 1 ? "verbose"
					   : "debug");
}

static const char *const host_keys_names[] = {
	[TRUST_AUTO] = "auto",
	[TRUST_ASK] = "ask",
	[TRUST_ACCEPT_NEW] = "accept-new",
	[TRUST_STRICT] = "strict",
};

static int set_host_keys(struct settings *s, const char *value, struct text *why)
{
	for (unsigned i = TRUST_AUTO; i <= TRUST_STRICT; i++) {
		if (strcmp(host_keys_names[i], value))
			continue;
		s->host_keys = (enum trust_policy)i;
		return 0;
	}
	text_puts(why, "auto, ask, accept-new or strict");
	return -EINVAL;
}

static void show_host_keys(const struct settings *s, struct text *out)
{
	text_puts(out, host_keys_names[s->host_keys]);
}

static int set_host_key(struct settings *s, const char *value, struct text *why)
{
	bool none = !strcmp(value, "none");

	if (!none && (strncmp(value, "SHA256:", 7) || strlen(value) != 7 + 43)) {
		text_puts(why, "a fingerprint (SHA256:... as rftpd logs it), or none");
		return -EINVAL;
	}
	strcpy(s->host_key, none ? "" : value);
	return 0;
}

static void show_or_none(const char *value, const char *none, struct text *out)
{
	text_puts(out, *value ? value : none);
}

static void show_host_key(const struct settings *s, struct text *out)
{
	show_or_none(s->host_key, "none", out);
}

static int set_path(char path[PATH_MAX], const char *value, struct text *why)
{
	if (!*value || strlen(value) >= PATH_MAX) {
		text_puts(why, "a file");
		return -EINVAL;
	}
	strcpy(path, value);
	return 0;
}

static int set_ca(struct settings *s, const char *value, struct text *why)
{
	if (strcmp(value, "none"))
		return set_path(s->ca, value, why);
	s->ca[0] = '\0';
	return 0;
}

static void show_ca(const struct settings *s, struct text *out)
{
	show_or_none(s->ca, "none", out);
}

static int set_known_hosts(struct settings *s, const char *value, struct text *why)
{
	if (!is_auto(value))
		return set_path(s->known_hosts, value, why);
	s->known_hosts[0] = '\0';
	return 0;
}

static void show_known_hosts(const struct settings *s, struct text *out)
{
	show_or_none(s->known_hosts, "auto", out);
}

static const char *const link_names[] = {
	[WALK_LINKS_KEEP] = "keep", [WALK_LINKS_FOLLOW] = "follow", [WALK_LINKS_SKIP] = "skip"};

static int set_links(struct settings *s, const char *value, struct text *why)
{
	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(link_names[i], value))
			continue;
		s->links = i;
		return 0;
	}
	text_puts(why, "keep, follow or skip");
	return -EINVAL;
}

static void show_links(const struct settings *s, struct text *out)
{
	text_puts(out, link_names[s->links]);
}

static int set_protect(struct settings *s, const char *value, struct text *why)
{
	for (uint8_t i = 0; message_protect_name(i); i++) {
		if (strcmp(message_protect_name(i), value))
			continue;
		s->protect = i;
		return 0;
	}
	text_puts(why, "clear, safe or private");
	return -EINVAL;
}

static void show_protect(const struct settings *s, struct text *out)
{
	text_puts(out, message_protect_name(s->protect));
}

#define BOOLEAN(name)                                                                              \
	static int set_##name(struct settings *s, const char *value, struct text *why)             \
	{                                                                                          \
		return parse_bool(value, &s->name, why);                                           \
	}                                                                                          \
	static void show_##name(const struct settings *s, struct text *out)                        \
	{                                                                                          \
		text_puts(out, s->name ? "on" : "off");                                            \
	}
BOOLEAN(crc)
BOOLEAN(recursive)
BOOLEAN(replace)
BOOLEAN(update)
BOOLEAN(ignore_existing)
BOOLEAN(json)

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
		"on|off", NULL, set_recursive, show_recursive},
	{{.name = "links",
		 .option = "links",
		 .help = "symbolic links in a tree: copied, or what they lead to is"},
		"keep|follow|skip", NULL, set_links, show_links},
	{{.name = "replace",
		 .option = "no-replace",
		 .letter = 'n',
		 .given = "off",
		 .help = "replace existing files",
		 .option_help = "an existing file is an error"},
		"on|off", NULL, set_replace, show_replace},
	{{.name = "update",
		 .option = "update",
		 .letter = 'u',
		 .given = "on",
		 .help = "leave out files that are not newer than what is there"},
		"on|off", NULL, set_update, show_update},
	{{.name = "ignore-existing",
		 .option = "ignore-existing",
		 .given = "on",
		 .help = "leave out files that are there already"},
		"on|off", NULL, set_ignore_existing, show_ignore_existing},
	{{.name = "fabric",
		 .option = "fabric",
		 .help = "transport: verbs is RDMA, soft is iWARP over TCP"},
		"auto", select_name, set_fabric, show_fabric},
	{{.name = "engine", .option = "engine", .help = "how blocks cross"}, "auto", name_of_engine,
		set_engine, show_engine},
	{{.name = "channels", .option = "channels", .help = "connections that carry data"},
		"auto|1..64", NULL, set_channels, show_channels},
	{{.name = "block", .option = "block", .help = "bytes of a block"}, "auto|64K..16M", NULL,
		set_block, show_block},
	{{.name = "depth", .option = "depth", .help = "blocks that the receiving side has"},
		"auto|1..65536", NULL, set_depth, show_depth},
	{{.name = "direct", .option = "direct", .help = "O_DIRECT, past the page cache"},
		"auto|on|off", NULL, set_direct, show_direct},
	{{.name = "crc",
		 .option = "crc",
		 .given = "on",
		 .help = "fabric soft: ask for CRC32C on the wire"},
		"on|off", NULL, set_crc, show_crc},
	{{.name = "connect-timeout",
		 .option = "connect-timeout",
		 .help = "how long to try to connect"},
		"SECONDS", NULL, set_connect_timeout, show_connect_timeout},
	{{.name = "timeout", .option = "timeout", .help = "how long a server may be silent"},
		"SECONDS", NULL, set_timeout, show_timeout},
	{{.name = "retries",
		 .option = "retries",
		 .help = "how often a copy is begun again when the connection is lost"},
		"0..1000000", NULL, set_retries, show_retries},
	{{.name = "protect",
		 .option = "protect",
		 .help = "what files contain: checksums, authentication, encryption"},
		"clear|safe|private", NULL, set_protect, show_protect},
	{{.name = "host-keys",
		 .option = "host-keys",
		 .help = "a server whose key is not known yet"},
		"auto|ask|accept-new|strict", NULL, set_host_keys, show_host_keys},
	{{.name = "host-key", .option = "host-key", .help = "the one key that the server may have"},
		"none|FINGERPRINT", NULL, set_host_key, show_host_key},
	{{.name = "known-hosts", .option = "known-hosts", .help = "keys that were trusted before"},
		"auto|FILE", NULL, set_known_hosts, show_known_hosts},
	{{.name = "ca", .option = "ca", .help = "authorities that may vouch for servers (PEM)"},
		"none|FILE", NULL, set_ca, show_ca},
	{{.name = "segment",
		 .option = "segment",
		 .help = "feed: begin another file at this size or age"},
		"none|SIZE|SECONDSs", NULL, set_segment, show_segment},
	{{.name = "drop",
		 .option = "drop",
		 .help = "feed: without room, wait (none), or drop the oldest packets"},
		"none|oldest", NULL, set_drop, show_drop},
	{{.name = "json",
		 .option = "json",
		 .given = "on",
		 .help = "report as one JSON object a line"},
		"on|off", NULL, set_json, show_json},
	{{.name = "verbosity", .help = "how much is said"}, "quiet|normal|verbose|debug", NULL,
		set_verbosity, show_verbosity},
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
			text_printf(why, "%s can not be ", name);
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
