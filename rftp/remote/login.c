/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/login: see login.h.
 *
 * Owns the order of the methods.  Where a password or a key comes from is its own module's.
 */
#include "rftp/remote/login.h"

#include "rftp/remote/askpass.h"
#include "rftp/remote/ssh_unlock.h"
#include "rftp/ui/escape.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN 0u /* the server has not said yet which methods it knows */

static void note(struct login *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct login *l, const char *format, ...)
{
	char text[512];
	va_list ap;

	if (!l->note)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	l->note(l->note_ctx, text);
}

static int load_credentials(struct login *l, char why[TLS_WHY_MAX])
{
	char path[PATH_MAX], text[PASSWORD_WHY_MAX];
	int err = credentials_path(path, sizeof path);

	if (!err)
		err = credentials_load(path, l->host, l->port, l->name, &l->kept, text);
	if (!err)
		note(l, "login: %s has a password for %s", path, l->kept.user);
	else if (err != -ENOENT && err != -ENAMETOOLONG)
		snprintf(why, TLS_WHY_MAX, "%s", text);
	return err == -ENOENT || err == -ENAMETOOLONG ? 0 : err;
}

/* What an option names is shown, and nothing that was not named. */
static bool is_explicit(const struct login *l)
{
	const struct settings *s = l->settings;

	return *s->cert || *s->identity || *s->password_file || *s->password_command;
}

int login_init(struct login *l, char why[TLS_WHY_MAX])
{
	int err;

	if (l->once_key)
		return 0;
	snprintf(l->name, sizeof l->name, "%s", *l->user ? l->user : l->settings->user);
	err = load_credentials(l, why);
	if (!err && !*l->name)
		snprintf(l->name, sizeof l->name, "%s", l->kept.user);
	return err;
}

static void forget_keys(struct login *l)
{
	if (l->keys)
		login_keys_close(l->keys);
	free(l->keys);
	l->keys = NULL;
}

void login_fini(struct login *l)
{
	forget_keys(l);
	explicit_bzero(l->password, sizeof l->password);
	explicit_bzero(&l->kept, sizeof l->kept);
	text_fini(&l->tried);
}

void login_again(struct login *l)
{
	if (l->unlocked)
		login_keys_again(l->keys);
	else
		forget_keys(l);
	l->step = 0;
	l->shown = 0;
	text_clear(&l->tried);
}

/* ---- the steps: each gives 1 and what to show, as often as it has something; 0: the next one;
 * -EAGAIN: not before the server has said which methods it knows; -errno and `why` ---- */

struct showing {
	const struct tls *tls;
	unsigned methods; /* UNKNOWN, or that the server knows */
	struct message_login *out;
	char *why;
};

static struct wire_bytes bytes_of(const char *text)
{
	return (struct wire_bytes){(const uint8_t *)text, strlen(text)};
}

static int show_password(struct login *l, const struct showing *s)
{
	*s->out = (struct message_login){
		.method = MESSAGE_LOGIN_PASSWORD,
		.user = bytes_of(l->name),
		.data = bytes_of(l->password),
	};
	return 1;
}

static int step_once(struct login *l, const struct showing *s)
{
	l->step++;
	if (!l->once_key)
		return 0;
	*s->out = (struct message_login){
		.method = MESSAGE_LOGIN_ONCE, .data = {l->once_key, MESSAGE_LOGIN_ONCE_BYTES}};
	return 1;
}

static int step_certificate(struct login *l, const struct showing *s)
{
	char own[TLS_OWN_MAX];

	l->step++;
	if (!*l->settings->cert)
		return 0;
	if (tls_describe_own(s->tls, own, sizeof own))
		note(l, "login: certificate of %s", own);
	*s->out = (struct message_login){
		.method = MESSAGE_LOGIN_CERTIFICATE, .user = bytes_of(l->name)};
	return 1;
}

/* Which keys there are, and why not others: who cannot log in looks for that first. */
static void note_keys(struct login *l)
{
	const char *agent = getenv("SSH_AUTH_SOCK");
	int n = l->keys->agent_keys;

	if (n < 0 && (!agent || !*agent))
		note(l, "login: no ssh-agent: SSH_AUTH_SOCK is not set");
	else if (n < 0)
		note(l, "login: ssh-agent at %.200s: %s", agent, strerror(-n));
	else
		note(l, "login: ssh-agent has %d Ed25519 %s", n, n == 1 ? "key" : "keys");
	if (n > (int)LOGIN_KEYS_MAX && !*l->settings->identity)
		note(l, "login: the first %u of them are shown: name another with --identity",
			LOGIN_KEYS_MAX);
	if (*l->keys->unused)
		note(l, "login: %s", l->keys->unused);
}

