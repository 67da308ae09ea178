/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/serve/burials: frees sessions that have ended: those that may take their time by a task,
 * for a device may hold up whoever destroys a queue pair or unpins memory.
 */
#ifndef RFTPD_BURIALS_H
#define RFTPD_BURIALS_H

#include "rftpd/serve/daemon.h"

/* Sessions of daemon->dead.  By the loop, when no event of theirs is looked at any more. */
void burials_begin(struct daemon *);
/* The same without tasks: they are all done, and there will be none. */
void burials_finish(struct daemon *);

#endif
