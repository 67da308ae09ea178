/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/property/floods: transfers in which one side gets nothing but keep-alives from some frame
 * on, as many as it asks for.  control_get is wrapped for that (see Makefile).
 *
 * Property: that side ends, by its time-out or when it is cancelled, wherever it was.
 */
#include "../harness.h"
#include "../quiet.h"
#include "pair.h"

#include "base/clock.h"
#include "fabric/loop/loop.h"
#include "transfer/transfer.h"
#include "tree/incoming.h"
#include "tree/outgoing.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define ENDS_NS (20 * NS_PER_S) /* on a busy host, too */

/* Who is flooded, after so many frames. */
static struct control *victim;
static unsigned frames_left;
static bool is_flooded;
static int cancel_fd; /* raised when the flood begins; -1: not */

int __real_control_get(struct control *, struct message_header *, const uint8_t **);
int __wrap_control_get(struct control *, struct message_header *, const uint8_t **);

int __wrap_control_get(struct control *c, struct message_header *h, const uint8_t **data)
{
	static const uint8_t cookie[8];
	const uint64_t one = 1;
	int r;

	if (c == victim && !frames_left && !is_flooded) {
		is_flooded = true;
		if (cancel_fd >= 0 && write(cancel_fd, &one, sizeof one) != sizeof one)
			abort();
	}
	r = __real_control_get(c, h, data);
	if (c != victim || r < 0 || (r && h->type == TRANSFER_ABORT))
		return r;
	if (!is_flooded) {
		frames_left -= r && h->type != MESSAGE_PING;
		return r;
	}
	*h = (struct message_header){.type = MESSAGE_PING, .length = sizeof cookie};
	*data = cookie;
	return 1;
}

struct side {
	struct link *link;
	struct transfer_params params;
	struct transfer_stats stats;
	uint64_t took_ns;
};

static char dir[256];

static void run_source(void *arg)
{
	struct side *side = arg;
	struct outgoing_params params = {.top = AT_FDCWD, .direct = END_DIRECT_OFF};
	uint64_t begun = clock_now_ns();
	struct outgoing *out;
	char path[300];

	snprintf(path, sizeof path, "%s/from", dir);
	assert(!outgoing_new(&params, &out) && !outgoing_add(out, path, "f"));
	transfer_send(side->link, &side->params, outgoing_source(out), &side->stats);
	outgoing_free(out);
	side->took_ns = clock_now_ns() - begun;
}

static void run_sink(void *arg)
{
	struct side *side = arg;
	struct incoming_params params = {
		.kind = INCOMING_INTO,
		.top = AT_FDCWD,
		.path = dir,
		.replace = true,
		.direct = END_DIRECT_OFF,
	};
	uint64_t begun = clock_now_ns();
	struct incoming *in;

	assert(!incoming_new(&params, &in));
	transfer_receive(side->link, &side->params, incoming_sink(in), &side->stats);
	incoming_free(in);
	side->took_ns = clock_now_ns() - begun;
}

/* The side that is flooded from its frame `after` on. */
static struct side flood(bool source, unsigned after, bool cancelled)
{
	struct transfer_params params = {
		.block = 65536,
		.depth = 4,
		.max_block = 1 << 20,
		.max_depth = RAIL_DEPTH,
		.engine = MESSAGE_ENGINE_CREDIT,
		.cancel_fd = -1,
	};
	struct side sides[2] = {{.params = params}, {.params = params}};
	struct side *flooded = &sides[!source];
	struct worker other = {0};
	struct fabric *fabric;
	struct pair pair;

	assert(!loop_open(&(struct loop_faults){0}, &fabric));
	assert(!pair_open(&pair, fabric, 1));
	sides[0].link = pair.client;
	sides[1].link = pair.daemon;
	cancel_fd = -1;
	if (cancelled)
		flooded->params.cancel_fd = cancel_fd = eventfd(0, EFD_CLOEXEC);
	else /* and a minute of the other side's */
		flooded->params.idle_timeout_ms = 100;
	victim = link_control(flooded->link);
	frames_left = after;
	is_flooded = false;
	assert(!worker_start(&other, "source", run_source, &sides[0]));
	run_sink(&sides[1]);
	worker_stop(&other);
	victim = NULL;
	pair_close(&pair);
	if (cancel_fd >= 0)
		close(cancel_fd);
	return *flooded;
}

static void floods(bool source, bool cancelled)
{
	const char *tmp = getenv("TMPDIR");
	uint16_t status = cancelled ? STATUS_CANCELLED : STATUS_TIMEOUT;
	char path[300], *data = calloc(1, BYTES);
	bool right = true;
	int fd;

	snprintf(dir, sizeof dir, "%s/rftp-floods-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(data && mkdtemp(dir));
	snprintf(path, sizeof path, "%s/from", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	CHECK_EQ(write(fd, data, BYTES), BYTES);
	close(fd);
	free(data);
	/* while it waits for the first frame, within the transfer, and near its end */
	for (unsigned after = 0; after < 4; after++) {
		struct side side = flood(source, after, cancelled);

		if (side.stats.verdict.status == status && side.took_ns < ENDS_NS)
			continue;
		printf("# after %u frames: status %u, %s, after %" PRIu64 " ms\n", after,
			side.stats.verdict.status, side.stats.verdict.text,
			(uint64_t)(side.took_ns / NS_PER_MS));
		right = false;
	}
	unlink(path);
	snprintf(path, sizeof path, "%s/f", dir);
	unlink(path);
	CHECK(!rmdir(dir));
	CHECK(right);
}

static void source_times_out(void)
{
	floods(true, false);
}

static void source_is_cancelled(void)
{
	floods(true, true);
}

static void sink_times_out(void)
{
	floods(false, false);
}

static void sink_is_cancelled(void)
{
	floods(false, true);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"a source that hears keep-alives alone times out", source_times_out},
		{"a source that hears keep-alives alone is cancelled", source_is_cancelled},
		{"a sink that hears keep-alives alone times out", sink_times_out},
		{"a sink that hears keep-alives alone is cancelled", sink_is_cancelled},
		{NULL, NULL},
	};

	if (!quiet_log("floods"))
		return 2;
	alarm(300); /* a side that does not end */
	return harness_run(cases, argc, argv);
}
