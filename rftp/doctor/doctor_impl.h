/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/doctor/doctor_impl: what the checks share; for doctor*.c and their tests only.
 *
 * A check writes rows and returns; it never fails itself.  What each result means:
 *   ok    as it should be
 *   info  nothing to mend, worth knowing; a command beside it would make things faster
 *   warn  works, but less well than it could: to mend
 *   fail  does not work: to mend
 *   skip  could not be looked at, the cause says why
 * What only RDMA needs is `fail` where devices are there or --fabric asks for them, `info` on a
 * host without: fabric soft needs none of it.
 */
#ifndef RFTP_DOCTOR_IMPL_H
#define RFTP_DOCTOR_IMPL_H

#include "end/end.h"
#include "fabric/device.h"
#include "session/calls.h"

enum doctor_result {
	DOCTOR_OK,
	DOCTOR_INFO,
	DOCTOR_WARN,
	DOCTOR_FAIL,
	DOCTOR_SKIP,
	DOCTOR_RESULTS
};

struct doctor_row {
	const char *check;
	const char *object; /* what it is about: a device, a directory, an address; "": this host */
	enum doctor_result result;
	const char *cause;
	const char *mend; /* a command; NULL: none */
};

struct doctor {
	/* given */
	const char *root; /* in front of /sys, /proc and /dev: "" but in tests */
	const char *directory;
	enum end_direct direct;
	const char *fabric;          /* "" : any */
	struct calls_params session; /* to connect with; host NULL: do not */
	uint16_t channels;           /* of the rate test; 0: chosen */
	int (*probe)(const struct device_port *, struct device_probe *);
	int (*try_register)(const struct device_port *, size_t bytes);
	void (*row)(void *ctx, const struct doctor_row *);
	void *ctx;

	/* found */
	struct device_port ports[DEVICE_PORTS_MAX];
	unsigned port_count;
	bool no_rights; /* on /dev/infiniband: devices cannot be asked */
	unsigned counts[DOCTOR_RESULTS];
	const char *check; /* that runs */
};

/* Zeros, and what is right outside of tests. */
void doctor_init(struct doctor *);
/* All checks in order. */
void doctor_checks(struct doctor *);

/* A row of the check that runs. */
void doctor_say(struct doctor *, enum doctor_result, const char *object, const char *mend,
	const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A small file beneath the root, its last newline cut.  Whether there is something in it. */
bool doctor_read(const struct doctor *, const char *path, char *out, size_t size);
bool doctor_exists(const struct doctor *, const char *path);
/* Whether what RDMA lacks is to be mended: it is asked for by name. */
bool doctor_wants_verbs(const struct doctor *);

/* doctor_rdma.c */
void doctor_modules(struct doctor *);
void doctor_devices(struct doctor *);
void doctor_rights(struct doctor *);
void doctor_memlock(struct doctor *);
/* doctor_port.c */
void doctor_state(struct doctor *);
void doctor_mtu(struct doctor *);
void doctor_gid(struct doctor *);
void doctor_numa(struct doctor *);
/* doctor_host.c */
void doctor_openat2(struct doctor *);
void doctor_files(struct doctor *);
void doctor_huge_pages(struct doctor *);
void doctor_tcp_buffers(struct doctor *);
void doctor_congestion(struct doctor *);
/* doctor_disk.c */
void doctor_aio(struct doctor *);
void doctor_direct(struct doctor *);
/* doctor_peer.c */
void doctor_peer(struct doctor *);

/* The most that the kernel lets a TCP connection have under way, in bytes; 0: not known. */
uint64_t doctor_tcp_window(const struct doctor *);

#endif
