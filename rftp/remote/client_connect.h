/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/client_connect: how a client comes to its session: what the settings say of TLS,
 * trust, login and ssh, and what is reported of the attempt.
 */
#ifndef RFTP_CLIENT_CONNECT_H
#define RFTP_CLIENT_CONNECT_H

#include "rftp/remote/client.h"
#include "rftp/remote/trust.h"

/*
 * The parameters of a session with the server of a URL, as the settings say; `peer` lives as long
 * as they do, as does the URL, and client_connect_peer_fini belongs to it.  -errno: reported, and
 * there is nothing to be freed.
 */
struct client_connect_peer {
	struct trust trust;
	struct login login;
};
int client_connect_params(struct client *, const struct url *, struct calls_params *,
	struct client_connect_peer *peer);
void client_connect_peer_fini(struct client_connect_peer *);
/* Opens a session, of which there is none, with the client's host; of an ssh:// URL it starts the
 * server.  0 or -errno, reported: then there is none still. */
int client_connect(struct client *);
/* Ends the server that was started for the session, if one was. */
void client_connect_end_ssh(struct client *);

#endif
