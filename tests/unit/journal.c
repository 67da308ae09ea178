/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/journal.c: what a journal says is believed where the partial file proves it, and
 * nowhere else; what nobody goes on with is swept.
 */
#include "tests/harness.h"

#include "block/digest.h"
#include "tests/scratch.h"
#include "tree/journal.h"
#include "tree/journal_record.h"
#include "tree/leftover.h"

#include <sys/file.h>
#include <time.h>

#define BLOCK 65536u
#define BLOCKS 10u
#define SIZE (BLOCK * (BLOCKS - 1) + 1000u)

static const struct transfer_file source = {
	.size = SIZE, .mtime_s = -5, .mtime_ns = 7, .identity = 0xabcdef};
static uint8_t content[BLOCK * BLOCKS];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 2654435761u >> 13);
}

static uint32_t length_of(uint64_t index, uint32_t block)
{
	uint64_t left = SIZE - index * block;

	return left < block ? (uint32_t)left : block;
}

struct one {
	int dir, fd;
	char partial[JOURNAL_PATH_BYTES], path[JOURNAL_PATH_BYTES];
	struct journal *journal;
};

static void begin(struct one *o, int dir, const char *name, const struct transfer_file *file)
{
	o->dir = dir;
	CHECK_EQ(journal_open(dir, name, file, o->partial, &o->fd, &o->journal), 0);
	journal_other_name(o->partial, o->path);
}

static void end(struct one *o)
{
	close(o->fd);
	journal_close(o->journal);
}

/* Writes blocks and notes them. */
static void land(struct one *o, const unsigned *indices, unsigned count)
{
	struct transfer_note notes[BLOCKS];

	for (unsigned i = 0; i < count; i++) {
		uint32_t length = length_of(indices[i], BLOCK);
		off_t at = (off_t)indices[i] * BLOCK;

		CHECK_EQ(pwrite(o->fd, content + at, length, at), length);
		notes[i] = (struct transfer_note){indices[i], digest_leaf(content + at, length)};
	}
	journal_note(o->journal, notes, count);
}

/* The blocks that are there, as bits; each has the right checksum. */
static void recall_to(struct one *o, uint32_t block, unsigned *bits)
{
	struct transfer_notes found = {0};

	*bits = 0;

	while (journal_recall(o->journal, o->fd, block, &found))
		;
	for (size_t i = 0; i < found.count; i++) {
		const struct transfer_note *n = &found.items[i];

		CHECK(!i || n->index > found.items[i - 1].index);
		CHECK_EQ(n->leaf,
			digest_leaf(content + n->index * block, length_of(n->index, block)));
		*bits |= 1u << n->index;
	}
	free(found.items);
}

static unsigned recall(struct one *o, uint32_t block)
{
	unsigned bits;

	recall_to(o, block, &bits);
	return bits;
}

static unsigned recall_again(int dir, const struct transfer_file *file, uint32_t block)
{
	struct one o;
	unsigned bits;

	begin(&o, dir, "name", file);
	bits = recall(&o, block);
	end(&o);
	return bits;
}

/* A journal with blocks 0, 1, 2, 5 and the last one, that its writer has left. */
static void leave(int dir)
{
	struct one o;

	fill();
	begin(&o, dir, "name", &source);
	CHECK_EQ(recall(&o, BLOCK), 0);
	CHECK(!journal_is_of_use(o.journal));
	land(&o, (const unsigned[]){1, 0}, 2);
	land(&o, (const unsigned[]){5, 9, 2}, 3);
	CHECK(journal_is_of_use(o.journal));
	end(&o);
}

static int left_behind(void)
{
	int dir = open(scratch_dir(), O_RDONLY | O_DIRECTORY);

	leave(dir);
	return dir;
}
#define LEFT 0x227u

static void what_was_noted_is_there(void)
{
	int dir = left_behind();
	struct one o;

	CHECK_EQ(recall_again(dir, &source, BLOCK), LEFT);
	CHECK_EQ(recall_again(dir, &source, BLOCK), LEFT);
	begin(&o, dir, "name", &source);
	CHECK_EQ(recall(&o, BLOCK), LEFT);
	land(&o, (const unsigned[]){3}, 1);
	end(&o);
	CHECK_EQ(recall_again(dir, &source, BLOCK), LEFT | 8);
	close(dir);
}

