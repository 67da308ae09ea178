/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of how connections of the soft fabric are set up: replies and requests that are refused,
 * and many peers at once that say nothing.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tests/unit/soft_raw.h"

struct dial_case {
	const char *reply; /* NULL: none */
	size_t bytes;
	enum fabric_event_type want;
	int error;
};

static void dial_check(const struct dial_case *dial)
{
	const struct soft_config config = {.threads = 1, .handshake_ms = dial->reply ? 0 : 100};
	struct sockaddr_in in = raw_loopback(0);
	socklen_t len = sizeof(in);
	uint8_t request[24];
	struct fabric_event ev;
	struct fabric_wc wc;
	struct rig rig;
	int listener = raw_socket();

	CHECK(rig_open(&rig, &config));
	CHECK_EQ(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	CHECK_EQ(fabric_dial(rig.eq, (struct sockaddr *)&in, NULL, 1000, &rig.chan), 0);
	CHECK(rig_setup(&rig, 1));
	CHECK_EQ(fabric_chan_connect(rig.chan, NULL, 0), 0);
	rig.fd = accept(listener, NULL, NULL);
	CHECK(raw_recv(rig.fd, request, sizeof(request)));
	if (dial->reply) {
		CHECK(raw_send(rig.fd, dial->reply, dial->bytes));
		shutdown(rig.fd, SHUT_WR);
	}
	CHECK(rig_event(&rig, dial->want, &ev));
	CHECK_EQ(ev.error, dial->error);
	if (dial->want == FABRIC_EVENT_REJECTED) {
		CHECK_EQ(ev.priv_len, 3);
		CHECK(!memcmp(ev.priv, "why", 3));
	}
	/* what was posted comes back */
	CHECK(rig_wc(&rig, &wc));
	CHECK_EQ(wc.status, FABRIC_FLUSHED);
	CHECK_EQ(fabric_eq_get(rig.eq, &ev), 0);
	close(listener);
	rig_close(&rig);
}

static void test_dial_replies(void)
{
#define REPLY(text) "MPA ID Rep Frame" text, sizeof("MPA ID Rep Frame" text) - 1
	static const struct dial_case dials[] = {
		{REPLY("\x30\x02\x00\x07\0\0\0\0why"), FABRIC_EVENT_REJECTED, -ECONNREFUSED},
		{REPLY("\x20\x01\x00\x03why"), FABRIC_EVENT_REJECTED, -ECONNREFUSED},
		{REPLY("\x80\x01\x00\x00"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x00\x00\x00"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x03\x00\x00"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x10\x02\x00\x03"
		       "abc"),
			FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x10\x02\x00\x04\x00\x01\x3f\xff"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x01\xff\xff"), FABRIC_EVENT_FAILED, -EPROTO},
		{REPLY("\x00\x01\x00\x05"
		       "abc"),
			FABRIC_EVENT_FAILED, -ECONNRESET},
		{"HTTP/1.1 400 Bad Request\r\n", 26, FABRIC_EVENT_FAILED, -EPROTO},
		{"", 0, FABRIC_EVENT_FAILED, -ECONNRESET},
		{NULL, 0, FABRIC_EVENT_FAILED, -ETIMEDOUT},
	};

	for (size_t i = 0; i < sizeof(dials) / sizeof(dials[0]); i++) {
		dial_check(&dials[i]);
		if (harness_failed) {
			printf("# at reply %zu\n", i);
			return;
		}
	}
}

static void test_requests_refused(void)
{
#define REQUEST(text) "MPA ID Req Frame" text, sizeof("MPA ID Req Frame" text) - 1
	static const struct {
		const char *request;
		size_t bytes;
		bool answered; /* by a reject, not dropped */
	} rows[] = {
		{REQUEST("\x80\x01\x00\x00"), true},
		{REQUEST("\x90\x02\x00\x04\0\x01\0\x01"), true},
		{REQUEST("\x00\x00\x00\x00"), true},
		{REQUEST("\x00\x07\x00\x00"), true},
		{REQUEST("\x10\x02\x00\x03"
			 "abc"),
			false},
		{REQUEST("\x00\x01\xff\xff"), false},
		{REQUEST("\x00\x01\x01\x00"), false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35, false},
		{"MPA ID Rep Frame\0\x01\0\0", 20, false},
		{"M", 1, false},
	};
	const struct soft_config config = {.threads = 2};
	struct fabric_event ev;
	struct rig rig;

	CHECK(rig_open(&rig, &config));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t in[MPA_FRAME_MAX];
		struct mpa_frame reply;
		int fd = raw_socket();

		CHECK(raw_connect(fd, rig.port));
		CHECK(raw_send(fd, rows[i].request, rows[i].bytes));
		shutdown(fd, SHUT_WR);
		if (rows[i].answered) {
			CHECK(raw_reply(fd, in, &reply));
			CHECK(reply.reject && !reply.markers);
		}
		CHECK(raw_closed(fd));
		CHECK_EQ(fabric_eq_get(rig.eq, &ev), 0);
		close(fd);
	}
	/* and it still works */
	CHECK(rig_connect(&rig, false, 1));
	rig_close(&rig);
}

