/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_calls: replies of a server, on the client's side (session/calls, session/calls_names,
 * session/calls_leftovers).
 *
 * Input: a byte that says what is asked, with bit 7: HELLO, LOGIN and the PINGs behind them are
 * answered by the input, too; then frames: a byte (0: the reply that is due; 1: PING; 2: QUEUED;
 * else a type follows in 16 bits), the response in 16 bits, the length in 16 bits, and so many
 * bytes.
 */
#include "proto/message_login.h"
#include "tests/calls_stub.h"
#include "session/calls_leftovers.h"
#include "tests/fuzz/fuzz.h"

static struct fuzz_input frames;
static bool opening; /* and it is answered as it should be */
static uint8_t stub_data[64];

static int answer(struct message_header *h)
{
	static uint64_t cookie;
	const struct message_hello hello = {
		.version = MESSAGE_VERSION,
		.max_channels = 4,
		.max_block = 1 << 20,
		.max_depth = 16,
		.max_transfers = 2,
		.engines = 2,
		.session = 1,
	};
	const struct message_login_reply login = {
		.rights = MESSAGE_RIGHTS, .home = {(const uint8_t *)"/", 1}};
	struct message_ping ping = {.cookie = ++cookie};

	if (calls_stub_asked == MESSAGE_HELLO) {
		cookie = 0;
		h->length = (uint32_t)message_put_hello(&hello, stub_data, sizeof stub_data);
	} else if (calls_stub_asked == MESSAGE_LOGIN) {
		cookie = 0;
		h->length = (uint32_t)message_put_login_reply(&login, stub_data, sizeof stub_data);
	} else {
		h->length = (uint32_t)message_put_ping(&ping, stub_data, sizeof stub_data);
	}
	h->type = calls_stub_asked | MESSAGE_REPLY;
	return 1;
}

static int calls_stub_frame(struct message_header *h, const uint8_t **data)
{
	static const uint16_t others[] = {MESSAGE_PING, MESSAGE_QUEUED};
	uint8_t kind;
	size_t len;

	*h = (struct message_header){0};
	*data = stub_data;
	if (opening && (calls_stub_asked == MESSAGE_HELLO || calls_stub_asked == MESSAGE_LOGIN ||
			       calls_stub_asked == MESSAGE_PING))
		return answer(h);
	if (!frames.left)
		return -ECONNRESET;
	kind = fuzz_byte(&frames);
	h->type = !kind      ? calls_stub_asked | MESSAGE_REPLY
		  : kind < 3 ? others[kind - 1]
			     : fuzz_u16(&frames);
	h->response = fuzz_u16(&frames);
	*data = fuzz_bytes(&frames, fuzz_u16(&frames), &len);
	h->length = (uint32_t)len;
	return message_check(h) ? -EBADMSG : 1; /* as control_get has it */
}

static int found(void *ctx, const struct message_leftover *m)
{
	(void)ctx;
	must(!m || (m->path.len && m->verified_bytes <= m->size));
	return 0;
}

static void ask(struct calls *c, unsigned what)
{
	const struct message_leftovers leftovers = {.path = {(const uint8_t *)"/", 1}};
	const struct message_data_request request = {
		.kind = MESSAGE_DATA_FILES, .path = {(const uint8_t *)"/f", 2}};
	const struct message_feed feed = {.streams = 1, .path = {(const uint8_t *)"/f", 2}};
	struct message_statfs_reply fs;
	struct message_attr attr;
	struct calls_list list;
	int err = 0;

	switch (what % 9) {
	case 0:
		err = calls_stat(c, "/f", &attr);
		must(err || (attr.mode <= 07777 && attr.mtime_ns < NS_PER_S));
		break;
	case 1:
		err = calls_list(c, "/", &list);
		must(!err || !list.count);
		for (size_t i = 0; i < list.count; i++)
			must(!strchr(list.entries[i].name, '/') && list.entries[i].name[0] &&
				(!i || strcmp(list.entries[i - 1].name, list.entries[i].name) <=
						0));
		calls_list_free(&list);
		break;
	case 2:
		err = calls_statfs(c, "/", &fs);
		break;
	case 3:
		err = calls_rename(c, "/a", "/b", true);
		break;
	case 4:
		err = calls_store(c, 0, &request);
		break;
	case 5:
		err = calls_retrieve(c, 0, &request);
		break;
	case 6:
		err = calls_feed(c, 0, &feed);
		break;
	case 8:
		err = calls_leftovers(c, &leftovers, found, NULL);
		break;
	default:
		err = calls_channels(c, 0, 2);
	}
	must(err <= 0);
	must(!err || calls_error(c)->status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct calls_params params = {
		.host = "localhost",
		.agent = "fuzz",
		.fabric = "",
		.connect_timeout_ms = 3000,
		.trust = calls_stub_trust,
		.cancel_fd = -1,
	};
	struct calls_error why;
	struct calls *c;
	uint8_t what;

	frames = (struct fuzz_input){data, size};
	what = fuzz_byte(&frames);
	opening = !(what & 0x80);
	if (calls_open(&params, &c, &why)) {
		must(why.status);
		return 0;
	}
	must(strlen(calls_info(c)->agent) <= MESSAGE_NAME_MAX);
	opening = false;
	for (unsigned i = 0; i < 3 && !calls_lost(c); i++)
		ask(c, what + i);
	calls_close(c);
	return 0;
}
