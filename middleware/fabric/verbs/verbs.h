/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric/verbs/verbs: RDMA devices by rdma-core: InfiniBand, RoCE and iWARP, adapters and the
 * kernel's own software devices (rxe, siw).  Built only where rdma-core's headers are (RFTP_VERBS).
 */
#ifndef FABRIC_VERBS_H
#define FABRIC_VERBS_H

#include "fabric/fabric.h"

/*
 * -ENODEV: this host has no RDMA device, or no connection manager for it (said before any library
 * of rdma-core is asked, which might print); -EACCES: they are there, but not for this user.
 */
int verbs_open(struct fabric **out);

/*
 * Closes devices that have gone and that nobody uses any more.  librdmacm keeps every device open
 * that it ever used, and the kernel may wait for that before it lets one go.
 */
void verbs_close_gone(void);

#endif
