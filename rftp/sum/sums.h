/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/sum/sums: the sums of any files, here and at servers, each computed where it lies: those
 * here by several threads, those of one server by as many as it likes, and both at the same time.
 */
#ifndef RFTP_SUMS_H
#define RFTP_SUMS_H

#include "rftp/remote/client.h"
#include "rftp/remote/url.h"
#include "tree/sum.h"

struct sums_item {
	char *shown; /* how the user knows it */
	char *path;
	const struct url *server; /* NULL: it is here, or at the server that is open */
	bool remote;
	bool stream; /* standard input; it has no path */
	/* the result */
	uint16_t status;
	char *text; /* of a status; NULL: it says it all */
	uint64_t size;
	uint8_t sum[SUM_BYTES_MAX];
};

struct filter;

struct sums { /* zeroed but for the first ones */
	struct client *client;
	uint8_t algorithm;
	bool recursive;              /* a directory stands for the files in it (sums_tree) */
	const struct filter *filter; /* of these; NULL: all of them */
	struct sums_item *items;
	size_t count, room;
	struct url **servers; /* without paths */
	size_t servers_count;
};

void sums_fini(struct sums *);

/* One file.  Of the item shown, path, server and remote count; the names are copied.  0 or -ENOMEM
 * (reported). */
int sums_add_item(struct sums *, const struct sums_item *);
/* A name here, or of the server that is open.  0 or -errno (reported). */
int sums_add(struct sums *, const char *shown, const char *path, bool remote);
/* Standard input, once.  0 or -errno (reported). */
int sums_add_stream(struct sums *);
/* What a URL stands for: with a pattern, all that matches.  0; -errno (reported): the URL cannot
 * be used; what is at its server, sums_run finds out. */
int sums_add_url(struct sums *, const char *url);

/* Computes all; `done` is called for each in their order, as soon as it and those before it are
 * known. 0 or -errno (reported): it was interrupted, or a server is lost. */
int sums_run(struct sums *, void (*done)(void *ctx, const struct sums_item *), void *ctx);

#endif