/* Each next transfer may have blocks of its own size. */
static void blocks_of_another_size(void)
{
	int dir = left_behind();

	CHECK_EQ(recall_again(dir, &source, 2 * BLOCK),
		1u << 0); /* of 0 1 | 2 - | - 5 | - - | - 9 */
	CHECK_EQ(recall_again(dir, &source, BLOCK), 3u);
	CHECK_EQ(recall_again(dir, &source, 2 * BLOCK), 1u);
	close(dir);
	dir = left_behind();
	CHECK_EQ(recall_again(dir, &source, BLOCK + 4096), 3u); /* the third one ends in block 3 */
	close(dir);
}

static void a_block_that_is_not_what_was_noted(void)
{
	int dir = left_behind();
	struct one o;

	begin(&o, dir, "name", &source);
	CHECK_EQ(pwrite(o.fd, "x", 1, BLOCK + 77), 1);
	CHECK_EQ(recall(&o, BLOCK), LEFT & ~2u);
	end(&o);
	CHECK_EQ(recall_again(dir, &source, BLOCK), LEFT & ~2u);
	begin(&o, dir, "name", &source);
	CHECK_EQ(ftruncate(o.fd, 3 * BLOCK), 0); /* as a host that stops may leave it */
	CHECK_EQ(recall(&o, BLOCK), 5u);
	land(&o, (const unsigned[]){1}, 1); /* and is right again */
	end(&o);
	CHECK_EQ(recall_again(dir, &source, BLOCK), 7u);
	close(dir);
}

/* Cut anywhere, or changed anywhere, it says less, never anything wrong. */
static void a_journal_that_is_torn(void)
{
	int dir = left_behind();
	uint8_t whole[1000], changed[1000];
	struct one o;
	ssize_t length;
	int fd;

	begin(&o, dir, "name", &source);
	end(&o);
	fd = openat(dir, o.path, O_RDWR);
	length = read(fd, whole, sizeof(whole));
	CHECK(length > 100);
	for (ssize_t cut = 0; cut < length; cut++) {
		unsigned bits;

		CHECK_EQ(ftruncate(fd, 0), 0);
		CHECK_EQ(pwrite(fd, whole, (size_t)cut, 0), cut);
		bits = recall_again(dir, &source, BLOCK);
		CHECK(!(bits & ~LEFT));
		CHECK(cut < length - 1 || bits == 3u);             /* all but the last record */
		CHECK_EQ(recall_again(dir, &source, BLOCK), bits); /* and goes on from there */
		if (!bits) /* that made the partial file empty, too */
			leave(dir);
	}
	for (ssize_t at = 0; at < length; at += 3) {
		memcpy(changed, whole, (size_t)length);
		changed[at] ^= 0x20;
		CHECK_EQ(ftruncate(fd, 0), 0);
		CHECK_EQ(pwrite(fd, changed, (size_t)length, 0), length);
		CHECK(recall_again(dir, &source, BLOCK) != LEFT);
	}
	close(fd);
	close(dir);
}

static void another_source_begins_afresh(void)
{
	static const struct transfer_file others[] = {
		{.size = SIZE - 1, .mtime_s = -5, .mtime_ns = 7, .identity = 0xabcdef},
		{.size = SIZE, .mtime_s = 5, .mtime_ns = 7, .identity = 0xabcdef},
		{.size = SIZE, .mtime_s = -5, .mtime_ns = 8, .identity = 0xabcdef},
		{.size = SIZE, .mtime_s = -5, .mtime_ns = 7, .identity = 0xabcdee},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		int dir = left_behind();
		struct stat st;
		struct one o;

		begin(&o, dir, "name", &others[i]);
		CHECK(!fstat(o.fd, &st) && !st.st_size);
		CHECK_EQ(recall(&o, BLOCK), 0);
		end(&o);
		CHECK_EQ(recall_again(dir, &source, BLOCK), 0);
		close(dir);
	}
}

static void two_never_share_one(void)
{
	int dir = left_behind(), fd = -1;
	char partial[JOURNAL_PATH_BYTES];
	struct journal *second;
	struct one o, other;

	begin(&o, dir, "name", &source);
	CHECK_EQ(journal_open(dir, "name", &source, partial, &fd, &second), -EBUSY);
	begin(&other, dir, "another", &source); /* of another name is another one */
	CHECK(strcmp(other.partial, o.partial));
	end(&other);
	end(&o);
	CHECK_EQ(recall_again(dir, &source, BLOCK), LEFT);
	close(dir);
}

