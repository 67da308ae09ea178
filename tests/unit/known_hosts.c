/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/known_hosts: lines of the file, right, wrong and odd.
 */
#include "../harness.h"
#include "../scratch.h"

#include "base/addr.h"
#include "rftp/remote/known_hosts.h"

/* base64 of these two */
#define KEY_A "AAAA"
#define KEY_B "AAAB"
static const struct tls_key key_a = {.type = "ssh-ed25519", .blob = {0, 0, 0}, .len = 3};
static const struct tls_key key_b = {.type = "ssh-ed25519", .blob = {0, 0, 1}, .len = 3};

/* as `ssh-keygen -H` writes "host" and "[host]:7388", and with a salt of 4 bytes */
#define HASHED_HOST "|1|AAECAwQFBgcICQoLDA0ODxAREhM=|6tbkAfZDulNpJ/cQ7aCK0Bbfp+g="
#define HASHED_PORT "|1|AAECAwQFBgcICQoLDA0ODxAREhM=|QZUERULSc/oABJBAsBiYW4+QH/k="
#define HASHED_SHORT "|1|c2FsdA==|HTaAJnQ397DFDw7nGYI3YRODWDA="

static void answers(void)
{
	static const struct {
		const char *text, *name;
		enum known_hosts_answer a;
		unsigned line;
	} rows[] = {
		{"", "host", KNOWN_HOSTS_NEW, 0},
		{"host ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_SAME, 1},
		{"host ssh-ed25519 " KEY_A, "host", KNOWN_HOSTS_SAME, 1}, /* no end of line */
		{"host ssh-ed25519 " KEY_A " a comment\r\n", "host", KNOWN_HOSTS_SAME, 1},
		{"HOST ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_SAME, 1},
		{"other ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"host ssh-ed25519 " KEY_B "\n", "host", KNOWN_HOSTS_CHANGED, 1},
		{"host ssh-rsa " KEY_A "\n", "host", KNOWN_HOSTS_CHANGED, 1},
		{"# host ssh-ed25519 " KEY_A "\n\nhost ssh-ed25519 " KEY_A "\n", "host",
			KNOWN_HOSTS_SAME, 3},
		{"host ssh-ed25519 " KEY_B "\nhost ssh-ed25519 " KEY_A "\n", "host",
			KNOWN_HOSTS_SAME, 2},
		{"host ssh-ed25519 " KEY_A "\n@revoked * ssh-ed25519 " KEY_A "\n", "host",
			KNOWN_HOSTS_REVOKED, 2},
		{"@revoked * ssh-ed25519 " KEY_B "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"@cert-authority * ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"a,host,b ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_SAME, 1},
		{"h?s* ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_SAME, 1},
		{"h*,!host ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"[host]:7388 ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"[host]:7388 ssh-ed25519 " KEY_A "\n", "[host]:7388", KNOWN_HOSTS_SAME, 1},
		{"[h*]:7388 ssh-ed25519 " KEY_A "\n", "[host]:7388", KNOWN_HOSTS_SAME, 1},
		{"o ssh-ed25519 " KEY_A "\n", "[host]:7388", KNOWN_HOSTS_NEW, 0},
		{"|1|c2FsdA==|aGFzaA== ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{HASHED_HOST " ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_SAME, 1},
		{HASHED_HOST " ssh-ed25519 " KEY_B "\n", "host", KNOWN_HOSTS_CHANGED, 1},
		{HASHED_HOST " ssh-ed25519 " KEY_A "\n", "[host]:7388", KNOWN_HOSTS_NEW, 0},
		{HASHED_HOST " ssh-ed25519 " KEY_A "\n", "other", KNOWN_HOSTS_NEW, 0},
		{"@revoked " HASHED_HOST " ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_REVOKED,
			1},
		{HASHED_PORT " ssh-ed25519 " KEY_A "\n", "[host]:7388", KNOWN_HOSTS_SAME, 1},
		{HASHED_PORT " ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{HASHED_SHORT " ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_SAME, 1},
		{HASHED_HOST "= ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"|1| ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"|1|| ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"|1|====|aGFzaA== ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"|1|c2F|aGFzaA== ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"|1|c2FsdA== ssh-ed25519 " KEY_A "\n", "host", KNOWN_HOSTS_NEW, 0},
		{"host\nhost ssh-ed25519\nhost  \t ssh-ed25519\t" KEY_A "\n", "host",
			KNOWN_HOSTS_SAME, 3},
		{"host ssh-ed25519 " KEY_A "A\n", "host", KNOWN_HOSTS_CHANGED, 1},
	};
	const char *top = scratch_dir();
	char path[256];

	snprintf(path, sizeof path, "%s/known_hosts", top);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		enum known_hosts_answer answer = KNOWN_HOSTS_CHANGED;
		unsigned line = 99;
		FILE *file = fopen(path, "w");

		CHECK(file && fputs(rows[i].text, file) >= 0);
		fclose(file);
		CHECK_EQ(known_hosts_find(path, rows[i].name, &key_a, &answer, &line), 0);
		if (answer != rows[i].a || line != rows[i].line)
			printf("# row %u: answer %d, line %u\n", i, answer, line);
		CHECK_EQ(answer, rows[i].a);
		CHECK_EQ(line, rows[i].line);
	}
	CHECK_EQ(known_hosts_find(
			 top, "host", &key_a, &(enum known_hosts_answer){0}, &(unsigned){0}),
		-EISDIR);
}

/* A name that is longer than any host's is read to its end. */
static void long_names(void)
{
	const char *top = scratch_dir();
	enum known_hosts_answer answer;
	char path[256], name[1000];
	unsigned line;
	FILE *file;

	snprintf(path, sizeof path, "%s/known_hosts", top);
	memset(name, '*', sizeof name);
	for (unsigned fits = 0; fits < 2; fits++) {
		snprintf(name + sizeof name - 3, 3, fits ? "st" : "so");
		file = fopen(path, "w");
		CHECK(file && fprintf(file, "%s ssh-ed25519 " KEY_A "\n", name) > 0);
		fclose(file);
		CHECK_EQ(known_hosts_find(path, "host", &key_a, &answer, &line), 0);
		CHECK_EQ(answer, fits ? KNOWN_HOSTS_SAME : KNOWN_HOSTS_NEW);
	}
}

static void adding(void)
{
	const char *top = scratch_dir();
	enum known_hosts_answer answer;
	char path[256], directory[256];
	struct stat st;
	unsigned line;
	FILE *file;

	snprintf(directory, sizeof directory, "%s/a", top);
	snprintf(path, sizeof path, "%s/a/b/known_hosts", top);
	CHECK_EQ(known_hosts_find(path, "host", &key_a, &answer, &line), 0);
	CHECK_EQ(answer, KNOWN_HOSTS_NEW);
	CHECK_EQ(known_hosts_add(path, "host", &key_a), 0);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(stat(directory, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0700);
	/* a person's editor left no end of line */
	file = fopen(path, "a");
	CHECK(file && fputs("third ssh-ed25519 " KEY_A, file) >= 0);
	fclose(file);
	CHECK_EQ(known_hosts_add(path, "other", &key_b), 0);
	CHECK_EQ(known_hosts_find(path, "host", &key_a, &answer, &line), 0);
	CHECK(answer == KNOWN_HOSTS_SAME && line == 1);
	CHECK_EQ(known_hosts_find(path, "third", &key_a, &answer, &line), 0);
	CHECK(answer == KNOWN_HOSTS_SAME && line == 2);
	CHECK_EQ(known_hosts_find(path, "other", &key_b, &answer, &line), 0);
	CHECK(answer == KNOWN_HOSTS_SAME && line == 3);
}

static void names(void)
{
	char name[KNOWN_HOSTS_NAME_MAX];

	known_hosts_name("Host.Example.ORG", ADDR_DEFAULT_PORT, name);
	CHECK(!strcmp(name, "host.example.org"));
	known_hosts_name("fe80::1", 1, name);
	CHECK(!strcmp(name, "[fe80::1]:1"));
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		{"answers", answers},
		{"long names", long_names},
		{"adding", adding},
		{"names", names},
		{NULL, NULL},
	};

	return harness_run(cases, argc, argv);
}
