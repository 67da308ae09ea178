/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree/sum: see sum.h.
 */
#include "tree/sum.h"

#include "base/clock.h"
#include "proto/message_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#define SUM_READ (256u << 10)

static const struct {
	uint8_t algorithm;
	const char *name;
	unsigned bytes;
	const char *openssl; /* NULL: it is not OpenSSL's */
} sums[] = {
	{MESSAGE_SUM_XXH128, "xxh128", 16, NULL},
	{MESSAGE_SUM_SHA256, "sha256", 32, "SHA256"},
	{MESSAGE_SUM_CRC32, "crc32", 4, NULL},
	{MESSAGE_SUM_MD5, "md5", 16, "MD5"},
};
#define SUMS (sizeof sums / sizeof *sums)

struct sum {
	int fd;
	bool stream;
	uint8_t algorithm;
	struct stat before;
	uint64_t done;
	EVP_MD_CTX *evp;
	XXH3_state_t *xxh;
	uLong crc;
	uint8_t result[SUM_BYTES_MAX];
};

const char *sum_name(uint8_t algorithm)
{
	for (size_t i = 0; i < SUMS; i++)
		if (sums[i].algorithm == algorithm)
			return sums[i].name;
	return NULL;
}

uint8_t sum_by_name(const char *name)
{
	for (size_t i = 0; i < SUMS; i++)
		if (!strcmp(sums[i].name, name))
			return sums[i].algorithm;
	return 0;
}

unsigned sum_bytes(uint8_t algorithm)
{
	for (size_t i = 0; i < SUMS; i++)
		if (sums[i].algorithm == algorithm)
			return sums[i].bytes;
	return 0;
}

/* 0, or -ENOMEM; -EOPNOTSUPP: OpenSSL has it not, or may not (FIPS and MD5). */
static int sum_begin(struct sum *s)
{
	const char *openssl = NULL;
	EVP_MD *md;
	int ok;

	for (size_t i = 0; i < SUMS; i++)
		if (sums[i].algorithm == s->algorithm)
			openssl = sums[i].openssl;
	if (s->algorithm == MESSAGE_SUM_XXH128) {
		s->xxh = XXH3_createState();
		return s->xxh && XXH3_128bits_reset(s->xxh) == XXH_OK ? 0 : -ENOMEM;
	}
	if (s->algorithm == MESSAGE_SUM_CRC32) {
		s->crc = crc32(0, NULL, 0);
		return 0;
	}
	s->evp = EVP_MD_CTX_new();
	md = EVP_MD_fetch(NULL, openssl, NULL);
	ok = s->evp && md && EVP_DigestInit_ex2(s->evp, md, NULL);
	EVP_MD_free(md);
	return ok ? 0 : s->evp ? -EOPNOTSUPP : -ENOMEM;
}

static int sum_make(int fd, uint8_t algorithm, bool stream, struct sum **out)
{
	struct sum *s = malloc(sizeof *s);
	int err;

	*out = NULL;
	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->fd = fd;
	s->stream = stream;
	s->algorithm = algorithm;
	s->done = 0;
	s->evp = NULL;
	s->xxh = NULL;
	err = fstat(fd, &s->before) ? -errno : 0;
	if (!err && !stream && !S_ISREG(s->before.st_mode))
		err = S_ISDIR(s->before.st_mode) ? -EISDIR : -ENXIO;
	if (!err)
		err = sum_begin(s);
	if (err) {
		sum_free(s);
		return err;
	}
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*out = s;
	return 0;
}

int sum_new(int fd, uint8_t algorithm, struct sum **out)
{
	return sum_make(fd, algorithm, false, out);
}

int sum_new_stream(int fd, uint8_t algorithm, struct sum **out)
{
	return sum_make(fd, algorithm, true, out);
}

void sum_free(struct sum *s)
{
	if (!s)
		return;
	EVP_MD_CTX_free(s->evp);
	XXH3_freeState(s->xxh);
	close(s->fd);
	free(s);
}

static bool sum_add(struct sum *s, const uint8_t *buffer, size_t bytes)
{
	if (s->xxh)
		return XXH3_128bits_update(s->xxh, buffer, bytes) == XXH_OK;
	if (s->evp)
		return EVP_DigestUpdate(s->evp, buffer, bytes);
	s->crc = crc32(s->crc, buffer, (uInt)bytes);
	return true;
}

static int sum_end(struct sum *s)
{
	XXH128_canonical_t canonical;
	struct stat now;

	if (fstat(s->fd, &now))
		return -errno;
	if (!s->stream && (now.st_size != s->before.st_size || s->done != (uint64_t)now.st_size ||
				  now.st_mtim.tv_sec != s->before.st_mtim.tv_sec ||
				  now.st_mtim.tv_nsec != s->before.st_mtim.tv_nsec))
		return -ESTALE;
	if (s->xxh) {
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(s->xxh));
		memcpy(s->result, canonical.digest, sizeof canonical.digest);
	} else if (s->evp) {
		if (!EVP_DigestFinal_ex(s->evp, s->result, NULL))
			return -EIO;
	} else {
		for (unsigned i = 0; i < 4; i++)
			s->result[i] = (uint8_t)(s->crc >> (24 - 8 * i));
	}
	return 0;
}

int sum_step(struct sum *s, uint64_t until_ns)
{
	uint8_t buffer[SUM_READ]; /* the thread's: sums that wait for their turn need none */
	ssize_t n;

	do {
		n = s->stream ? read(s->fd, buffer, sizeof buffer)
			      : pread(s->fd, buffer, sizeof buffer, (off_t)s->done);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return sum_end(s);
		if (n > 0 && !sum_add(s, buffer, (size_t)n))
			return -EIO;
		s->done += n > 0 ? (uint64_t)n : 0;
	} while (!s->stream && clock_now_ns() < until_ns);
	return 1;
}

uint64_t sum_done_bytes(const struct sum *s)
{
	return s->done;
}

const uint8_t *sum_result(const struct sum *s)
{
	return s->result;
}
