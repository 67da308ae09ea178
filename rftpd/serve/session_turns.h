/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/session_turns: when the frames of a session's dialogue are read and handled: some of
 * them, then it is the turn of the other sessions.
 *
 * A session has a turn when its descriptor is readable, or, without that, when it is looked at in
 * the loop's next round.  In the loop's thread.
 */
#ifndef RFTPD_SESSION_TURNS_H
#define RFTPD_SESSION_TURNS_H

#include <stdbool.h>

struct daemon_session;

/* Has the loop watch where the dialogue's frames show: the control channel itself, or, while
 * transfers read there, what they leave for it.  It may end the session. */
void session_turns_watch(struct daemon_session *);
/* Frames that came while none could be looked at make no descriptor readable: the next round looks.
 */
void session_turns_look(struct daemon_session *);
/* Reads and answers what there is, for one turn. */
void session_turns_take(struct daemon_session *);
/* Of a connection that has gone: whether BYE is among what came before.  A client that is done does
 * not wait for the end of what it need not know of any more. */
bool session_turns_said_bye(struct daemon_session *);
/* It has no turn any more. */
void session_turns_end(struct daemon_session *);

#endif
