/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/auth/users_file: what a file says, how it is changed, and what a hash is of. */
#include "tests/harness.h"

#include "rftpd/auth/users_file.h"
#include "tests/scratch.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

static const char *found(const char *text, const char *user)
{
	static char hash[USERS_HASH_MAX];

	users_find_in(text, strlen(text), user, hash);
	return hash;
}

static void lines(void)
{
	static const char text[] =
		"# comment\nalice:$y$1\n\nbob:$y$2\r\nalice:second\nno colon\n:empty\n"
		"carol:\nalicia:$y$3\nlast:$y$4";
	char longest[USERS_HASH_MAX + 8] = "a:";

	CHECK(!strcmp(found(text, "alice"), "$y$1"));
	CHECK(!strcmp(found(text, "bob"), "$y$2"));
	CHECK(!strcmp(found(text, "last"), "$y$4"));
	CHECK(!*found(text, "carol") && !*found(text, "dave") && !*found(text, "ali"));
	CHECK(!*found(text, "no colon") && !*found(text, "") && !*found(text, "# comment"));
	CHECK(!*found("", "alice"));
	memset(longest + 2, 'x', USERS_HASH_MAX); /* one byte too long, and one less */
	CHECK(!*found(longest, "a"));
	longest[2 + USERS_HASH_MAX - 1] = '\0';
	CHECK_EQ(strlen(found(longest, "a")), USERS_HASH_MAX - 1);
}

/* Who has a line that is broken has a line, and no hash. */
static void broken_lines(void)
{
	static const char *const broken[] = {"alice:", "alice", "alice: ", "alice :$y$1",
		" alice:$y$1", "\talice", "alice:$y$1:19000:0:99999:7:::", "alice:$y$ 1",
		"alice:\x01", "alice:\xc3\xa4", "alice\r", "alice:\r"};
	static const char *const others[] = {
		"bob:$y$1", "# alice:", "#alice", "", "  ", "alic:e", "alicee:$y$1", "bob:alice"};
	char text[USERS_HASH_MAX + 100], hash[USERS_HASH_MAX];
	int n;

	for (unsigned i = 0; i < sizeof broken / sizeof *broken; i++) {
		/* what comes behind it is not asked */
		n = snprintf(text, sizeof text, "bob:$y$2\n%s\nalice:$y$3\n", broken[i]);
		CHECK_EQ(users_find_in(text, (size_t)n, "alice", hash), 2);
		CHECK(!*hash);
		CHECK_EQ(users_find_broken(text, (size_t)n), 2);
	}
	for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
		n = snprintf(text, sizeof text, "%s\nalice:$y$3\r\n", others[i]);
		CHECK_EQ(users_find_in(text, (size_t)n, "alice", hash), 2);
		CHECK(!strcmp(hash, "$y$3"));
		CHECK_EQ(users_find_broken(text, (size_t)n), 0);
		CHECK_EQ(users_find_in(text, (size_t)n, "carol", hash), 0);
	}
	memset(text, 'x', sizeof text);
	memcpy(text, "alice:", 6);
	CHECK_EQ(users_find_in(text, 6 + USERS_HASH_MAX, "alice", hash), 1);
	CHECK(!*hash);
	CHECK_EQ(users_find_in(text, 6 + USERS_HASH_MAX - 1, "alice", hash), 1);
	CHECK_EQ(strlen(hash), USERS_HASH_MAX - 1);
	text[10] = '\0';
	CHECK_EQ(users_find_in(text, 20, "alice", hash), 1);
	CHECK(!*hash);
	/* one that is locked, as others do it, is not broken */
	CHECK_EQ(users_find_broken("alice:!\nbob:*\n", 14), 0);
	CHECK_EQ(users_find_broken("a:b\nc:d\n-e:f\n", 13), 3); /* no user's name */
}

static void names(void)
{
	char name[300];

	CHECK(users_name_ok("alice") && users_name_ok("a.b-c@d") && users_name_ok("\xc3\xa4"));
	CHECK(!users_name_ok("") && !users_name_ok("a:b") && !users_name_ok("a b") &&
		!users_name_ok("a\n") && !users_name_ok("-a") && !users_name_ok("@users") &&
		!users_name_ok("#a") && !users_name_ok("a/b") && !users_name_ok(".."));
	memset(name, 'a', sizeof name);
	name[255] = '\0';
	CHECK(users_name_ok(name));
	name[255] = 'a';
	name[256] = '\0';
	CHECK(!users_name_ok(name));
}

static _Atomic bool begun, done;

