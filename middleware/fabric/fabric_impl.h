/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/fabric_impl.h: what a fabric implements.  Included by middleware/fabric/ only.
 *
 * Each fabric embeds these bases as the first member of its own objects and fills in the table;
 * fabric.c checks arguments that all share (lengths, opcodes against caps, sge counts) and
 * forwards.
 */
#ifndef FABRIC_FABRIC_IMPL_H
#define FABRIC_FABRIC_IMPL_H

#include "fabric/fabric.h"

struct fabric_ops {
	const char *name;
	void (*close)(struct fabric *);

	int (*eq_new)(struct fabric *, struct fabric_eq **);
	void (*eq_free)(struct fabric_eq *);
	int (*eq_fd)(const struct fabric_eq *);
	int (*eq_get)(struct fabric_eq *, struct fabric_event *);

	int (*listen)(
		struct fabric_eq *, const struct sockaddr *, socklen_t, struct fabric_listener **);
	int (*listener_addr)(const struct fabric_listener *, struct sockaddr_storage *);
	void (*listener_free)(struct fabric_listener *);

	int (*dial)(struct fabric_eq *, const struct sockaddr *dst, const struct sockaddr *src, int,
		struct fabric_chan **);
	void (*chan_reach)(struct fabric_chan *); /* may be NULL */
	int (*chan_setup)(struct fabric_chan *, const struct fabric_chan_attr *);
	int (*chan_connect)(struct fabric_chan *, const void *, size_t);
	int (*chan_accept)(struct fabric_chan *, const void *, size_t);
	int (*chan_reject)(struct fabric_chan *, const void *, size_t);
	void (*chan_disconnect)(struct fabric_chan *);
	void (*chan_free)(struct fabric_chan *);
	void (*chan_describe)(const struct fabric_chan *, char *, size_t);

	int (*pd_new)(struct fabric_chan *, struct fabric_pd **);
	void (*pd_free)(struct fabric_pd *);
	int (*mr_new)(struct fabric_pd *, void *, size_t, unsigned, struct fabric_mr **);
	void (*mr_free)(struct fabric_mr *);
	int (*mr_watch)(struct fabric_mr *, struct fabric_cq *); /* may be NULL */
	int (*mr_rekey)(struct fabric_mr *);                     /* may be NULL */

	int (*cq_new)(struct fabric_pd *, uint32_t, struct fabric_cq **);
	void (*cq_free)(struct fabric_cq *);
	int (*cq_poll)(struct fabric_cq *, struct fabric_wc *, int);
	int (*cq_arm)(struct fabric_cq *);
	int (*cq_fd)(const struct fabric_cq *);
	void (*cq_ack)(struct fabric_cq *);

	int (*post_send)(struct fabric_chan *, const struct fabric_wr *);
	int (*post_recv)(struct fabric_chan *, uint64_t, void *, uint32_t, struct fabric_mr *);
};

struct fabric {
	const struct fabric_ops *ops;
};
struct fabric_eq {
	struct fabric *fabric;
};
struct fabric_listener {
	struct fabric *fabric;
};
struct fabric_pd {
	struct fabric *fabric;
};
struct fabric_cq {
	struct fabric *fabric;
};
struct fabric_mr {
	struct fabric *fabric;
	uint32_t key;
	uint64_t base;
};
struct fabric_chan {
	struct fabric *fabric;
	void *context, *owner;
	struct fabric_caps caps;
	struct sockaddr_storage peer;
	/* known once connected; 0: not known */
	uint64_t rtt_ns;
	uint16_t local_port;
};

#endif
