/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/handle_session: HELLO, BYE, PING, CHANNELS, ADMIT, RING, and an ABORT that came too
 * late.
 *
 * Owns what is negotiated: the minima of both sides' limits.
 */
#include "base/clock.h"
#include "engine/engine.h"
#include "proto/status.h"
#include "proto/transfer.h"
#include "rftpd/jobs/job_turns.h"
#include "rftpd/auth/login.h"
#include "rftpd/serve/session_log.h"
#include "rftpd/serve/admit.h"
#include "rftpd/serve/close_task.h"
#include "rftpd/serve/handle.h"
#include "session/pipe_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

#define AGENT "rftpd/" RFTP_VERSION

static uint32_t our_engines(void)
{
	uint32_t bits = 0;

	for (unsigned i = 0; engine_at(i); i++)
		bits |= 1u << engine_at(i)->id;
	return bits;
}

/* Whether the control channel ends at the client itself, and not at a relay. */
static bool is_direct(const struct daemon_session *s, const struct message_hello *hello)
{
	uint32_t port = hello->flags >> MESSAGE_HELLO_PORT_SHIFT;

	return port && port == addr_port(fabric_chan_peer(control_chan(link_control(s->link))));
}

int handle_hello(struct daemon_session *s, const uint8_t *data, size_t len)
{
	const struct daemon_settings *settings = s->daemon->settings;
	uint8_t reply[28 + MESSAGE_NAME_MAX];
	char agent[MESSAGE_NAME_MAX + 1];
	struct message_hello hello;
	int err = message_get_hello(&hello, data, len);

	if (err)
		return err;
	s->max_channels = (uint16_t)MIN(hello.max_channels, settings->max_channels);
	s->max_block = (uint32_t)MIN(hello.max_block, settings->max_block_bytes);
	s->max_block = MIN(s->max_block, job_turns_max_block(settings));
	s->max_depth = MIN(hello.max_depth, link_max_depth(s->link));
	s->takes_queued = hello.flags & MESSAGE_HELLO_QUEUED;
	s->max_transfers = MIN(hello.max_transfers, MESSAGE_TRANSFERS_MAX);
	s->engines = hello.engines & our_engines();
	s->protect = (uint8_t)message_hello_protect(hello.flags);
	if (s->protect > MESSAGE_PROTECT_PRIVATE) /* of a later version: the best of ours */
		s->protect = MESSAGE_PROTECT_PRIVATE;
	if (s->protect < settings->protect)
		s->protect = settings->protect;
	if (!s->engines) {
		err = daemon_session_refuse(s, MESSAGE_HELLO, STATUS_UNSUPPORTED,
			"no engine that both sides have (client 0x%" PRIx32 ", daemon 0x%" PRIx32
			")",
			hello.engines, our_engines());
		daemon_session_close(s, "no common engine");
		return err;
	}
	session_log(s, LOG_LEVEL_INFO, "connected: %s, %s, %.*s", link_fabric_name(s->link),
		message_protect_name(s->protect), (int)hello.agent.len,
		(const char *)hello.agent.data);
	snprintf(agent, sizeof agent, "%.*s", (int)hello.agent.len, (const char *)hello.agent.data);
	audit_write(&s->daemon->audit, &(struct audit_event){.event = "begin",
					       .session = s->number,
					       .peer = s->peer,
					       .fabric = link_fabric_name(s->link),
					       .agent = agent});
	hello = (struct message_hello){
		.version = MIN(hello.version, MESSAGE_VERSION),
		.max_channels = s->max_channels,
		.max_block = s->max_block,
		.max_depth = s->max_depth,
		.max_transfers = (uint16_t)s->max_transfers,
		.engines = s->engines,
		.session = s->number,
		.flags = (uint32_t)login_methods(settings) << MESSAGE_HELLO_METHODS_SHIFT |
			 (is_direct(s, &hello) ? MESSAGE_HELLO_DIRECT : 0) |
			 (uint32_t)s->protect << MESSAGE_HELLO_PROTECT_SHIFT,
		.agent = {(const uint8_t *)AGENT, strlen(AGENT)},
	};
	deadline_stop(&s->deadline);
	daemon_session_await_login(s);
	return daemon_session_reply(
		s, MESSAGE_HELLO, reply, message_put_hello(&hello, reply, sizeof reply));
}

int handle_bye(struct daemon_session *s, const uint8_t *data, size_t len)
{
	int err = daemon_session_reply(s, MESSAGE_BYE, NULL, 0);

	(void)data;
	(void)len;
	s->said_bye = true;
	daemon_session_close(s, "bye");
	return err;
}

