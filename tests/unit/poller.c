/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/serve/poller. */
#include "rftpd/serve/poller.h"
#include "tests/harness.h"

#include <sys/eventfd.h>
#include <unistd.h>

struct bell {
	struct poller *poller;
	struct watch watch;
	struct watch *other; /* is removed when this one rings */
	int fd;
	unsigned rung;
};

static void ring(void *owner)
{
	struct bell *b = owner;

	b->rung++;
	if (b->other)
		poller_remove(b->poller, b->other);
}

static void each_ready_one_is_called(void)
{
	struct bell bells[3] = {0};
	struct poller p;

	CHECK_EQ(poller_init(&p), 0);
	for (int i = 0; i < 3; i++) {
		bells[i].poller = &p;
		bells[i].fd = eventfd(i < 2, EFD_CLOEXEC);
		bells[i].watch.fd = -1;
		CHECK(!(bells[i].watch.fd >= 0));
		CHECK_EQ(poller_add(&p, &bells[i].watch, bells[i].fd, ring, &bells[i]), 0);
		CHECK((bells[i].watch.fd >= 0));
	}
	CHECK_EQ(poller_wait(&p, -1), 0);
	CHECK_EQ(bells[0].rung, 1);
	CHECK_EQ(bells[1].rung, 1);
	CHECK_EQ(bells[2].rung, 0);

	/* whichever comes first removes the other, whose event waits already */
	bells[0].other = &bells[1].watch;
	bells[1].other = &bells[0].watch;
	CHECK_EQ(poller_wait(&p, -1), 0);
	CHECK_EQ(bells[0].rung + bells[1].rung, 3);

	for (int i = 0; i < 3; i++) {
		poller_remove(&p, &bells[i].watch);
		poller_remove(&p, &bells[i].watch);
		close(bells[i].fd);
	}
	CHECK_EQ(poller_wait(&p, 0), 0);
	CHECK_EQ(bells[0].rung + bells[1].rung + bells[2].rung, 3);
	poller_fini(&p);
}

HARNESS_MAIN({"each ready one is called", each_ready_one_is_called})