/* Whoever may write to the directory can make names in it. */
static void what_others_made_is_left_alone(void)
{
	char partial[JOURNAL_PATH_BYTES];
	int dir = left_behind(), fd = -1;
	struct journal *journal;
	struct one o;

	begin(&o, dir, "name", &source);
	end(&o);
	CHECK_EQ(fchmodat(dir, o.partial, 0666, 0), 0);
	CHECK_EQ(journal_open(dir, "name", &source, partial, &fd, &journal), -EPERM);
	CHECK_EQ(fchmodat(dir, o.partial, 0600, 0), 0);
	CHECK_EQ(linkat(dir, o.partial, dir, "second", 0), 0);
	CHECK_EQ(journal_open(dir, "name", &source, partial, &fd, &journal), -EPERM);
	CHECK_EQ(unlinkat(dir, o.partial, 0), 0);
	CHECK_EQ(symlinkat("second", dir, o.partial), 0);
	CHECK_EQ(journal_open(dir, "name", &source, partial, &fd, &journal), -ELOOP);
	CHECK_EQ(unlinkat(dir, o.path, 0), 0);
	CHECK_EQ(symlinkat("second", dir, o.path), 0);
	CHECK_EQ(journal_open(dir, "name", &source, partial, &fd, &journal), -ELOOP);
	close(dir);
}

static void names_are_known(void)
{
	char other[JOURNAL_PATH_BYTES];

	CHECK(journal_is_name(".rftp-0123456789abcdef.journal", true));
	CHECK(journal_is_name(".rftp-0123456789abcdef.partial", false));
	CHECK(!journal_is_name(".rftp-0123456789abcdef.partial", true));
	CHECK(!journal_is_name(".rftp-0123456789abcdef.journal", false));
	CHECK(!journal_is_name(".rftp-0123456789abcdeg.journal", true));
	CHECK(!journal_is_name(".rftp-0123456789abcdef.journals", true));
	CHECK(!journal_is_name(".rftp-", true));
	CHECK(!journal_is_name("", true));
	journal_other_name(".rftp-0123456789abcdef.journal", other);
	CHECK(!strcmp(other, ".rftp-0123456789abcdef.partial"));
	journal_other_name(".rftp-0123456789abcdef.partial", other);
	CHECK(!strcmp(other, ".rftp-0123456789abcdef.journal"));
}

static void what_people_see(void)
{
	int dir = left_behind();
	struct leftover l;
	struct one o;

	begin(&o, dir, "name", &source);
	CHECK_EQ(leftover_get(dir, o.path, &l), 0);
	CHECK(l.busy);
	end(&o);
	CHECK_EQ(leftover_get(dir, o.path, &l), 0);
	CHECK(!l.busy && !strcmp(l.name, "name"));
	CHECK_EQ(l.size, SIZE);
	CHECK_EQ(l.noted_bytes, 5 * BLOCK);
	CHECK(l.partial_bytes >= 4 * BLOCK && l.changed_s >= time(NULL) - 10);
	CHECK_EQ(leftover_get(dir, ".rftp-0123456789abcdef.journal", &l), -ENOENT);
	close(dir);
}

/* Small records, many more than are read at once, and something torn behind them. */
static void a_row_of_many_records(void)
{
	const struct transfer_file large = {.size = (uint64_t)BLOCK * 10000, .mtime_s = 5};
	int dir = open(scratch_dir(), O_RDONLY | O_DIRECTORY), fd;
	struct transfer_notes found = {0};
	struct leftover l;
	struct one o;

	begin(&o, dir, "name", &large);
	while (journal_recall(o.journal, o.fd, BLOCK, &found))
		;
	for (unsigned i = 0; i < 9000; i++)
		journal_note(o.journal, &(struct transfer_note){i, i}, 1);
	end(&o);
	free(found.items);
	fd = openat(dir, o.path, O_WRONLY | O_APPEND);
	CHECK_EQ(write(fd, content, 100), 100);
	close(fd);
	CHECK_EQ(leftover_get(dir, o.path, &l), 0);
	CHECK_EQ(l.noted_bytes, (uint64_t)BLOCK * 9000);
	close(dir);
}