/* The next one.  0: there is none. */
static int show_key(struct login *l, const struct showing *s)
{
	char shown[TLS_FINGERPRINT_MAX], why[SSH_KEY_WHY_MAX];
	struct wire_bytes data;
	int err;

	while ((err = login_keys_next(l->keys, s->tls, l->name, l->cancel_fd, &data, shown, why)) <
		0) {
		if (err == -ECANCELED) {
			snprintf(s->why, TLS_WHY_MAX, "interrupted");
			return err;
		}
		note(l, "login: %s", why);
	}
	if (!err)
		return 0;
	note(l, "login: key %s", shown);
	*s->out = (struct message_login){
		.method = MESSAGE_LOGIN_KEY, .user = bytes_of(l->name), .data = data};
	return 1;
}

static int step_keys(struct login *l, const struct showing *s)
{
	char why[SSH_KEY_WHY_MAX];
	int err = 0;

	if (!*l->name || (is_explicit(l) && !*l->settings->identity)) {
		l->step++;
		return 0;
	}
	if (!l->keys) {
		l->keys = malloc(sizeof *l->keys);
		if (!l->keys)
			return -ENOMEM;
		err = login_keys_open(l->keys, l->settings->identity, l->cancel_fd, why);
		note_keys(l);
	}
	if (err) {
		snprintf(s->why, TLS_WHY_MAX, "%s", why);
		return err;
	}
	err = show_key(l, s);
	if (!err)
		l->step++;
	return err;
}

/* What was typed before the connection was lost. */
static int step_typed(struct login *l, const struct showing *s)
{
	l->step++;
	return l->asked && *l->password ? show_password(l, s) : 0;
}

static int step_password_file(struct login *l, const struct showing *s)
{
	int err;

	l->step++;
	if (!*l->settings->password_file || !*l->name)
		return 0;
	err = password_read_file(l->settings->password_file, l->password, s->why);
	return err ? err : show_password(l, s);
}

static int step_password_command(struct login *l, const struct showing *s)
{
	int err;

	if (!*l->settings->password_command || !*l->name) {
		l->step++;
		return 0;
	}
	if (s->methods == UNKNOWN)
		return -EAGAIN; /* it may ask somebody */
	l->step++;
	err = password_read_command(
		l->settings->password_command, l->cancel_fd, l->password, s->why);
	l->asked = true;
	return err ? err : show_password(l, s);
}

static int step_credentials(struct login *l, const struct showing *s)
{
	l->step++;
	if (is_explicit(l) || !*l->kept.password || strcmp(l->kept.user, l->name) != 0)
		return 0;
	memcpy(l->password, l->kept.password, sizeof l->password);
	return show_password(l, s);
}

/* A password may do instead, unless the key was named. */
static int cannot_ask(struct login *l, const struct showing *s, const char *reason)
{
	note(l, "login: %s has a passphrase, and %s", l->keys->locked, reason);
	if (!*l->settings->identity)
		return 0;
	snprintf(s->why, TLS_WHY_MAX,
		"%.200s has a passphrase, and %.150s: use ssh-agent (ssh-add)", l->keys->locked,
		reason);
	return -EACCES;
}

/* One try.  -EKEYREJECTED: it is wrong; `why` of what else is in the way. */
static int try_passphrase(struct login *l, bool again, char why[SSH_KEY_WHY_MAX])
{
	char prompt[PATH_MAX + 100], passphrase[PASSWORD_MAX], text[PASSWORD_WHY_MAX];
	struct text path = {0};
	int err;

	escape_display(&path, l->keys->locked, strlen(l->keys->locked));
	snprintf(prompt, sizeof prompt,
		"%sEnter passphrase for key '%.*s': ", again ? "The passphrase is wrong. " : "",
		PATH_MAX, text_str(&path));
	text_fini(&path);
	err = askpass_ask(prompt, l->cancel_fd, passphrase, text);
	if (err) {
		snprintf(why, SSH_KEY_WHY_MAX, "%.150s", text);
		return err;
	}
	l->asked = true;
	err = login_keys_unlock(l->keys, passphrase, why);
	explicit_bzero(passphrase, sizeof passphrase);
	if (err)
		note(l, "login: %s", why);
	return err;
}

/* 0: the key is open, or stays locked and something else may do. */
static int ask_passphrase(struct login *l, const struct showing *s)
{
	char why[SSH_KEY_WHY_MAX];
	int err = -EKEYREJECTED;

	if (!ssh_unlock_ready())
		return cannot_ask(l, s, "libssh, which opens it, is not installed");
	for (unsigned i = 0; i < LOGIN_PROMPTS && err == -EKEYREJECTED; i++)
		err = try_passphrase(l, i, why);
	l->unlocked = !err;
	l->wrong_passphrase = err == -EKEYREJECTED;
	if (err == -ENOTTY)
		return cannot_ask(l, s, why);
	if (!err || err == -EKEYREJECTED)
		return 0;
	if (err == -ENODATA || (err != -ECANCELED && !*l->settings->identity)) {
		note(l, "login: %s stays locked: %s", l->keys->locked, why);
		return 0; /* or it was a usual one, which nobody asked for */
	}
	snprintf(s->why, TLS_WHY_MAX, "%s", why);
	return err == -ECANCELED ? err : -EACCES;
}

