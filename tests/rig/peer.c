/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/rig/peer: rftp as a peer that does not keep to what was agreed.
 *
 * It is the client, linked with --wrap for the two calls that hand requests to a fabric, so that
 * session, handshake and transfer are the real ones.  What it does wrong is in RIG_PEER:
 *
 *   outside   WRITEs, from the third on, go past the end of all that the daemon granted
 *   key       WRITEs, from the third on, name a key that the daemon did not give
 *   deaf      receives on data channels are not posted: what the daemon sends there finds none
 *
 * Knows nothing of what the daemon should do about it.
 */
#include "fabric/fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD_WRITES 2u       /* before the first bad one: the transfer is well under way */
#define FAR_BYTES (UINT64_C(1) << 40) /* beyond any memory of the daemon */
#define LIST_MAX 64u
#define NOTICE_BYTES_MAX 1024u /* receives of the control channel are larger */

int __real_fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list);
int __wrap_fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list);
int __real_fabric_post_recv(struct fabric_chan *chan, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr);
int __wrap_fabric_post_recv(struct fabric_chan *chan, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr);

static bool peer_is(const char *what)
{
	const char *wanted = getenv("RIG_PEER");

	return wanted && !strcmp(wanted, what);
}

static void spoil(struct fabric_wr *wr)
{
	static _Atomic unsigned writes;

	if ((wr->opcode != FABRIC_WRITE && wr->opcode != FABRIC_WRITE_IMM) || ++writes <= GOOD_WRITES)
		return;
	if (peer_is("outside"))
		wr->remote_addr += FAR_BYTES;
	else if (peer_is("key"))
		wr->remote_key ^= 0x5a5a00;
	else
		return;
	fprintf(stderr, "peer: a bad write\n");
}

int __wrap_fabric_post_send(struct fabric_chan *chan, const struct fabric_wr *list)
{
	struct fabric_wr copy[LIST_MAX];
	unsigned n = 0;

	for (; list; list = list->next) {
		if (n == LIST_MAX)
			return -EINVAL;
		copy[n] = *list;
		copy[n].next = NULL;
		spoil(&copy[n]);
		if (n)
			copy[n - 1].next = &copy[n];
		n++;
	}
	return __real_fabric_post_send(chan, n ? copy : NULL);
}

int __wrap_fabric_post_recv(struct fabric_chan *chan, uint64_t id, void *addr, uint32_t bytes,
	struct fabric_mr *mr)
{
	if (peer_is("deaf") && bytes <= NOTICE_BYTES_MAX)
		return 0;
	return __real_fabric_post_recv(chan, id, addr, bytes, mr);
}
