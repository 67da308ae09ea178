/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/contexts.h: TLS contexts of a client and of a daemon whose key is made for the run.
 */
#ifndef TESTS_CONTEXTS_H
#define TESTS_CONTEXTS_H

#include "session/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct contexts {
	struct tls_context *client, *server;
};

/* The key's file is gone before this returns. */
static void contexts_make(struct contexts *c)
{
	char directory[] = "/tmp/rftp-contexts-XXXXXX", key[64], why[TLS_WHY_MAX] = "";
	int r;

	if (!mkdtemp(directory)) {
		perror(directory);
		abort();
	}
	snprintf(key, sizeof key, "%s/key", directory);
	r = tls_key_create(key);
	if (!r)
		r = tls_context_new_server(&(struct tls_files){.key = key}, &c->server, why);
	if (!r)
		r = tls_context_new_client(&(struct tls_files){.key = NULL}, &c->client, why);
	unlink(key);
	rmdir(directory);
	if (r) {
		fprintf(stderr, "TLS contexts: %d %s\n", r, why);
		abort();
	}
}

static void contexts_free(struct contexts *c)
{
	tls_context_free(c->client);
	tls_context_free(c->server);
	*c = (struct contexts){NULL, NULL};
}

#endif
