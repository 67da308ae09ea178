/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/visit: see visit.h.
 */
#include "rftp/remote/visit.h"

#include <errno.h>

int visit_parse(struct client *c, const char *name, struct url *url)
{
	const char *why;
	int err = url_parse(name, url, &why);

	if (err == -ENOMEM)
		return client_no_memory(c);
	if (err)
		report_error(&c->report, EXIT_CODE_USAGE, STATUS_INVALID, name, why);
	return err;
}

int visit_open(struct client *c, const char *name, struct url *url)
{
	int err = visit_parse(c, name, url);

	if (err)
		return err;
	err = client_open(c, url);
	if (!err)
		err = client_place(c, url);
	if (err)
		url_fini(url);
	return err;
}