static void what_is_old_is_swept(void)
{
	const struct timespec old[2] = {
		{.tv_sec = time(NULL) - 1000}, {.tv_sec = time(NULL) - 1000}};
	int dir = left_behind();
	uint64_t bytes;
	struct one o;

	begin(&o, dir, "name", &source);
	CHECK_EQ(utimensat(dir, o.path, old, 0), 0);
	CHECK_EQ(leftover_sweep(dir, o.path, 900, &bytes), -EBUSY); /* somebody writes to it */
	CHECK_EQ(leftover_sweep(dir, o.partial, 900, &bytes), -EAGAIN);
	end(&o);
	CHECK_EQ(leftover_sweep(dir, o.path, 1100, &bytes), -EAGAIN);
	CHECK_EQ(leftover_sweep(dir, o.partial, 900, &bytes),
		-EAGAIN); /* with its journal, or not */
	CHECK_EQ(leftover_sweep(dir, o.path, 900, &bytes), 0);
	CHECK(bytes >= 4 * BLOCK);
	CHECK_EQ(faccessat(dir, o.partial, F_OK, 0), -1);
	CHECK_EQ(faccessat(dir, o.path, F_OK, 0), -1);
	close(dir);
}

/* One without the other is of no use, whatever its age; but both are made one after the other. */
static void what_is_alone_is_swept(void)
{
	const struct timespec old[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};

	for (int k = 0; k < 2; k++) {
		int dir = left_behind();
		const char *stays;
		uint64_t bytes;
		struct one o;

		begin(&o, dir, "name", &source);
		end(&o);
		stays = k ? o.path : o.partial;
		CHECK_EQ(unlinkat(dir, k ? o.partial : o.path, 0), 0);
		CHECK_EQ(leftover_sweep(dir, stays, 1u << 20, &bytes), -EAGAIN);
		CHECK_EQ(utimensat(dir, stays, old, 0), 0);
		CHECK_EQ(leftover_sweep(dir, stays, 1u << 20, &bytes), 0);
		CHECK_EQ(faccessat(dir, stays, F_OK, 0), -1);
		CHECK_EQ(faccessat(dir, k ? o.partial : o.path, F_OK, 0), -1);
		close(dir);
	}
}

/* One whose writer is there is nobody else's, though its journal is not to be seen. */
static void what_is_alone_and_locked_stays(void)
{
	int dir = left_behind();
	uint64_t bytes;
	struct one o;

	begin(&o, dir, "name", &source);
	CHECK_EQ(leftover_sweep(dir, o.partial, 0, &bytes), -EAGAIN);
	CHECK_EQ(faccessat(dir, o.partial, F_OK, 0), 0);
	end(&o);
	CHECK_EQ(leftover_sweep(dir, o.path, 0, &bytes), 0);
	close(dir);
}

/* Of one that may not be removed nothing is left but itself, as before. */
static void what_is_alone_and_refused_stays_alone(void)
{
	int dir = left_behind(), err;
	uint64_t bytes;
	struct one o;

	begin(&o, dir, "name", &source);
	end(&o);
	CHECK_EQ(unlinkat(dir, o.path, 0), 0);
	if (geteuid()) /* others' files are refused to everybody else, in such a directory */
		return;
	CHECK_EQ(fchmod(dir, 01777), 0);
	CHECK_EQ(seteuid(65534), 0);
	err = leftover_sweep(dir, o.partial, 0, &bytes);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(err, -EPERM);
	CHECK_EQ(bytes, 0);
	CHECK_EQ(faccessat(dir, o.partial, F_OK, 0), 0);
	CHECK_EQ(faccessat(dir, o.path, F_OK, 0), -1);
	close(dir);
}

static bool is_zero(int fd, off_t from, off_t to)
{
	uint8_t byte;

	for (; from < to; from++)
		if (pread(fd, &byte, 1, from) != 1 || byte)
			return false;
	return true;
}

/* Of a file with holes nothing is left but what is proved: zeros of it are not written. */
static void of_a_file_with_holes_the_rest_is_zeros(void)
{
	struct transfer_file sparse = source;
	struct one o;
	int dir;

	sparse.has = TRANSFER_HAS_HOLES;
	dir = left_behind(); /* blocks 0, 1, 2, 5 and 9 */
	begin(&o, dir, "name", &source);
	CHECK_EQ(pwrite(o.fd, "garbage", 7, 3 * BLOCK + 100), 7);
	CHECK_EQ(pwrite(o.fd, "garbage", 7, 5 * BLOCK + 100), 7); /* of one that was noted */
	CHECK_EQ(pwrite(o.fd, "garbage", 7, 8 * BLOCK), 7);
	end(&o);
	begin(&o, dir, "name", &sparse);
	CHECK_EQ(recall(&o, BLOCK), LEFT & ~(1u << 5));
	CHECK_EQ(journal_fault(o.journal), 0);
	CHECK(is_zero(o.fd, 3 * BLOCK, 9 * BLOCK));
	CHECK(!is_zero(o.fd, 0, 3 * BLOCK) && !is_zero(o.fd, 9 * BLOCK, SIZE));
	end(&o);
	CHECK_EQ(recall_again(dir, &sparse, BLOCK), LEFT & ~(1u << 5));
	close(dir);
}