/* As with ssh, an empty one goes on to the next method. */
static int step_passphrase(struct login *l, const struct showing *s)
{
	int err;

	if (!l->keys || !*l->keys->locked) {
		l->step++;
		return 0;
	}
	if (s->methods == UNKNOWN)
		return -EAGAIN;
	l->step++;
	err = ask_passphrase(l, s);
	if (!err && l->unlocked)
		err = show_key(l, s);
	return err;
}

static int step_prompt(struct login *l, const struct showing *s)
{
	char prompt[MESSAGE_NAME_MAX + 300], why[PASSWORD_WHY_MAX];
	struct text name = {0};
	int err;

	if (!*l->name || l->prompts == LOGIN_PROMPTS || *l->settings->password_file ||
		*l->settings->password_command) {
		l->step++;
		return 0;
	}
	if (s->methods == UNKNOWN)
		return -EAGAIN;
	escape_display(&name, l->name, strlen(l->name));
	snprintf(prompt, sizeof prompt, "%s@%s's password: ", text_str(&name), l->host);
	text_fini(&name);
	err = askpass_ask(prompt, l->cancel_fd, l->password, why);
	if (err == -ECANCELED) {
		snprintf(s->why, TLS_WHY_MAX, "interrupted");
		return err;
	}
	if (err) {
		note(l, "login: no password: %s", why);
		l->step++;
		return 0;
	}
	l->asked = true;
	l->prompts++;
	return show_password(l, s);
}

static int step_anonymous(struct login *l, const struct showing *s)
{
	l->step++;
	if (*l->name || l->once_key || *l->settings->cert)
		return 0;
	*s->out = (struct message_login){.method = MESSAGE_LOGIN_ANONYMOUS};
	return 1;
}

static const struct {
	uint8_t method;
	int (*run)(struct login *, const struct showing *);
} steps[] = {
	{MESSAGE_LOGIN_ONCE, step_once},
	{MESSAGE_LOGIN_CERTIFICATE, step_certificate},
	{MESSAGE_LOGIN_KEY, step_keys},
	{MESSAGE_LOGIN_PASSWORD, step_typed},
	{MESSAGE_LOGIN_PASSWORD, step_password_file},
	{MESSAGE_LOGIN_PASSWORD, step_password_command},
	{MESSAGE_LOGIN_PASSWORD, step_credentials},
	{MESSAGE_LOGIN_KEY, step_passphrase},
	{MESSAGE_LOGIN_PASSWORD, step_prompt},
	{MESSAGE_LOGIN_ANONYMOUS, step_anonymous},
};
#define STEPS (sizeof steps / sizeof *steps)

static void note_methods(struct login *l, unsigned methods)
{
	struct text names = {0};

	if (methods == UNKNOWN || l->methods_noted)
		return;
	l->methods_noted = true;
	for (uint8_t m = 0; m < 32; m++)
		if (methods & 1u << m && message_login_name(m)) /* others are not known here */
			text_printf(&names, "%s%s", names.len ? ", " : "", message_login_name(m));
	note(l, "login: the server knows the methods %s", text_str(&names));
	text_fini(&names);
}

static void note_refusal(struct login *l)
{
	const char *name = message_login_name(l->shown);

	note(l, "login: the server does not take it (%s)", name);
	if (!strstr(text_str(&l->tried), name))
		text_printf(&l->tried, "%s%s", l->tried.len ? ", " : "", name);
}

int login_next(void *login, const struct tls *tls, unsigned methods, struct message_login *out,
	char why[TLS_WHY_MAX])
{
	struct login *l = login;
	const struct showing s = {tls, methods, out, why};

	if (l->shown)
		note_refusal(l);
	note_methods(l, methods);
	l->shown = 0;
	while (l->step < STEPS) {
		uint8_t method = steps[l->step].method;
		int err;

		if (methods != UNKNOWN && !(methods & 1u << method)) {
			note(l, "login: the server does not know the method %s",
				message_login_name(method));
			while (l->step < STEPS && steps[l->step].method == method)
				l->step++;
			continue;
		}
		err = steps[l->step].run(l, &s);
		if (err == -EAGAIN)
			return 0;
		if (err == 1) {
			l->shown = method;
			note(l, "login: %s%s%s", message_login_name(method), *l->name ? " of " : "",
				l->name);
		}
		if (err)
			return err;
	}
	return 0;
}

void login_explain(const struct login *l, struct text *out)
{
	bool is_somebody = *l->name || *l->settings->cert;
	struct text name = {0};

	escape_display(&name, l->name, strlen(l->name));
	if (*l->name)
		text_printf(out, "the login as %s is refused", text_str(&name));
	else
		text_printf(out, "the login is refused%s",
			is_somebody ? "" : ": name a user (rftp://USER@HOST/)");
	if (l->tried.len && is_somebody)
		text_printf(out, " (tried: %s)", text_str(&l->tried));
	else if (is_somebody)
		text_puts(out, ": there is nothing to show that the server takes (-vv says more)");
	if (*l->settings->key && !*l->settings->cert)
		text_puts(out, "; --key is that of --cert: --identity names a key of OpenSSH");
	if (l->wrong_passphrase)
		text_puts(out, "; the passphrase of its key was wrong");
	text_fini(&name);
}
