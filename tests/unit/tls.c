/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/tls: two ends of TLS with nothing between them but queues of bytes.
 */
#include "../contexts.h"
#include "../harness.h"
#include "../quiet.h"
#include "../scratch.h"

#include "session/tls_impl.h"

#include <openssl/pem.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct ends {
	struct contexts contexts;
	struct tls *client, *server;
	struct buffer up, down; /* to the server, to the client */
};

static void ends_open(struct ends *e, const char *host)
{
	*e = (struct ends){.client = NULL};
	contexts_make(&e->contexts);
	CHECK_EQ(tls_new(e->contexts.client, host, &e->client), 0);
	CHECK_EQ(tls_new(e->contexts.server, NULL, &e->server), 0);
}

static void ends_close(struct ends *e)
{
	tls_free(e->client);
	tls_free(e->server);
	buffer_fini(&e->up);
	buffer_fini(&e->down);
	contexts_free(&e->contexts);
}

/* Until both are through or one has failed: 1, or its error. */
static int shake(struct ends *e)
{
	for (int i = 0; i < 10; i++) {
		int r = tls_handshake(e->client, &e->down, &e->up), s;

		if (r < 0)
			return r;
		s = tls_handshake(e->server, &e->up, &e->down);
		if (s < 0)
			return s;
		if (r && s)
			return 1;
	}
	return 0;
}

static void both_ways(void)
{
	static uint8_t data[100000];
	struct buffer plain = {NULL, 0, 0, 0};
	uint64_t rng = harness_seed();
	struct ends e;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)harness_random(&rng);
	ends_open(&e, "localhost");
	CHECK(!tls_is_complete(e.client));
	CHECK_EQ(shake(&e), 1);
	CHECK(tls_is_complete(e.client) && tls_is_complete(e.server));
	CHECK_EQ(tls_write(e.client, data, sizeof data, &e.up), 0);
	CHECK(buffer_bytes(&e.up) > sizeof data);
	CHECK(!memmem(buffer_front(&e.up), buffer_bytes(&e.up), data, 32));
	/* in pieces as they come, and no more at once than was asked for */
	while (buffer_bytes(&e.up)) {
		struct buffer piece = {NULL, 0, 0, 0};
		size_t len = 1 + harness_random(&rng) % 5000;

		if (len > buffer_bytes(&e.up))
			len = buffer_bytes(&e.up);
		CHECK_EQ(buffer_append(&piece, buffer_front(&e.up), len), 0);
		buffer_consume(&e.up, len);
		CHECK_EQ(tls_read(e.server, &piece, &plain, 1u << 20, &e.down), 0);
		buffer_fini(&piece);
	}
	CHECK_EQ(buffer_bytes(&plain), sizeof data);
	CHECK(!memcmp(buffer_front(&plain), data, sizeof data));
	buffer_consume(&plain, sizeof data);
	CHECK_EQ(tls_write(e.server, "back", 4, &e.down), 0);
	CHECK_EQ(tls_read(e.client, &e.down, &plain, 1u << 20, &e.up), 0);
	CHECK(buffer_bytes(&plain) == 4 && !memcmp(buffer_front(&plain), "back", 4));
	buffer_fini(&plain);
	ends_close(&e);
}

