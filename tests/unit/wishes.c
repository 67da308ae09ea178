/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/wishes: what the settings say of a transfer is what its request says.
 */
#include "tests/harness.h"

#include "rftp/copy/wishes.h"

static struct settings settings;
static struct message_data_request request;

static bool set(const char *name, const char *value)
{
	struct text why = {0};
	int err = settings_set(&settings, name, value, &why);

	if (err)
		printf("# %s %s: %s\n", name, value, text_str(&why));
	text_fini(&why);
	return !err;
}

static void plain(void)
{
	settings_init(&settings);
	settings.resume_bytes = 77;
	request = (struct message_data_request){.flags = MESSAGE_DATA_INTO};
	wishes_store(&settings, &request);
	CHECK_EQ(request.flags, MESSAGE_DATA_INTO);
	CHECK_EQ(request.resume, 77);
	CHECK_EQ(request.block + request.depth + request.direct, 0);
	request = (struct message_data_request){.flags = MESSAGE_DATA_INTO};
	wishes_retrieve(&settings, &request);
	CHECK_EQ(request.flags &
			 ~((uint32_t)MESSAGE_DATA_SQUEEZE_MASK << MESSAGE_DATA_SQUEEZE_SHIFT),
		MESSAGE_DATA_INTO);
	CHECK_EQ(request.resume, 0); /* the sink's own affair */
	CHECK(wishes_replaces(&settings));
	CHECK(!wishes_rereads(&settings));
	CHECK_EQ(wishes_keeps(&settings), 0);
	CHECK_EQ(wishes_incoming_fsync(&settings), INCOMING_FSYNC_FILE);
}

static void sizes(void)
{
	settings_init(&settings);
	CHECK(set("block", "128K") && set("depth", "9") && set("direct", "off") &&
		set("engine", "status"));
	request = (struct message_data_request){0};
	wishes_store(&settings, &request);
	CHECK_EQ(request.block, 131072);
	CHECK_EQ(request.depth, 9);
	CHECK_EQ(request.direct, 2);
	CHECK_EQ(request.engine, 0); /* the source says which one, in OFFER */
	CHECK(set("direct", "on"));
	wishes_retrieve(&settings, &request);
	CHECK_EQ(request.block, 131072);
	CHECK_EQ(request.depth, 9);
	CHECK_EQ(request.direct, 1);
	CHECK_EQ(request.engine, MESSAGE_ENGINE_STATUS);
}

static void files_that_are_there(void)
{
	settings_init(&settings);
	CHECK(set("replace", "off"));
	CHECK(!wishes_replaces(&settings));
	CHECK_EQ(wishes_store_flags(&settings), MESSAGE_DATA_NO_REPLACE);
	CHECK(set("replace", "on") && set("ignore-existing", "on"));
	CHECK(!wishes_replaces(&settings));
	CHECK_EQ(wishes_store_flags(&settings), MESSAGE_DATA_NO_REPLACE);
	CHECK(set("ignore-existing", "off") && set("update", "on"));
	CHECK_EQ(wishes_store_flags(&settings), MESSAGE_DATA_UPDATE);
}

static void flushing(void)
{
	static const struct {
		const char *name;
		uint32_t flag;
		enum incoming_fsync here;
	} rows[] = {
		{"file", MESSAGE_DATA_FSYNC_FILE, INCOMING_FSYNC_FILE},
		{"end", MESSAGE_DATA_FSYNC_END, INCOMING_FSYNC_END},
		{"never", MESSAGE_DATA_FSYNC_NEVER, INCOMING_FSYNC_NEVER},
	};

	settings_init(&settings);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(set("fsync", rows[i].name));
		CHECK_EQ(wishes_store_flags(&settings), rows[i].flag);
		CHECK_EQ(wishes_incoming_fsync(&settings), rows[i].here);
	}
}

static void reading_twice(void)
{
	static const struct {
		const char *name;
		bool source, sink;
	} rows[] = {{"wire", false, false}, {"file", true, false}, {"readback", false, true},
		{"all", true, true}};

	settings_init(&settings);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(set("verify", rows[i].name));
		CHECK_EQ(wishes_rereads(&settings), rows[i].source);
		request = (struct message_data_request){0};
		wishes_store(&settings, &request);
		CHECK_EQ(request.flags, rows[i].sink ? MESSAGE_DATA_READBACK : 0);
		request = (struct message_data_request){0};
		settings.compress = 0;
		wishes_retrieve(&settings, &request);
		CHECK_EQ(request.flags, rows[i].source ? MESSAGE_DATA_REREAD : 0);
	}
}

static void what_is_kept(void)
{
	settings_init(&settings);
	settings.compress = 3;
	settings.owner = settings.group = settings.xattrs = settings.acls = true;
	settings.numeric_ids = settings.hard_links = true;
	settings.links = WALK_LINKS_FOLLOW;
	CHECK_EQ(wishes_keeps(&settings),
		TRANSFER_HAS_OWNER | TRANSFER_HAS_GROUP | TRANSFER_HAS_XATTRS | TRANSFER_HAS_ACLS);
	CHECK_EQ(wishes_owner_flags(&settings),
		MESSAGE_DATA_OWNER | MESSAGE_DATA_GROUP | MESSAGE_DATA_NUMERIC);
	request = (struct message_data_request){0};
	wishes_retrieve(&settings, &request);
	CHECK_EQ(message_data_squeeze(request.flags), 3);
	request.flags &= ~((uint32_t)MESSAGE_DATA_SQUEEZE_MASK << MESSAGE_DATA_SQUEEZE_SHIFT);
	CHECK_EQ(request.flags, MESSAGE_DATA_OWNER | MESSAGE_DATA_GROUP | MESSAGE_DATA_NUMERIC |
					MESSAGE_DATA_XATTRS | MESSAGE_DATA_ACLS |
					MESSAGE_DATA_HARD_LINKS | MESSAGE_DATA_FOLLOW_LINKS);
	settings.links = WALK_LINKS_SKIP;
	request = (struct message_data_request){0};
	wishes_retrieve(&settings, &request);
	CHECK_EQ(request.flags & (MESSAGE_DATA_FOLLOW_LINKS | MESSAGE_DATA_SKIP_LINKS),
		MESSAGE_DATA_SKIP_LINKS);
}

/* A file that is there, and that nobody replaces. */
static void in_place(void)
{
	settings_init(&settings);
	CHECK(set("fsync", "end") && set("verify", "readback"));
	settings.preallocate = settings.update = true;
	settings.replace = false;
	settings.resume_bytes = 77;
	settings.in_place = true;
	settings.offset = 4096;
	request = (struct message_data_request){0};
	wishes_store(&settings, &request);
	CHECK_EQ(request.flags, MESSAGE_DATA_IN_PLACE | MESSAGE_DATA_FSYNC_END);
	CHECK_EQ(request.resume, 4096);
}

HARNESS_MAIN({"plain", plain}, {"sizes", sizes}, {"files_that_are_there", files_that_are_there},
	{"flushing", flushing}, {"reading_twice", reading_twice}, {"what_is_kept", what_is_kept},
	{"in_place", in_place})
