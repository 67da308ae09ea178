/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftpd/configuration: see configuration.h.
 */
#include "rftpd/configuration.h"

#include <string.h>

_Static_assert(DAEMON_WHY_MAX <= CONF_WHY_MAX, "a reason of the command line fits");

static int set_from_file(void *ctx, const char *name, const char *value, char *why)
{
	return daemon_settings_set(ctx, DAEMON_ORIGIN_FILE, name, value, why);
}

static int load(const struct configuration *c, struct daemon_options *o, char why[CONF_WHY_MAX])
{
	int err = daemon_options_parse(o, c->argc, c->argv, why);

	if (err || o->action == DAEMON_ACTION_HELP || o->action == DAEMON_ACTION_VERSION)
		return err;
	err = o->config ? conf_load(o->config, set_from_file, &o->settings, why) : 0;
	return err ? err : activation_use(&c->activation, &o->settings, why);
}

int configuration_load(struct configuration *c, int argc, char **argv, char why[CONF_WHY_MAX])
{
	c->argc = argc;
	c->argv = argv;
	c->replaced = false;
	activation_take(&c->activation);
	return load(c, &c->options, why);
}

void configuration_fini(struct configuration *c)
{
	daemon_options_fini(&c->options);
	if (c->replaced)
		daemon_settings_fini(&c->first);
}

const struct daemon_settings *configuration_first(const struct configuration *c)
{
	return c->replaced ? &c->first : &c->options.settings;
}

int configuration_reread(
	const struct configuration *c, struct daemon_settings *out, char why[CONF_WHY_MAX])
{
	struct daemon_options again;
	int err = load(c, &again, why);

	if (err)
		daemon_options_fini(&again);
	else
		*out = again.settings;
	return err;
}

void configuration_replace(struct configuration *c, struct daemon_settings *settings)
{
	if (c->replaced)
		daemon_settings_fini(&c->options.settings);
	else
		c->first = c->options.settings;
	c->replaced = true;
	c->options.settings = *settings;
}
