/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_conf: the input is a configuration file, parsed into settings as rftpd does it.
 *
 * What reaches the settings must be trimmed; what was taken must be the same when it is written out
 * and read again; an error must name the file and a line that exists.
 */
#include "rftpd/conf.h"
#include "rftpd/daemon_settings.h"
#include "rftpd/export_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

struct sink {
	struct daemon_settings settings;
	char *again; /* what was taken, as a file */
	size_t len, room;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool trimmed(const char *s)
{
	return !*s || (!blank(s[0]) && !blank(s[strlen(s) - 1]));
}

static int take(void *ctx, const char *name, const char *value, char *why)
{
	struct sink *s = ctx;
	int r;

	must(*name && trimmed(name) && trimmed(value) && strlen(value) < CONF_VALUE_MAX);
	must(!strchr(name, '\n') && !strchr(value, '\n') && !strchr(name, '='));
	r = daemon_settings_set(&s->settings, DAEMON_ORIGIN_FILE, name, value, why);
	must(!r || *why);
	if (!r && s->again) {
		must(s->len + strlen(name) + strlen(value) + 4 <= s->room);
		s->len += (size_t)sprintf(s->again + s->len, "%s = %s\n", name, value);
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sink first = {.room = 4 * size + 16}, second = {0};
	char why[CONF_WHY_MAX] = "";
	unsigned long line, lines = 1;
	int r;

	first.again = malloc(first.room);
	must(first.again);
	daemon_settings_init(&first.settings);
	daemon_settings_init(&second.settings);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	r = conf_parse((const char *)data, size, "conf", take, &first, why);
	if (r) {
		must(!strncmp(why, "conf:", 5));
		line = strtoul(why + 5, NULL, 10);
		must(line >= 1 && line <= lines);
	} else {
		must(!conf_parse(first.again, first.len, "again", take, &second, why));
		must(first.settings.listen_count == second.settings.listen_count);
		must(first.settings.max_sessions == second.settings.max_sessions);
		must(first.settings.export_count == second.settings.export_count);
		for (unsigned i = 0; i < first.settings.export_count; i++)
			must(first.settings.exports[i]->rights ==
				second.settings.exports[i]->rights);
		must(!memcmp(first.settings.origin, second.settings.origin,
			sizeof first.settings.origin));
	}
	daemon_settings_fini(&first.settings);
	daemon_settings_fini(&second.settings);
	free(first.again);
	return 0;
}
