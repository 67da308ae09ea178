/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/visit: a URL as the user wrote it, and the server that it names.
 */
#ifndef RFTP_REMOTE_VISIT_H
#define RFTP_REMOTE_VISIT_H

#include "rftp/remote/client.h"
#include "rftp/remote/url.h"

/* url_parse.  0, and *url is the caller's to free by url_fini; -errno, reported: it holds nothing.
 */
int visit_parse(struct client *, const char *name, struct url *);
/* And connects to its server, and finds its place there (client_open, client_place). */
int visit_open(struct client *, const char *name, struct url *);

#endif
