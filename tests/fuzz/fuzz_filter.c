/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_filter: rules of what is copied, and a name.
 *
 * Input: two rules and a name, NUL between them.  Properties: what is refused has a reason; rules
 * written again from what was kept say the same of the name.
 */
#include "tests/fuzz/fuzz.h"
#include "tree/filter.h"

#include <stdio.h>

static void add(struct filter *f, const char *rule)
{
	char why[FILTER_WHY_MAX] = "";

	/* no rule of this test reads a file */
	if (*rule == '.' || *rule == 'm')
		return;
	if (filter_add(f, rule, why))
		must(*why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *first = fuzz_string(&in), *second = fuzz_string(&in), *name = fuzz_string(&in);
	struct filter f = {0}, again = {0};
	char why[FILTER_WHY_MAX];

	add(&f, first);
	add(&f, second);
	for (size_t i = 0; i < f.count; i++) {
		bool include;
		const char *pattern = filter_rule_pattern(&f, i, &include);

		must(!filter_add_pattern(&again, include, pattern, why));
	}
	must(again.count == f.count);
	for (int directory = 0; directory < 2; directory++)
		must(filter_excludes(&f, name, directory) ==
			filter_excludes(&again, name, directory));
	filter_fini(&f);
	filter_fini(&again);
	free(first);
	free(second);
	free(name);
	return 0;
}
