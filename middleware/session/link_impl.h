/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/link_impl.h: what link.c and link_client.c share.
 */
#ifndef SESSION_LINK_IMPL_H
#define SESSION_LINK_IMPL_H

#include "session/link.h"

#include <pthread.h>

/* What the two sides of a data channel show. */
struct tokens {
	uint8_t greeting[MESSAGE_TOKEN_BYTES], welcome[MESSAGE_TOKEN_BYTES];
};

/* Client: the data channels of a transfer that are not connected yet. */
struct opening {
	unsigned waiting; /* of them */
	int error;        /* of the first that failed */
	struct message_token_context token;
};

struct link {
	struct fabric_eq *eq; /* client: its own; daemon: NULL */
	struct control *control;
	struct sockaddr_storage peer, src; /* client: where data channels go to and come from */
	bool has_src;
	int lost;               /* client: -errno of the control channel's event */
	uint64_t secured_in_ns; /* client: what TLS took, a round trip and two hosts' work */
	struct demux *demux;
	/* channels are looked up for events while a transfer's thread may close them */
	pthread_mutex_t lock;
	/* client: whoever has it takes the events in; it is had for long while channels are opened
	 */
	pthread_mutex_t events_lock;
	struct rail *rails[MESSAGE_TRANSFERS_MAX]; /* by transfer; NULL: it never had channels */
	struct opening openings[MESSAGE_TRANSFERS_MAX];
	/* client: dialled before it was known what they are to show */
	struct fabric_chan *dialled[MESSAGE_CHANNELS_MAX];
	unsigned dialled_count;
	bool may_reach; /* TCP may connect to the peer ahead: its welcome says so */
	uint64_t dialled_ns;
	/* daemon: by transfer and number; as many as its rail has channels */
	struct tokens *tokens[MESSAGE_TRANSFERS_MAX];
	struct area_budget *areas; /* daemon: NULL: it has none */
};

/* A link with the control channel `chan`, which is taken over, also on error; `host` is a client's.
 */
int link_new(
	struct fabric_chan *chan, const struct tls_context *, const char *host, struct link **out);
/* The rail of a transfer whose channels are about to be opened.  0 or -ENOMEM. */
int link_make_rail(struct link *, unsigned transfer);

#endif