/* Of which nothing is known all is zeros, and it has its size. */
static void of_a_file_with_holes_nothing_is_known(void)
{
	struct transfer_file sparse = source;
	struct stat st;
	struct one o;
	int dir = left_behind();

	sparse.has = TRANSFER_HAS_HOLES;
	sparse.mtime_ns++;
	begin(&o, dir, "name", &sparse);
	CHECK_EQ(pwrite(o.fd, "garbage", 7, 100), 7);
	CHECK_EQ(recall(&o, BLOCK), 0);
	CHECK(!fstat(o.fd, &st) && st.st_size == SIZE && is_zero(o.fd, 0, SIZE));
	end(&o);
	close(dir);
}

/* The bytes themselves, as the page says them. */
static void records_are_as_documented(void)
{
	static const uint8_t head[] = {0, 0, 0, 40, 0, 1, 0, 0, /* length, type */
		0, 1, 0, 1, 0, 0,                               /* version, block */
		0, 0, 0, 0, 0, 0, 0, 9, 255, 255, 255, 255, 255, 255, 255, 251, 0, 0, 0, 7, 0, 0, 0,
		0, 0, 171, 205, 239, 0, 4, 'n', 'a', 'm', 'e'};
	struct journal_file file = {.version = 1,
		.block = 65536,
		.size = 9,
		.mtime_s = -5,
		.mtime_ns = 7,
		.identity = 0xabcdef,
		.name = {(const uint8_t *)"name", 4}};
	uint8_t buf[100];
	struct journal_record r;

	CHECK_EQ(journal_record_put_file(&file, buf, sizeof(buf)), 56);
	CHECK(!memcmp(buf, head, 48));
	CHECK_EQ(journal_record_get(&r, buf, 56), 56);
	CHECK_EQ(journal_record_get(&r, buf, 55), 0);
	CHECK_EQ(journal_record_put_file(&file, buf, 55), -EMSGSIZE);
	file.block = 4096;
	CHECK_EQ(journal_record_put_file(&file, buf, sizeof(buf)), -EBADMSG);
	CHECK_EQ(journal_record_put_blocks(&(struct journal_block){3, 4}, 1, buf, sizeof(buf)), 32);
	CHECK_EQ(journal_record_get(&r, buf, sizeof(buf)), 32);
	CHECK(r.type == JOURNAL_BLOCKS && r.count == 1);
	CHECK_EQ(journal_record_block(&r, 0).index, 3);
	CHECK_EQ(journal_record_block(&r, 0).leaf, 4);
}

HARNESS_MAIN({"what_was_noted_is_there", what_was_noted_is_there},
	{"blocks_of_another_size", blocks_of_another_size},
	{"a_block_that_is_not_what_was_noted", a_block_that_is_not_what_was_noted},
	{"a_journal_that_is_torn", a_journal_that_is_torn},
	{"another_source_begins_afresh", another_source_begins_afresh},
	{"two_never_share_one", two_never_share_one},
	{"what_others_made_is_left_alone", what_others_made_is_left_alone},
	{"names_are_known", names_are_known}, {"what_people_see", what_people_see},
	{"a_row_of_many_records", a_row_of_many_records},
	{"what_is_old_is_swept", what_is_old_is_swept},
	{"what_is_alone_is_swept", what_is_alone_is_swept},
	{"what_is_alone_and_locked_stays", what_is_alone_and_locked_stays},
	{"what_is_alone_and_refused_stays_alone", what_is_alone_and_refused_stays_alone},
	{"of_a_file_with_holes_the_rest_is_zeros", of_a_file_with_holes_the_rest_is_zeros},
	{"of_a_file_with_holes_nothing_is_known", of_a_file_with_holes_nothing_is_known},
	{"records_are_as_documented", records_are_as_documented})
