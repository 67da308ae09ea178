/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/askpass: a password or passphrase from whoever sits there: on the terminal, or from a
 * program that asks, with the environment's names for it as ssh(1) has them.
 *
 * SSH_ASKPASS_REQUIRE: "never", no program; "force", always the program; "prefer", the program
 * where there is one and a display (DISPLAY, WAYLAND_DISPLAY); anything else, the program where
 * there is a display and no terminal.  SSH_ASKPASS: the program; unset: ssh-askpass, if there is
 * one.
 */
#ifndef RFTP_ASKPASS_H
#define RFTP_ASKPASS_H

#include "rftp/remote/password.h"

/*
 * 0; -ENODATA: nothing was answered, or the program ended with an error, as it does when the answer
 * is refused; -ENOTTY: there is neither a terminal nor a program; -ECANCELED: `cancel_fd` (-1:
 * none) is readable; -errno, also of the program that cannot be started.  After an error `why`
 * says it, and nothing is left in `answer`.  Blocks.
 */
int askpass_ask(
	const char *prompt, int cancel_fd, char answer[PASSWORD_MAX], char why[PASSWORD_WHY_MAX]);

#endif