/* Some look at a reply only while the connection stands: who was rejected closes first. */
static void test_reject_then_silence(void)
{
	const struct mpa_frame request = {.kind = MPA_REQUEST, .revision = 1};
	uint8_t in[MPA_FRAME_MAX];
	struct mpa_frame reply;
	struct fabric_event ev;
	struct rig rig;
	int fd = raw_socket();

	CHECK(rig_open(&rig, NULL));
	CHECK(raw_connect(fd, rig.port) && raw_request(fd, &request));
	CHECK(rig_event(&rig, FABRIC_EVENT_REQUEST, &ev));
	CHECK_EQ(fabric_chan_reject(ev.chan, "why", 3), 0);
	CHECK(raw_reply(fd, in, &reply) && reply.reject && reply.priv_len == 3);
	CHECK(raw_silent(fd, 100));
	shutdown(fd, SHUT_WR);
	CHECK(raw_closed(fd));
	close(fd);
	rig_close(&rig);
}

/* ---- many who say nothing ---- */

static unsigned descriptors_raise(unsigned want)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < want) {
		limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	return (unsigned)limit.rlim_cur;
}

static void test_silent_peers(void)
{
	const struct soft_config config = {.threads = 2, .handshake_ms = 1500};
	const unsigned limit = descriptors_raise(2200);
	const unsigned count = limit >= 2200 ? 1000 : (limit - 200) / 2;
	int *fds = calloc(count, sizeof(*fds));
	struct fabric_event ev;
	struct rig rig;

	printf("# %u peers\n", count);
	CHECK(rig_open(&rig, &config));
	for (unsigned i = 0; i < count; i++) {
		fds[i] = raw_socket();
		CHECK(raw_connect(fds[i], rig.port));
	}
	/* They do not keep out one that speaks ... */
	CHECK(rig_connect(&rig, false, 1));
	/* ... and are dropped in time, without an event. */
	for (unsigned i = 0; i < count; i++) {
		CHECK(raw_closed(fds[i]));
		close(fds[i]);
	}
	CHECK_EQ(fabric_eq_get(rig.eq, &ev), 0);
	free(fds);
	rig_close(&rig);
}

static void test_handshakes_at_once(void)
{
	const struct soft_config config = {.threads = 1, .max_handshakes = 4};
	int fds[10];
	struct rig rig;

	CHECK(rig_open(&rig, &config));
	for (int i = 0; i < 10; i++) {
		fds[i] = raw_socket();
		CHECK(raw_connect(fds[i], rig.port));
	}
	for (int i = 0; i < 6; i++)
		CHECK(raw_closed(fds[i]));
	for (int i = 6; i < 10; i++)
		CHECK(raw_silent(fds[i], 10));
	CHECK(rig_connect(&rig, false, 1));
	CHECK(raw_closed(fds[6]));
	for (int i = 0; i < 10; i++)
		close(fds[i]);
	rig_close(&rig);
}

/* Runs in a process of its own: the limit holds for all of it. */
static int without_descriptors(void)
{
	enum { PEERS = 20, LEFT = 5 };
	const struct soft_config config = {.threads = 1};
	const struct mpa_frame request = {.kind = MPA_REQUEST, .revision = 1};
	struct rlimit limit;
	struct fabric_event ev;
	struct rig rig;
	int fds[PEERS + 1], probe;

	log_setup("soft", LOG_LEVEL_ERROR);
	if (!rig_open(&rig, &config))
		return 2;
	for (int i = 0; i <= PEERS; i++)
		fds[i] = raw_socket();
	probe = dup(0);
	close(probe);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)probe + LEFT;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i <= PEERS; i++)
		if (!raw_connect(fds[i], rig.port))
			return 3;
	/* Those who said nothing longest made room for the last, who speaks. */
	if (!raw_request(fds[PEERS], &request) || !rig_event(&rig, FABRIC_EVENT_REQUEST, &ev))
		return 4;
	fabric_chan_free(ev.chan);
	if (!raw_closed(fds[0]))
		return 5;
	for (int i = 0; i <= PEERS; i++)
		close(fds[i]);
	rig_close(&rig);
	return 0;
}

static void test_out_of_descriptors(void)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(without_descriptors());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* A listener and an event queue go while peers are half-way. */
static void test_close_half_way(void)
{
	for (int i = 0; i < 20; i++) {
		const struct soft_config config = {.threads = 2};
		const struct mpa_frame request = {.kind = MPA_REQUEST, .revision = 1};
		int fds[8];
		struct rig rig;

		CHECK(rig_open(&rig, &config));
		for (int k = 0; k < 8; k++) {
			fds[k] = raw_socket();
			CHECK(raw_connect(fds[k], rig.port));
			if (k % 2)
				CHECK(raw_request(fds[k], &request));
		}
		rig_close(&rig);
		for (int k = 0; k < 8; k++) {
			CHECK(raw_closed(fds[k]));
			close(fds[k]);
		}
	}
}

HARNESS_MAIN({"dial-replies", test_dial_replies}, {"requests-refused", test_requests_refused},
	{"reject-then-silence", test_reject_then_silence}, {"silent-peers", test_silent_peers},
	{"handshakes-at-once", test_handshakes_at_once},
	{"out-of-descriptors", test_out_of_descriptors}, {"close-half-way", test_close_half_way})
