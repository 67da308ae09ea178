/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_daemon: a daemon that runs, and a client that leads it to some state by the book and then
 * says anything.
 *
 * Input: a byte for the state, then what crosses behind it, as it is, in the control channel's
 * stream (the frames of proto/message.h): 0 before HELLO, 1 after it, 2 with data channels
 * expected, 3 with data channels, 4 in a STORE, 5 in a STORE that was offered, 6 in a RETRIEVE, 7
 * in a FEED.
 *
 * Property: the daemon answers or ends that session, and serves the next one; nothing is written
 * outside of the export.  A session that is as it was is used again.
 *
 * Both are in one thread, for speed: where the client would wait, the daemon has its round (poll is
 * wrapped).  They meet on the fabric loop, and TLS encrypts nothing (plain_tls.h): what these do is
 * other targets' and OpenSSL's.  Transfers and tasks have threads of their own, which make coverage
 * vary from run to run, so the options beside it turn off what libFuzzer concludes from that.
 * An input may take as long as all that is waited for here, on a host that is busy, which is longer
 * than others may.  They turn off its search for leaks after an input, too, which this target does
 * itself when the daemon has nothing to do: LeakSanitizer knows a thread by the kernel's number for
 * it, but takes an older thread that ended for it where the number has come again, and then does
 * not look at what the stack of the one that runs points to.
 */
#include "base/addr.h"
#include "base/clock.h"
#include "proto/transfer.h"
#include "proto/wire.h"
#include "rftpd/serve/daemon.h"
#include "rftpd/serve/daemon_session.h"
#include "rftpd/serve/daemon_stop.h"
#include "fabric/loop/loop.h"
#include "fabric/select.h"
#include "session/calls.h"
#include "session/connect.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plain_tls.h"
#include "tests/scratch.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <sanitizer/lsan_interface.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define COOKIE UINT64_C(0x636f6f6b69652121)
#define ANSWER_NS                                                                                  \
	(NS_PER_MS / 3) /* what the daemon has to say comes within this, or another session is     \
			   opened */
#define TIDY_EVERY 2000u
#define FILE_MOST (64u << 20) /* space is taken before it is needed: no input fills the disk */
#define QUIET_NS (60 * NS_PER_S)
#define ROUND_MS 20   /* the daemon looks at its clock at least so often */
#define LEAD_BYTES 8u /* of a frame */

enum state { NEW, READY, EXPECTING, CONNECTED, STORING, OFFERED, RETRIEVING, FEEDING, STATES };

static struct daemon daemon_;
static struct daemon_settings settings;
static struct calls_params params;
static struct calls *calls; /* NULL: none is open */
static char export[256], outside[256];

/* ---- the stream: any bytes in the place of a frame's head ---- */

int LLVMFuzzerInitialize(int *, char ***);
void __real_message_put_header(const struct message_header *, uint8_t *);
void __wrap_message_put_header(const struct message_header *, uint8_t *);

static __thread const uint8_t *forged; /* the head of the frame that is put now */

void __wrap_message_put_header(const struct message_header *h, uint8_t *out)
{
	if (forged)
		memcpy(out, forged, MESSAGE_HEADER_BYTES);
	else
		__real_message_put_header(h, out);
}

/* At least as long as the shortest RETRIEVE. */
static int put_stream(struct control *c, const uint8_t *data, size_t len)
{
	int r;

	forged = data;
	r = control_put(
		c, MESSAGE_RETRIEVE, 0, data + MESSAGE_HEADER_BYTES, len - MESSAGE_HEADER_BYTES);
	forged = NULL;
	return r;
}

/* ---- one fabric ---- */

static struct fabric *loop;

int __wrap_select_open(const char *name, const struct select_config *, struct fabric **);
int __wrap_select_open(const char *name, const struct select_config *config, struct fabric **out)
{
	(void)name;
	(void)config;
	*out = loop;
	return 0;
}

