/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_url: rftp://HOST[:PORT]/PATH, and ssh:// in its place.
 *
 * Input: the text.  Property: host, port and path, written as a URL with every byte of the path as
 * %NN and the % before a zone as %25, are read back as they are; the pattern, its escapes taken
 * away, is the path.
 */
#include "rftp/remote/url.h"
#include "rftp/ui/text.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

/* A zone's name may itself begin with what stands for its %. */
static void put_host(struct text *out, const char *host)
{
	size_t len = strcspn(host, "%");

	if (!strchr(host, ':'))
		text_puts(out, host);
	else if (host[len])
		text_printf(out, "[%.*s%%25%s]", (int)len, host, host + len + 1);
	else
		text_printf(out, "[%s]", host);
}

static void read_back(const struct url *url)
{
	struct text out = {0};
	struct url again;
	const char *why;

	text_puts(&out, url->ssh ? "ssh://" : "rftp://");
	put_host(&out, url->host);
	if (url->port)
		text_printf(&out, ":%u", url->port);
	text_puts(&out, "/");
	for (const char *p = url->path + 1; *p; p++)
		text_printf(&out, "%%%02x", (uint8_t)*p);
	must(url_is(text_str(&out)));
	must(!url_parse(text_str(&out), &again, &why));
	must(!strcmp(again.host, url->host) && again.port == url->port &&
		!strcmp(again.path, url->path));
	url_fini(&again);
	text_fini(&out);
}

static bool stands_for(const char *pattern, const char *path)
{
	for (; *pattern; pattern++, path++) {
		if (*pattern == '\\' && pattern[1])
			pattern++;
		if (*pattern != *path)
			return false;
	}
	return !*path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *text = fuzz_string(&in);
	struct url url;
	const char *why = "";

	url_is_foreign(text);
	if (url_parse(text, &url, &why)) {
		must(*why);
	} else {
		must(url_is(text) && url.path[0] == '/' && url.host[0] && (url.port || url.ssh));
		must(stands_for(url.pattern, url.path));
		read_back(&url);
		url_fini(&url);
	}
	free(text);
	return 0;
}
