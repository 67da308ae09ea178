/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/copy/rules.c: see rules.h.
 */
#include "rftp/copy/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RULES_BYTES_MAX 32768u /* of a request: paths have the rest */

/* Those of the setting `filter`. */
static int rules_read_filter(struct client *c, struct filter *out)
{
	const char *rule = c->settings.rules;
	char why[FILTER_WHY_MAX] = "";
	int err = 0;

	while (*rule && !err) {
		size_t len = strcspn(rule, "\n");
		char *text = strndup(rule, len);

		err = text ? filter_add(out, text, why) : -ENOMEM;
		free(text);
		rule += len + (rule[len] == '\n');
	}
	if (err && err != -ENOMEM)
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_INVALID, "filter", why);
	return err == -ENOMEM ? client_no_memory(c) : err;
}

int rules_read_again(
	struct client *c, struct filter *out, struct filter *whole, struct again *again)
{
	char why[FILTER_WHY_MAX] = "";
	int err = rules_read_filter(c, out);

	if (!err && whole)
		err = rules_read_filter(c, whole);
	if (err || !c->settings.retry_from[0])
		return err;
	err = again_read(again, c->settings.retry_from, out, why, sizeof why);
	if (err && err != -ENOMEM)
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_INVALID, NULL, why);
	return err == -ENOMEM ? client_no_memory(c) : err;
}

int rules_read(struct client *c, struct filter *out)
{
	struct filter whole = {0};
	struct again again = {0};
	int err = rules_read_again(c, out, &whole, &again);

	/* the one source whole is all of it */
	if (!err && again.sources.len) {
		filter_fini(out);
		*out = whole;
		whole = (struct filter){0};
	}
	filter_fini(&whole);
	again_fini(&again);
	return err;
}

int rules_request(struct client *c, const struct filter *filter,
	struct message_data_request *request, uint8_t **list)
{
	size_t used = 0;
	int err = 0;

	*list = NULL;
	if (!filter->count)
		return 0;
	*list = malloc(RULES_BYTES_MAX);
	if (!*list)
		return client_no_memory(c);
	for (size_t i = 0; i < filter->count && !err; i++) {
		bool include;
		const char *pattern = filter_rule_pattern(filter, i, &include);

		err = i == MESSAGE_RULES_MAX
			      ? -EMSGSIZE
			      : message_add_rule(*list, RULES_BYTES_MAX, &used,
					&(struct message_rule){include,
						{(const uint8_t *)pattern, strlen(pattern)}});
	}
	if (err) {
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_TOO_LARGE, "filter",
			"more rules than a request to a server has room for");
		free(*list);
		*list = NULL;
		return err;
	}
	request->rule_count = (uint16_t)filter->count;
	request->rules = (struct wire_bytes){*list, used};
	return 0;
}