/* Every byte that is changed on the way is noticed, in the handshake and after it. */
static void changes_are_noticed(void)
{
	struct buffer plain = {NULL, 0, 0, 0};
	uint64_t rng = harness_seed();

	for (int i = 0; i < 60; i++) {
		struct ends e;
		size_t at;

		ends_open(&e, "localhost");
		CHECK_EQ(shake(&e), 1);
		CHECK_EQ(tls_write(e.client, "a name", 6, &e.up), 0);
		at = harness_random(&rng) % buffer_bytes(&e.up);
		buffer_front(&e.up)[at] ^= (uint8_t)(1u << harness_random(&rng) % 8);
		/* a length that is larger now waits for more, and then fails */
		if (!tls_read(e.server, &e.up, &plain, 1u << 20, &e.down)) {
			CHECK_EQ(buffer_bytes(&plain), 0);
			for (int k = 0; k < 3000; k++)
				CHECK_EQ(tls_write(e.client, "a name", 6, &e.up), 0);
			CHECK_EQ(tls_read(e.server, &e.up, &plain, 1u << 20, &e.down), -EBADMSG);
		}
		CHECK_EQ(buffer_bytes(&plain), 0);
		ends_close(&e);
	}
	for (int i = 0; i < 60; i++) {
		struct ends e;
		struct buffer *way = i % 2 ? &e.up : &e.down;
		size_t at;
		int r;

		ends_open(&e, "localhost");
		CHECK_EQ(tls_handshake(e.client, &e.down, &e.up), 0);
		if (way == &e.down)
			CHECK_EQ(tls_handshake(e.server, &e.up, &e.down), 0);
		at = harness_random(&rng) % buffer_bytes(way);
		buffer_front(way)[at] ^= (uint8_t)(1u << harness_random(&rng) % 8);
		r = shake(&e);
		/* 0: a longer record or message is waited for, for ever.  The record version of a
		 * Hello (RFC 8446, 5.1) is the one field that is to be ignored. */
		if (r == 1)
			CHECK(at < 3);
		ends_close(&e);
	}
	buffer_fini(&plain);
}

static void keys_and_names(void)
{
	struct tls_key shown, own;
	char why[TLS_WHY_MAX], text[TLS_FINGERPRINT_MAX];
	struct ends e;

	ends_open(&e, "localhost");
	CHECK_EQ(shake(&e), 1);
	CHECK_EQ(tls_peer_key(e.client, &shown), 0);
	CHECK_EQ(tls_context_key(e.contexts.server, &own), 0);
	CHECK(tls_key_equal(&shown, &own));
	CHECK(!strcmp(shown.type, "ssh-ed25519"));
	CHECK_EQ(shown.len, 4 + 11 + 4 + 32);
	tls_key_fingerprint(&shown, text);
	CHECK_EQ(strlen(text), 7 + 43);
	CHECK(!tls_peer_verified(e.client, why));
	CHECK(*why);
	ends_close(&e);
}

/* The fingerprint of a known key is what ssh-keygen -l says of it. */
static void fingerprint_is_that_of_ssh(void)
{
	static const uint8_t blob[] = "\0\0\0\x0bssh-ed25519\0\0\0\x20"
				      "0123456789abcdef0123456789abcdef";
	struct tls_key key = {.type = "ssh-ed25519", .len = sizeof blob - 1};
	char text[TLS_FINGERPRINT_MAX];

	memcpy(key.blob, blob, sizeof blob - 1);
	tls_key_fingerprint(&key, text);
	/* echo ssh-ed25519 $(base64 of the blob) | ssh-keygen -lf - */
	CHECK(!strcmp(text, "SHA256:r0jjAatH+rPa97KMRB4yEkCq0GlcmkYyacWqmoyiTwI"));
}

static void exporter(void)
{
	uint8_t a[16], b[16], c[16];
	struct ends e, other;

	ends_open(&e, "localhost");
	CHECK(tls_export(e.client, "label", "context", 7, a, sizeof a)); /* not yet */
	CHECK_EQ(shake(&e), 1);
	CHECK_EQ(tls_export(e.client, "label", "context", 7, a, sizeof a), 0);
	CHECK_EQ(tls_export(e.server, "label", "context", 7, b, sizeof b), 0);
	CHECK(!memcmp(a, b, sizeof a));
	CHECK_EQ(tls_export(e.server, "label", "contexT", 7, c, sizeof c), 0);
	CHECK(memcmp(a, c, sizeof a));
	CHECK_EQ(tls_export(e.server, "labeL", "context", 7, c, sizeof c), 0);
	CHECK(memcmp(a, c, sizeof a));
	ends_open(&other, "localhost");
	CHECK_EQ(shake(&other), 1);
	CHECK_EQ(tls_export(other.client, "label", "context", 7, c, sizeof c), 0);
	CHECK(memcmp(a, c, sizeof a));
	ends_close(&other);
	ends_close(&e);
}

static char why[TLS_WHY_MAX];

static int server(const char *key, const char *certificate, struct tls_context **out)
{
	return tls_context_new_server(
		&(struct tls_files){.key = key, .certificate = certificate}, out, why);
}

static int client(const char *ca, struct tls_context **out)
{
	return tls_context_new_client(&(struct tls_files){.ca = ca}, out, why);
}