void __real_fabric_close(struct fabric *);
void __wrap_fabric_close(struct fabric *);
void __wrap_fabric_close(struct fabric *f)
{
	(void)f; /* the other side has it, too */
}

int __wrap_connect_any(const struct calls_params *, struct fabric **, struct link **,
	char address[64], struct calls_error *);
int __wrap_connect_any(const struct calls_params *p, struct fabric **fabric, struct link **link,
	char address[64], struct calls_error *error)
{
	const struct link_target target = {
		.dst = (const struct sockaddr *)&daemon_.addresses[0].ss,
		.tls = p->tls,
		.host = p->host,
	};
	uint16_t status;

	(void)error;
	*address = '\0';
	*fabric = loop;
	return link_connect(loop, &target, p->connect_timeout_ms, link, &status);
}

/* ---- the daemon ---- */

static __thread bool is_main; /* once the daemon is there */

int __real_poll(struct pollfd *, nfds_t, int timeout_ms);

/* What is ready; the daemon has had its round. */
static int look(struct pollfd *fds, nfds_t count, int daemon_ms)
{
	is_main = false; /* the daemon waits for nothing */
	must(!daemon_round(&daemon_, daemon_ms));
	is_main = true;
	return __real_poll(fds, count, 0);
}

int __wrap_poll(struct pollfd *, nfds_t, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	uint64_t until_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct pollfd all[8];
	int got;

	if (!is_main)
		return __real_poll(fds, count, timeout_ms);
	must(count < 8);
	while (!(got = look(fds, count, 0)) && timeout_ms &&
		(timeout_ms < 0 || clock_now_ns() < until_ns)) {
		int ms = timeout_ms < 0 ? ROUND_MS : clock_until_ms(until_ns);

		sched_yield(); /* other threads have most of what is waited for at once */
		if ((got = look(fds, count, 0)))
			break;
		memcpy(all, fds, count * sizeof *fds);
		all[count] = (struct pollfd){daemon_.poller.fd, POLLIN, 0};
		__real_poll(all, count + 1, ms < ROUND_MS ? ms : ROUND_MS);
	}
	return got;
}

static int trust(void *ctx, const struct tls *tls, const struct sockaddr *address, char *text)
{
	(void)ctx;
	(void)tls;
	(void)address;
	(void)text;
	return 0;
}

static void set(const char *name, const char *value)
{
	char why[DAEMON_WHY_MAX];

	must(!daemon_settings_set(&settings, DAEMON_ORIGIN_COMMAND, name, value, why));
}

static void make_export(void)
{
	char path[300];

	snprintf(path, sizeof path, "%s/d", export);
	(void)mkdir(path, 0755); /* whatever has become of the last ones */
	snprintf(path, sizeof path, "%s/f", export);
	(void)scratch_write(path, "contents");
	snprintf(path, sizeof path, "%s/out", export);
	(void)!symlink(outside, path);
}

static void end(void)
{
	calls_close(calls);
	is_main = false;
	daemon_stop_drain(&daemon_);
	must(!daemon_run(&daemon_));
	daemon_fini(&daemon_);
	daemon_settings_fini(&settings);
	tls_context_free((struct tls_context *)(uintptr_t)params.tls);
	__real_fabric_close(loop);
	scratch_remove_all();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char text[300], key[300], why[TLS_WHY_MAX];
	sigset_t mask;

	(void)argc;
	(void)argv;
	snprintf(export, sizeof export, "%s", scratch_dir());
	snprintf(outside, sizeof outside, "%s", scratch_dir());
	snprintf(key, sizeof key, "%s/key", scratch_dir());
	make_export();
	log_setup("rftpd", LOG_LEVEL_ERROR);
	must(!log_to_file("/dev/null"));
	daemon_settings_init(&settings);
	snprintf(text, sizeof text, "%s:rw", export);
	set("export", text);
	set("listen", "127.0.0.1:0");
	set("fabric", "soft");
	set("host-key", key);
	set("sandbox", "no"); /* this process has more to do */
	set("memory", "64M");
	set("max-block", "64K");
	sigemptyset(&mask);
	sigaddset(&mask, SIGHUP); /* the daemon's alone; what ends this program is not */
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	must(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){FILE_MOST, FILE_MOST}));
	must(!loop_open(&(struct loop_faults){.no_imm = true, .at_once = true}, &loop));
	must(!daemon_init(&daemon_, &settings, NULL));
	atexit(end);
	is_main = true;
	params = (struct calls_params){
		.host = "127.0.0.1",
		.port = addr_port((const struct sockaddr *)&daemon_.addresses[0].ss),
		.agent = "fuzz",
		.fabric = "soft",
		.trust = trust,
		.connect_timeout_ms = 10000,
		.reply_timeout_ms = 10000,
		.cancel_fd = -1,
	};
	must(!tls_context_new_client(&(struct tls_files){.key = NULL}, &params.tls, why));
	return 0;
}

