/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/settings_login: settings of rftp/settings_values that say who the server must be, and who
 * logs in there.
 */
#include "rftp/settings_forms.h"
#include "rftp/settings_values.h"

#include <errno.h>
#include <string.h>

static const char *const host_keys_names[] = {
	[TRUST_AUTO] = "auto",
	[TRUST_ASK] = "ask",
	[TRUST_ACCEPT_NEW] = "accept-new",
	[TRUST_STRICT] = "strict",
};

int settings_set_host_keys(struct settings *s, const char *value, struct text *why)
{
	int i = settings_find_word(SETTINGS_WORDS(host_keys_names), value, why);

	if (i < 0)
		return -EINVAL;
	s->host_keys = (enum trust_policy)i;
	return 0;
}

void settings_show_host_keys(const struct settings *s, struct text *out)
{
	text_puts(out, host_keys_names[s->host_keys]);
}

int settings_set_host_key(struct settings *s, const char *value, struct text *why)
{
	bool none = !strcmp(value, "none");

	if (!none && (strncmp(value, "SHA256:", 7) || strlen(value) != 7 + 43)) {
		text_puts(why, "a fingerprint (SHA256:... as rftpd logs it), or none");
		return -EINVAL;
	}
	strcpy(s->host_key, none ? "" : value);
	return 0;
}

void settings_show_host_key(const struct settings *s, struct text *out)
{
	settings_show_or_none(s->host_key, "none", out);
}

int settings_set_known_hosts(struct settings *s, const char *value, struct text *why)
{
	if (!settings_is_auto(value))
		return settings_set_path(s->known_hosts, value, why);
	s->known_hosts[0] = '\0';
	return 0;
}

void settings_show_known_hosts(const struct settings *s, struct text *out)
{
	settings_show_or_none(s->known_hosts, "auto", out);
}

int settings_set_user(struct settings *s, const char *value, struct text *why)
{
	if (!strcmp(value, "none"))
		value = "";
	else if (!*value || strlen(value) >= sizeof s->user) {
		text_puts(why, "the name of a user, or none");
		return -EINVAL;
	}
	strcpy(s->user, value);
	return 0;
}

void settings_show_user(const struct settings *s, struct text *out)
{
	settings_show_or_none(s->user, "none", out);
}

int settings_set_ssh(struct settings *s, const char *value, struct text *why)
{
	return settings_set_path(s->ssh, value, why);
}

void settings_show_ssh(const struct settings *s, struct text *out)
{
	text_puts(out, s->ssh);
}

int settings_set_rftpd_path(struct settings *s, const char *value, struct text *why)
{
	return settings_set_path(s->rftpd_path, value, why);
}

void settings_show_rftpd_path(const struct settings *s, struct text *out)
{
	text_puts(out, s->rftpd_path);
}

#define PATH_OR_NONE(name)                                                                         \
	int settings_set_##name(struct settings *s, const char *value, struct text *why)           \
	{                                                                                          \
		return settings_set_path_or_none(s->name, value, why);                             \
	}                                                                                          \
	void settings_show_##name(const struct settings *s, struct text *out)                      \
	{                                                                                          \
		settings_show_or_none(s->name, "none", out);                                       \
	}
PATH_OR_NONE(ca)
PATH_OR_NONE(identity)
PATH_OR_NONE(cert)
PATH_OR_NONE(key)
PATH_OR_NONE(password_file)
PATH_OR_NONE(password_command)
