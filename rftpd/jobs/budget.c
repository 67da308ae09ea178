/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/jobs/budget: see budget.h.
 */
#include "rftpd/jobs/budget.h"

#include "base/spare.h"
#include "base/worker.h"

#include <assert.h>
#include <sys/resource.h>

#define MEMORY_PART 4u /* of the memory that can be had, blocks get one such part */
#define MEMORY_UNKNOWN (UINT64_C(1) << 30)
#define MEMORY_MAX (UINT64_C(64) << 30)
#define DESCRIPTORS_PART 2u /* the other half is for sessions and their channels */
#define FILES_MAX 65536u
#define THREADS_CPU 16u   /* most of a transfer's threads wait for a disk or for the peer */
#define THREADS_LEAST 32u /* of more, a crowd of clients on few CPUs gets slower */

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

void budget_measure_host(struct budget_host *host)
{
	struct rlimit limit = {.rlim_cur = 1024};

	getrlimit(RLIMIT_NOFILE, &limit);
	*host = (struct budget_host){
		.spare_bytes = spare_memory_bytes(""),
		.descriptors = limit.rlim_cur,
		.cpus = worker_cpus(),
	};
}

void budget_of_host(const struct budget_host *host, struct budget *out)
{
	uint64_t memory =
		host->spare_bytes == UINT64_MAX ? MEMORY_UNKNOWN : host->spare_bytes / MEMORY_PART;

	*out = (struct budget){
		.memory_bytes = clamp(memory, BUDGET_MEMORY_MIN, MEMORY_MAX),
		.files = (uint32_t)clamp(
			host->descriptors / DESCRIPTORS_PART / BUDGET_FILE_DESCRIPTORS,
			BUDGET_FILES_MIN, FILES_MAX),
		.threads = (uint32_t)clamp(
			(uint64_t)host->cpus * THREADS_CPU, THREADS_LEAST, UINT16_MAX),
	};
}

bool budget_fits(const struct budget *part, const struct budget *whole)
{
	return part->memory_bytes <= whole->memory_bytes && part->files <= whole->files &&
	       part->threads <= whole->threads;
}

void budget_add(struct budget *b, const struct budget *more)
{
	b->memory_bytes += more->memory_bytes;
	b->files += more->files;
	b->threads += more->threads;
}

void budget_sub(struct budget *b, const struct budget *less)
{
	assert(budget_fits(less, b));
	b->memory_bytes -= less->memory_bytes;
	b->files -= less->files;
	b->threads -= less->threads;
}

struct budget budget_min(const struct budget *a, const struct budget *b)
{
	return (struct budget){
		.memory_bytes =
			a->memory_bytes < b->memory_bytes ? a->memory_bytes : b->memory_bytes,
		.files = a->files < b->files ? a->files : b->files,
		.threads = a->threads < b->threads ? a->threads : b->threads,
	};
}

struct budget budget_max(const struct budget *a, const struct budget *b)
{
	return (struct budget){
		.memory_bytes =
			a->memory_bytes > b->memory_bytes ? a->memory_bytes : b->memory_bytes,
		.files = a->files > b->files ? a->files : b->files,
		.threads = a->threads > b->threads ? a->threads : b->threads,
	};
}

struct budget budget_half(const struct budget *b)
{
	return (struct budget){b->memory_bytes / 2, b->files / 2, b->threads / 2};
}