/* ---- by the book ---- */

static int put(struct control *c, uint16_t type, const uint8_t *data, ssize_t len)
{
	return len < 0 ? (int)len : control_put(c, type, 0, data, (size_t)len);
}

static int ask_for_data(uint16_t type)
{
	struct message_data_request request = {
		.kind = 1,
		.path = {(const uint8_t *)"f", 1},
	};
	uint8_t data[64];
	const uint8_t *reply;
	size_t len;

	return calls_ask(calls, type, data, message_put_data_request(&request, data, sizeof data),
		&reply, &len);
}

static int ask_for_feed(void)
{
	struct message_feed request = {
		.streams = 4, .segment_bytes = 65536, .path = {(const uint8_t *)"feed", 4}};
	uint8_t data[64];
	const uint8_t *reply;
	size_t len;

	return calls_ask(calls, MESSAGE_FEED, data, message_put_feed(&request, data, sizeof data),
		&reply, &len);
}

/* The next frame of a type. */
static int await(struct control *c, uint16_t type, uint64_t until_ns)
{
	struct message_header h;
	const uint8_t *data;

	for (;;) {
		int r = control_get(c, &h, &data);

		if (r < 0)
			return r;
		if (r && h.type == type)
			return 0;
		if (!r && clock_now_ns() >= until_ns)
			return -ETIMEDOUT;
		if (!r)
			control_wait(c, 1, -1);
	}
}

static int offer(struct control *c)
{
	struct transfer_offer offer = {.engine = MESSAGE_ENGINE_CREDIT,
		.notice = 1,
		.channels = 1,
		.block = 65536,
		.depth = 4,
		.files = 1,
		.bytes = 65536};
	uint8_t data[128];
	int r = put(c, TRANSFER_OFFER, data, transfer_put_offer(&offer, data, sizeof data));

	return r ? r : await(c, TRANSFER_ACCEPT, clock_now_ns() + 10 * NS_PER_S);
}

static int lead(enum state state)
{
	struct calls_error error;
	uint8_t two[2] = {0, 2};
	const uint8_t *reply;
	size_t len;
	int r = 0;

	if (!calls)
		r = calls_open(&params, &calls, &error);
	if (!r && state == EXPECTING)
		r = calls_ask(calls, MESSAGE_CHANNELS, two, sizeof two, &reply, &len);
	if (!r && state >= CONNECTED)
		r = calls_channels(calls, 0, 1);
	if (!r && (state == STORING || state == OFFERED))
		r = ask_for_data(MESSAGE_STORE);
	if (!r && state == RETRIEVING)
		r = ask_for_data(MESSAGE_RETRIEVE);
	if (!r && state == FEEDING)
		r = ask_for_feed();
	if (!r && state == OFFERED)
		r = offer(link_control(calls_link(calls)));
	return r;
}

/* ---- and then anything ---- */

