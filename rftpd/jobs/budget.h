/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/budget: amounts of what the daemon has only so much of.
 *
 * Plain arithmetic, and what suits a host.  Who gets how much is the scheduler's.
 */
#ifndef RFTPD_BUDGET_H
#define RFTPD_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t memory_bytes; /* of blocks */
	uint32_t files;        /* open at once; each needs BUDGET_FILE_DESCRIPTORS at most */
	uint32_t threads;
};

/* The file itself, the directory that it is in, and what walking there takes. */
#define BUDGET_FILE_DESCRIPTORS 4u
/* The least that the settings take: one transfer runs with half of it. */
#define BUDGET_MEMORY_MIN (UINT64_C(16) << 20)
#define BUDGET_FILES_MIN 8u
#define BUDGET_THREADS_MIN 8u

/* What a host has, for choosing defaults. */
struct budget_host {
	uint64_t spare_bytes; /* memory that can be had; UINT64_MAX: not known */
	uint64_t descriptors; /* that the process may have */
	unsigned cpus;
};

void budget_measure_host(struct budget_host *);
/* A part of it: sessions, the page cache and other programs need theirs. */
void budget_of_host(const struct budget_host *, struct budget *out);

bool budget_fits(const struct budget *part, const struct budget *whole);
void budget_add(struct budget *, const struct budget *more);
/* `less` must fit. */
void budget_sub(struct budget *, const struct budget *less);
/* The smaller of each. */
struct budget budget_min(const struct budget *, const struct budget *);
struct budget budget_max(const struct budget *, const struct budget *);
struct budget budget_half(const struct budget *);

#endif