static void key_files(void)
{
	const char *top = scratch_dir();
	struct tls_context *context;
	char path[256];
	struct stat st;

	snprintf(path, sizeof path, "%s/key", top);
	CHECK_EQ(server(path, NULL, &context), -ENOENT);
	CHECK_EQ(tls_key_create(path), 0);
	CHECK_EQ(tls_key_create(path), -EEXIST);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(server(path, NULL, &context), 0);
	tls_context_free(context);
	CHECK_EQ(server(path, path, &context), -EINVAL); /* no certificate */
	CHECK(strstr(why, path));
	CHECK_EQ(chmod(path, 0640), 0);
	CHECK_EQ(server(path, NULL, &context), -EPERM);
	CHECK(strstr(why, "chmod 600"));
	CHECK_EQ(chmod(path, 0600), 0);
	CHECK_EQ(truncate(path, 40), 0);
	CHECK_EQ(server(path, NULL, &context), -EINVAL);
	CHECK_EQ(client(path, &context), -EINVAL);
}

/* An authority that has signed for a name vouches for that name and no other. */
static void authorities(void)
{
	const char *top = scratch_dir();
	char path[256], ca[256];
	struct contexts contexts;
	static const struct {
		const char *host;
		bool right;
	} names[] = {{"rftpd", true}, {"RFTPD", true}, {"other", false}, {"127.0.0.1", false}};
	EVP_PKEY *pkey;
	X509 *cert;
	FILE *file;

	snprintf(path, sizeof path, "%s/key", top);
	snprintf(ca, sizeof ca, "%s/ca", top);
	CHECK_EQ(tls_key_create(path), 0);
	pkey = tls_key_load(path, why);
	CHECK(pkey);
	cert = tls_key_certify(pkey); /* its name is rftpd, and it is its own authority */
	file = fopen(ca, "w");
	CHECK(file && PEM_write_X509(file, cert));
	fclose(file);
	CHECK_EQ(server(path, ca, &contexts.server), 0);
	CHECK_EQ(client(ca, &contexts.client), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct ends e = {.contexts = contexts};

		CHECK_EQ(tls_new(contexts.client, names[i].host, &e.client), 0);
		CHECK_EQ(tls_new(contexts.server, NULL, &e.server), 0);
		CHECK_EQ(shake(&e), 1);
		CHECK_EQ(tls_peer_verified(e.client, why), names[i].right);
		tls_context_ref(contexts.client);
		tls_context_ref(contexts.server);
		ends_close(&e);
	}
	contexts_free(&contexts);
	X509_free(cert);
	EVP_PKEY_free(pkey);
}

static void linger(void)
{
	poll(NULL, 0, 100);
}

static void *use_tls(void *ready)
{
	const struct tls_files none = {.key = NULL};
	char said[TLS_WHY_MAX]; /* its own */
	struct tls_context *c;

	for (;;) {
		if (tls_context_new_client(&none, &c, said))
			_exit(3);
		tls_context_free(c);
		atomic_store((atomic_bool *)ready, true);
	}
	return NULL;
}

/* Its thread goes on while it exits. */
static void end_while_it_is_used(void)
{
	static atomic_bool ready;
	pthread_t thread;

	atexit(linger); /* registered first, called last */
	tls_outlive_exit();
	if (pthread_create(&thread, NULL, use_tls, &ready))
		_exit(4);
	while (!atomic_load(&ready))
		poll(NULL, 0, 1);
	exit(0);
}

static void a_program_may_end_while_a_thread_uses_it(void)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child)
		end_while_it_is_used();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	static const struct harness_case cases[] = {
		/* the first, as TLS is set up once in a process */
		{"a program may end while a thread uses it",
			a_program_may_end_while_a_thread_uses_it},
		{"both ways", both_ways},
		{"changes are noticed", changes_are_noticed},
		{"keys and names", keys_and_names},
		{"the fingerprint is that of ssh", fingerprint_is_that_of_ssh},
		{"exporter", exporter},
		{"key files", key_files},
		{"authorities", authorities},
		{NULL, NULL},
	};

	if (!quiet_log("tls"))
		return 2;
	return harness_run(cases, argc, argv);
}
