/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/shell/commands_jobs.c: the commands about those that run in the background.
 */
#include "rftp/shell/commands_impl.h"

#include "base/number.h"
#include "rftp/shell/jobs.h"

#include <errno.h>

int command_jobs(struct client *c, const struct lexer_command *line)
{
	(void)line;
	jobs_list(c->jobs, c);
	return 0;
}

/* The number of a job: "1", or "%1" as shells have it.  0 or -EINVAL, reported. */
static int job_number(struct client *c, const char *word, unsigned *number)
{
	uint64_t value;

	if (number_parse(*word == '%' ? word + 1 : word, 1, UINT16_MAX, &value)) {
		report_usage(&c->report, "%s: not the number of a job", word);
		return -EINVAL;
	}
	*number = (unsigned)value;
	return 0;
}

int command_wait(struct client *c, const struct lexer_command *line)
{
	unsigned number = 0;
	int err = line->count > 1 ? job_number(c, line->words[1].text, &number) : 0;

	return err ? err : jobs_wait(c->jobs, c, number);
}

int command_kill(struct client *c, const struct lexer_command *line)
{
	unsigned number;
	int err = job_number(c, line->words[1].text, &number);

	return err ? err : jobs_kill(c->jobs, c, number);
}