/* Writes it anew as editors do, in place, and takes its time for that. */
static void *write_slowly(void *path)
{
	char text[64] = "";

	for (unsigned i = 0; i < 20; i++) {
		snprintf(text, sizeof text, "#%.*s\n", (int)i, "....................");
		scratch_write(path, text);
		begun = true;
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	scratch_write(path, "#\nalice:h1\n");
	done = true;
	return NULL;
}

/* Of a user who is not there for a moment it is not said that he is not there.  Where this host
 * holds the writer up for a second nobody can know: then once more. */
static void written_in_place(void)
{
	char why[USERS_WHY_MAX], hash[USERS_HASH_MAX], copy[300];
	int at_once = 0, settled = 0;
	pthread_t writer;

	snprintf(copy, sizeof copy, "%s", scratch_path(scratch_dir(), "slowly"));
	for (unsigned i = 0; i < 5 && !settled; i++) {
		begun = done = false;
		CHECK(!pthread_create(&writer, NULL, write_slowly, copy));
		while (!begun)
			sched_yield();
		CHECK(!chmod(copy, 0600));
		at_once = done ? 0 : users_find(copy, "alice", hash, why);
		settled = users_find_settled(copy, "alice", hash, why);
		CHECK(!pthread_join(writer, NULL));
	}
	CHECK_EQ(at_once, 0);
	CHECK_EQ(settled, 1);
	CHECK(!strcmp(hash, "h1"));
	CHECK_EQ(users_find_settled(copy, "bob", hash, why), 0); /* it waits for that, once */
	CHECK(!unlink(copy));
	CHECK_EQ(users_find_settled(copy, "bob", hash, why), -ENOENT);
}

static void changes(void)
{
	const char *path = scratch_path(scratch_dir(), "users");
	char why[USERS_WHY_MAX], hash[USERS_HASH_MAX], copy[300];
	struct stat st;

	snprintf(copy, sizeof copy, "%s", path);
	CHECK_EQ(users_set(copy, "alice", NULL, why), -ENOENT);
	CHECK_EQ(users_find(copy, "alice", hash, why), -ENOENT);
	CHECK_EQ(users_set(copy, "alice", "h1", why), 0);
	CHECK(!stat(copy, &st) && (st.st_mode & 07777) == 0600);
	CHECK_EQ(users_set(copy, "bob", "h2", why), 0);
	CHECK_EQ(users_set(copy, "alice", "h3", why), 0);
	CHECK_EQ(users_find(copy, "alice", hash, why), 1);
	CHECK(!strcmp(hash, "h3"));
	CHECK_EQ(users_find(copy, "bob", hash, why), 1);
	CHECK(!strcmp(hash, "h2"));
	/* what somebody has set stays; what others may read is refused */
	CHECK(!chmod(copy, 0640));
	CHECK_EQ(users_set(copy, "alice", NULL, why), 0);
	CHECK(!stat(copy, &st) && (st.st_mode & 07777) == 0640);
	CHECK_EQ(users_find(copy, "alice", hash, why), 0);
	CHECK(!*hash);
	CHECK_EQ(users_set(copy, "alice", NULL, why), -ENOENT);
	/* a line that is broken is said, and set right where it stands */
	CHECK_EQ(users_check(copy, geteuid(), why), 0);
	CHECK(!*why);
	CHECK(scratch_write(copy, " alice:h1\nbob:h2\n"));
	CHECK_EQ(users_check(copy, geteuid(), why), 0);
	CHECK(strstr(why, ": line 1 is not USER:HASH"));
	CHECK_EQ(users_find(copy, "alice", hash, why), 1);
	CHECK(!*hash && strstr(why, ": line 1 is not USER:HASH"));
	CHECK_EQ(users_set(copy, "alice", "h3", why), 0);
	CHECK(scratch_is(copy, "alice:h3\nbob:h2\n"));
	CHECK_EQ(users_set(copy, "alice", NULL, why), 0);
	for (unsigned bits = 1; bits <= 4; bits *= 2) {
		CHECK(!chmod(copy, 0600 | bits));
		CHECK_EQ(users_find(copy, "bob", hash, why), -EPERM);
		CHECK(!*hash && strstr(why, "chmod 600"));
		CHECK_EQ(users_set(copy, "bob", "h4", why), -EPERM);
	}
	CHECK(!chmod(copy, 0620));
	CHECK_EQ(users_check(copy, geteuid(), why), -EPERM);
	/* whose it is: the daemon's, or nobody knows as whom that runs */
	CHECK(!chmod(copy, 0600));
	CHECK_EQ(users_check(copy, geteuid(), why), 0);
	CHECK(!*why);
	if (geteuid())
		return;
	CHECK(!chown(copy, 4242, (gid_t)-1));
	CHECK_EQ(users_check(copy, 4242, why), 0);
	CHECK(!*why);
	CHECK_EQ(users_check(copy, 4243, why), -EPERM);
	CHECK(strstr(why, "belongs to user 4242"));
	CHECK_EQ(users_check(copy, (uid_t)-1, why), 0);
	CHECK(strstr(why, "belongs to user 4242"));
}

static double seconds_of_wrong(const char *hash)
{
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	if (users_verify("wrong", hash))
		return 1e9;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

static void hashes(void)
{
	char hash[USERS_HASH_MAX], again[USERS_HASH_MAX];
	double there, nobody;

	CHECK_EQ(users_hash("sesame", hash), 0);
	CHECK_EQ(users_hash("sesame", again), 0);
	CHECK(!strncmp(hash, "$y$", 3) && strcmp(hash, again));
	CHECK(users_verify("sesame", hash) && users_verify("sesame", again));
	CHECK(!users_verify("Sesame", hash) && !users_verify("", hash));
	CHECK(!users_verify("x", "*") && !users_verify("x", "nonsense") && !users_verify("", "*0"));
	/* nobody's hash is of no password, and takes as long as somebody's */
	CHECK(!users_verify("", ""));
	there = seconds_of_wrong(hash);
	nobody = seconds_of_wrong("");
	printf("# %.1f ms for who is there, %.1f ms for nobody\n", there * 1e3, nobody * 1e3);
	CHECK(nobody > there / 4 && there > nobody / 4);
}

HARNESS_MAIN({"lines", lines}, {"broken_lines", broken_lines}, {"names", names},
	{"written in place", written_in_place}, {"changes", changes}, {"hashes", hashes})