int handle_ping(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_ping ping;
	uint8_t reply[8];
	int err = message_get_ping(&ping, data, len);

	if (err)
		return err;
	if (!ping.cookie)
		return 0; /* a transfer's keep-alive that crossed its end: it is not answered */
	return daemon_session_reply(
		s, MESSAGE_PING, reply, message_put_ping(&ping, reply, sizeof reply));
}

/* ---- data channels ---- */

static int expect_channels(struct daemon_session *s, unsigned transfer, unsigned wanted)
{
	struct message_channels_reply channels;
	uint8_t reply[36];
	unsigned count = admit_channels(s->daemon, MIN(wanted, s->max_channels));
	int err = link_expect_channels(s->link, transfer, s->number, count, &channels);

	if (err)
		return daemon_session_refuse(s, MESSAGE_CHANNELS, status_from_errno(err),
			"data channels: %s", strerror(-err));
	session_transfers_expect_channels(s, &s->transfers.of[transfer], channels.count);
	return daemon_session_reply(s, MESSAGE_CHANNELS, reply,
		message_put_channels_reply(&channels, reply, sizeof reply));
}

static int are_closed(struct daemon_session *s, unsigned transfer, unsigned wanted)
{
	return wanted ? expect_channels(s, transfer, wanted) : daemon_session_abort(s, transfer);
}

/* Those that there are go; `wanted`: new ones, by CHANNELS; 0: it was an ABORT. */
static int close_channels(struct daemon_session *s, unsigned wanted)
{
	session_transfers_expect_channels(s, session_transfers_asked(s), 0);
	return close_task_do(s, s->asked, are_closed, wanted);
}

int handle_channels(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct message_channels wanted;
	int err = message_get_channels(&wanted, data, len);

	return err ? err : close_channels(s, wanted.count);
}

/* Which class there is, a daemon with bandwidth knows; without, all are one. */
int handle_admit(struct daemon_session *s, const uint8_t *data, size_t len)
{
	const struct daemon_settings *settings = s->daemon->settings;
	char class[MESSAGE_CLASS_MAX + 1], names[MESSAGE_TEXT_MAX / 2];
	struct message_admit admit;
	int err = message_get_admit(&admit, data, len);

	if (err)
		return err;
	snprintf(class, sizeof class, "%.*s", (int)admit.class.len, (const char *)admit.class.data);
	if (*class && !settings->bandwidth)
		return daemon_session_refuse(s, MESSAGE_ADMIT, STATUS_UNSUPPORTED,
			"priority \"%s\": this server has no classes of transfers", class);
	if (*class && !admission_rule_exists(settings->classes, settings->class_count, class)) {
		admission_rule_names(settings->classes, settings->class_count, names, sizeof names);
		return daemon_session_refuse(s, MESSAGE_ADMIT, STATUS_INVALID,
			"priority \"%s\": there is no such class; there are %s", class, names);
	}
	memcpy(s->admit_class, class, sizeof class);
	s->admit_deadline_ns = admit.deadline_ns;
	s->admit_fails = admit.flags & MESSAGE_ADMIT_FAIL;
	return daemon_session_reply(s, MESSAGE_ADMIT, NULL, 0);
}

/* From the reply on the client reads what it is told; without a ring it is told as before. */
int handle_ring(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct pipe *pipe = control_pipe(link_control(s->link));
	struct message_ring_reply ring;
	uint8_t reply[16];
	int err;

	(void)data;
	(void)len;
	if (!(s->engines & 1u << MESSAGE_ENGINE_PULL))
		return daemon_session_refuse(s, MESSAGE_RING, STATUS_UNSUPPORTED,
			"replies by READ are for sessions that have the engine pull");
	if (s->state == SESSION_RUNNING)
		return daemon_session_refuse(
			s, MESSAGE_RING, STATUS_BUSY, "replies by READ begin between transfers");
	err = pipe_ring_serve(pipe, &ring);
	if (err == -EEXIST)
		return -EBADMSG;
	if (err)
		return daemon_session_refuse(s, MESSAGE_RING, status_from_errno(err),
			"replies by READ: %s", strerror(-err));
	err = daemon_session_reply(
		s, MESSAGE_RING, reply, message_put_ring_reply(&ring, reply, sizeof reply));
	if (!err)
		pipe_ring_begin(pipe);
	return err;
}

/* The client gave up a transfer that had ended here: it waits for our ABORT, and has closed its
 * data channels. */
int handle_abort(struct daemon_session *s, const uint8_t *data, size_t len)
{
	struct transfer_abort abort;
	int err = transfer_get_abort(&abort, data, len);

	if (err)
		return err;
	if (session_transfers_abort_copy(s))
		return 0;
	if (s->transfers.waits == session_transfers_asked(s))
		session_transfers_give_up(s);
	if (s->dead)
		return 0;
	session_transfers_asked(s)->early = false;
	demux_unpark(link_demux(s->link), s->asked);
	return close_channels(s, 0);
}
