/* SPDX-License-Identifier: Apache-2.0 */
/* rftpd/auth/authorized_keys and certificate_users: which lines count, and for whom. */
#include "tests/harness.h"

#include "rftpd/auth/authorized_keys.h"
#include "rftpd/auth/certificate_users.h"
#include "session/tls_sign.h"
#include "tests/scratch.h"

#define KEY "AAAAC3NzaC1lZDI1NTE5AAAAIJSZ9HHmMVhc1MBtqqUK5RC/gyCG6zHQTCOfCFfnQ8tR"
#define OTHER "AAAAC3NzaC1lZDI1NTE5AAAAIJSZ9HHmMVhc1MBtqqUK5RC/gyCG6zHQTCOfCFfnQ8tS"

static void lines(void)
{
	static const struct {
		const char *text;
		bool has;
		unsigned line;
	} rows[] = {
		{"", false, 0},
		{"ssh-ed25519 " KEY, true, 1},
		{"ssh-ed25519 " KEY " a comment\n", true, 1},
		{"ssh-ed25519 " KEY "\r\n", true, 1},
		{"# ssh-ed25519 " KEY "\n\n \tssh-ed25519\t" KEY "\n", true, 3},
		{"ssh-ed25519 " OTHER "\n", false, 0},
		{"ssh-ed25519 " OTHER "\nssh-ed25519 " KEY "\n", true, 2},
		{"ssh-rsa " KEY "\n", false, 0},
		{"ssh-ed25519\n" KEY "\n", false, 0},
		{"ssh-ed25519 " KEY "=\n", false, 0},
		{"restrict ssh-ed25519 " KEY "\n", true, 1},
		{"no-pty,No-Port-Forwarding ssh-ed25519 " KEY "\n", true, 1},
		{"no-pty, ssh-ed25519 " KEY "\n", false, 1},
		{"command=\"x y\" ssh-ed25519 " KEY "\n", false, 1},
		{"no-pty,command=\"a \\\" ssh-ed25519 b\" ssh-ed25519 " KEY "\n", false, 1},
		{"from=\"10.0.0.1\" ssh-ed25519 " KEY "\n", false, 1},
		{"cert-authority ssh-ed25519 " KEY "\n", false, 1},
		{"expiry-time=\"20200101\" ssh-ed25519 " KEY "\n", false, 1},
		/* another line lets it in */
		{"command=\"x\" ssh-ed25519 " KEY "\nssh-ed25519 " KEY "\n", true, 2},
		{"\"ssh-ed25519 " KEY "\n", false, 0},
	};
	struct tls_key key;
	unsigned line;

	CHECK_EQ(tls_key_from_base64(&key, KEY, strlen(KEY)), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool has = authorized_keys_have(rows[i].text, strlen(rows[i].text), &key, &line);

		if (has != rows[i].has || line != rows[i].line)
			printf("# %s: %d, line %u\n", rows[i].text, has, line);
		CHECK_EQ(has, rows[i].has);
		CHECK_EQ(line, rows[i].line);
	}
}

static void paths(void)
{
	char path[32];

	CHECK_EQ(authorized_keys_path("/k/%u", "alice", path, sizeof path), 0);
	CHECK(!strcmp(path, "/k/alice"));
	CHECK_EQ(authorized_keys_path("/%%/%u/%u.pub", "a", path, sizeof path), 0);
	CHECK(!strcmp(path, "/%/a/a.pub"));
	CHECK_EQ(authorized_keys_path("/k/%h", "a", path, sizeof path), -EINVAL);
	CHECK_EQ(authorized_keys_path("/k/%", "a", path, sizeof path), -EINVAL);
	CHECK_EQ(authorized_keys_path("/0123456789/%u", "01234567890123456789", path, sizeof path),
		-ENAMETOOLONG);
}

static void files(void)
{
	const char *path = scratch_path(scratch_dir(), "keys");
	char copy[300], why[AUTHORIZED_WHY_MAX];
	struct tls_key key;

	snprintf(copy, sizeof copy, "%s", path);
	CHECK_EQ(tls_key_from_base64(&key, KEY, strlen(KEY)), 0);
	CHECK(!authorized_keys_file_has(copy, &key, why));
	CHECK(scratch_write(copy, "ssh-ed25519 " KEY "\n"));
	CHECK(!chmod(copy, 0644));
	CHECK(authorized_keys_file_has(copy, &key, why));
	CHECK(!chmod(copy, 0664));
	CHECK(!authorized_keys_file_has(copy, &key, why) && strstr(why, "may change it"));
	CHECK(!chmod(copy, 0602));
	CHECK(!authorized_keys_file_has(copy, &key, why));
}

static void certificates(void)
{
	static const char text[] = "# x CN=A\nalice CN=Alice Smith,O=E\r\nbob \t email:bob@e \n"
				   "admin CN=Alice Smith,O=E\nno-name\n@x dns:h\n";
	static const char alice[] = "CN=Alice Smith,O=E\nemail:a@e\n",
			  bob[] = "CN=B\nemail:bob@e\n";
	char user[CERTIFICATE_USER_MAX];

	CHECK_EQ(certificate_users_find(text, strlen(text), alice, "", user), 0);
	CHECK(!strcmp(user, "alice"));
	CHECK_EQ(certificate_users_find(text, strlen(text), alice, "admin", user), 0);
	CHECK(!strcmp(user, "admin"));
	CHECK_EQ(certificate_users_find(text, strlen(text), alice, "bob", user), -ENOENT);
	CHECK(!*user);
	CHECK_EQ(certificate_users_find(text, strlen(text), bob, "", user), 0);
	CHECK(!strcmp(user, "bob"));
	CHECK_EQ(certificate_users_find(text, strlen(text), "CN=Alice Smith\n", "", user), -ENOENT);
	CHECK_EQ(certificate_users_find(text, strlen(text), "CN=Alice Smith,O=E,C=X\n", "", user),
		-ENOENT);
	CHECK_EQ(certificate_users_find(text, strlen(text), "dns:h\n", "", user), -ENOENT);
	CHECK_EQ(certificate_users_find(text, strlen(text), "", "", user), -ENOENT);
	CHECK_EQ(certificate_users_find("", 0, alice, "", user), -ENOENT);
}

HARNESS_MAIN({"lines", lines}, {"paths", paths}, {"files", files}, {"certificates", certificates})
