/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor: looks at this host, and at the way to a server, for what keeps rftp from
 * working well: a row for each check, with what was found and the command that mends it.
 */
#ifndef RFTP_DOCTOR_H
#define RFTP_DOCTOR_H

#include "rftp/remote/client.h"

struct doctor_params {
	const char *url;       /* NULL: this host only */
	const char *directory; /* where files would be; NULL: the current one */
};

/* 0: nothing needs mending; -EREMOTEIO: something does (exit code 1); -EINVAL: no URL; -ECANCELED.
 * Changes nothing in the client's session. */
int doctor_run(struct client *, const struct doctor_params *);

#endif