/* What comes, then what ends a transfer, then PINGs: the last one is answered if all was well. */
static size_t stream(uint8_t *out, enum state state, const uint8_t *data, size_t size)
{
	struct wire w;
	unsigned count = (41 - 1) / (LEAD_BYTES + 8) + 2;

	memcpy(out, data, size);
	wire_init_put(&w, out + size, 256);
	if (state >= STORING) {
		wire_put_u16(&w, TRANSFER_ABORT);
		wire_put_u16(&w, 0);
		wire_put_u32(&w, 4);
		wire_put_u16(&w, 108);
		wire_put_u16(&w, 0);
	}
	for (unsigned i = 0; i < count; i++) {
		wire_put_u16(&w, MESSAGE_PING);
		wire_put_u16(&w, 0);
		wire_put_u32(&w, 8);
		wire_put_u64(&w, COOKIE);
	}
	return size + wire_put_length(&w);
}

/* Whether the session is as it was. */
static bool is_answered(struct control *c)
{
	unsigned left = (41 - 1) / (LEAD_BYTES + 8) + 2;

	while (left && !await(c, MESSAGE_PING | MESSAGE_REPLY, clock_now_ns() + ANSWER_NS))
		left--;
	return !left;
}

/* Its transfer has ended, if there was one: else the next input would wait for that. */
static bool is_idle(void)
{
	uint64_t until_ns = clock_now_ns() + ANSWER_NS;
	const struct daemon_session *s, *ours;

	do {
		ours = NULL;
		TAILQ_FOREACH(s, &daemon_.sessions, entry)
		ours = s; /* the newest */
		if (!ours || (ours->state == SESSION_READY && !ours->transfers.running))
			return ours;
		look(NULL, 0, 0);
		sched_yield();
	} while (clock_now_ns() < until_ns);
	return false;
}

static void before_hello(const uint8_t *data, size_t size)
{
	static uint8_t bytes[70000];
	struct calls_error error;
	struct fabric *fabric;
	struct link *link;
	char address[64];

	if (connect_any(&params, &fabric, &link, address, &error))
		return;
	if (!put_stream(link_control(link), bytes, stream(bytes, NEW, data, size)))
		is_answered(link_control(link));
	link_free(link);
	fabric_close(fabric);
}

static bool is_busy(void)
{
	return daemon_.session_count || daemon_.burials || task_pool_busy(daemon_.tasks) ||
	       task_pool_busy(daemon_.checks) || task_pool_busy(daemon_.asks);
}

/* Now and then what clients made goes, once the daemon has nothing left to do, which must come to
 * pass, and no memory is lost then. */
static void tidy(void)
{
	static unsigned runs;
	uint64_t until_ns = clock_now_ns() + QUIET_NS;
	struct dirent *entry;
	DIR *dir;

	if (runs++ % TIDY_EVERY)
		return;
	calls_close(calls);
	calls = NULL;
	while (is_busy() && clock_now_ns() < until_ns)
		look(NULL, 0, ROUND_MS);
	must(!is_busy());
	must(!__lsan_do_recoverable_leak_check());
	must(scratch_entries(outside) == 0);
	dir = opendir(export);
	must(dir);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			unlinkat(dirfd(dir), entry->d_name, 0))
			scratch_remove(dirfd(dir), entry->d_name);
	closedir(dir);
	make_export();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[70000];
	enum state state;
	struct control *c;

	if (!size || size > 65000)
		return 0;
	state = data[0] % STATES;
	if (state == NEW) {
		before_hello(data + 1, size - 1);
		return 0;
	}
	tidy();
	if (lead(state)) { /* a transfer of what an earlier input has put there, or taken away */
		calls_close(calls);
		calls = NULL;
		make_export();
		return 0;
	}
	c = link_control(calls_link(calls));
	if (!put_stream(c, bytes, stream(bytes, state, data + 1, size - 1)) && is_answered(c) &&
		is_idle())
		return 0;
	calls_close(calls);
	calls = NULL;
	return 0;
}
