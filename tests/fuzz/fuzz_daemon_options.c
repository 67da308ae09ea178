/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_daemon_options: the input is rftpd's command line, one argument a line.
 *
 * What is accepted must be within its limits; what is refused must be given a reason.
 */
#include "rftpd/daemon_options.h"
#include "rftpd/export_rule.h"

#include "block/block.h"
#include "proto/message.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define ARGUMENTS_MAX 64

static void check_settings(const struct daemon_settings *s)
{
	must(s->listen_count <= DAEMON_LISTEN_MAX);
	for (unsigned i = 0; i < s->listen_count; i++)
		must(s->listen[i] && *s->listen[i]);
	must(s->export_count <= DAEMON_EXPORTS_MAX);
	for (unsigned i = 0; i < s->export_count; i++)
		must(s->exports[i] && *s->exports[i]->directory);
	must(s->max_sessions >= 1);
	must(s->max_channels >= 1 && s->max_channels <= MESSAGE_CHANNELS_MAX);
	must(s->max_block_bytes >= BLOCK_BYTES_MIN && s->max_block_bytes <= BLOCK_BYTES_MAX);
	must(s->max_block_bytes % BLOCK_ALIGN == 0);
	must(s->class_count <= ADMISSION_RULES_MAX);
	for (unsigned i = 0; i < s->class_count; i++)
		must(s->classes[i].rank <= ADMISSION_RANK_MAX && *s->classes[i].name &&
			s->classes[i].network_bits <= 128);
	must(s->turn_bytes >= 1u << 20 && s->queue_max >= 1);
	must(s->handshake_timeout_s >= 1 && s->handshake_timeout_s <= 3600);
	must((int)s->log_level >= LOG_LEVEL_ERROR && s->log_level <= LOG_LEVEL_DEBUG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[ARGUMENTS_MAX + 2] = {"rftpd"}, *at;
	char why[DAEMON_WHY_MAX];
	struct daemon_options o;
	int argc = 1;

	must(text);
	if (size) /* an empty vector has no address */
		memcpy(text, data, size);
	text[size] = '\0';
	for (at = text; argc <= ARGUMENTS_MAX; argc++) {
		char *end = strchr(at, '\n');

		if (!end && !*at)
			break;
		argv[argc] = at;
		if (!end) {
			argc++;
			break;
		}
		*end = '\0';
		at = end + 1;
	}
	argv[argc] = NULL;
	if (daemon_options_parse(&o, argc, argv, why))
		must(*why);
	else
		check_settings(&o.settings);
	daemon_options_fini(&o);
	free(text);
	return 0;
}
