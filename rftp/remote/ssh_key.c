/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rftp/remote/ssh_key: see ssh_key.h.  The form is that of OpenSSH's PROTOCOL.key.
 */
#include "rftp/remote/ssh_key.h"

#include "rftp/remote/password.h"
#include "rftp/remote/ssh_unlock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----"
#define END "-----END OPENSSH PRIVATE KEY-----"
#define MAGIC "openssh-key-v1" /* with its NUL */

/* Strings of ssh: a length of 32 bits, and so many bytes. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

struct string {
	const uint8_t *at;
	size_t len;
};

static uint32_t get_number(struct reader *r)
{
	const uint8_t *b = r->at;

	if (r->left < 4) {
		r->bad = true;
		return 0;
	}
	r->at += 4;
	r->left -= 4;
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static struct string get_string(struct reader *r)
{
	uint32_t len = get_number(r);
	struct string s = {r->at, len};

	if (r->bad || len > r->left) {
		r->bad = true;
		return (struct string){r->at, 0};
	}
	r->at += len;
	r->left -= len;
	return s;
}

static bool is(struct string s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.at, text, s.len);
}

static int refuse(char why[SSH_KEY_WHY_MAX], int err, const char *text)
{
	snprintf(why, SSH_KEY_WHY_MAX, "%s", text);
	return err;
}

/* Behind the two check numbers: type, public key, seed and public key again, comment, padding. */
static int parse_private(struct string part, struct ssh_key *key, char why[SSH_KEY_WHY_MAX])
{
	struct reader r = {part.at, part.len, false};
	uint32_t check = get_number(&r), again = get_number(&r);
	struct string type = get_string(&r), public = get_string(&r), pair = get_string(&r);
	const uint8_t *ours = key->public.blob + key->public.len - TLS_SEED_BYTES;
	struct tls_key made;

	get_string(&r); /* the comment */
	if (r.bad || check != again || !is(type, "ssh-ed25519") || public.len != TLS_SEED_BYTES ||
		pair.len != 2 * TLS_SEED_BYTES || memcmp(public.at, ours, TLS_SEED_BYTES) != 0 ||
		memcmp(pair.at + TLS_SEED_BYTES, ours, TLS_SEED_BYTES) != 0)
		return refuse(why, -EINVAL, "the private key in it is damaged");
	for (uint8_t i = 1; r.left; i++, r.at++, r.left--)
		if (*r.at != i)
			return refuse(why, -EINVAL, "the private key in it is damaged");
	memcpy(key->seed, pair.at, TLS_SEED_BYTES);
	if (tls_key_from_seed(&made, key->seed) || !tls_key_equal(&made, &key->public))
		return refuse(
			why, -EINVAL, "its private and its public key do not belong together");
	return 0;
}

/* Of those that ssh-keygen -Z takes, libssh has these. */
static bool is_known(struct string cipher)
{
	static const char *const known[] = {
		"aes256-ctr", "aes192-ctr", "aes128-ctr", "aes256-cbc", "aes192-cbc", "aes128-cbc"};

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (is(cipher, known[i]))
			return true;
	return false;
}

static int parse_bytes(
	const uint8_t *bytes, size_t len, struct ssh_key *key, char why[SSH_KEY_WHY_MAX])
{
	struct reader r = {bytes, len, false};
	struct string cipher, kdf, public, private;
	uint32_t count;

	if (len < sizeof MAGIC || memcmp(bytes, MAGIC, sizeof MAGIC) != 0)
		return refuse(why, -EINVAL, "not a key of the form openssh-key-v1");
	r.at += sizeof MAGIC;
	r.left -= sizeof MAGIC;
	cipher = get_string(&r);
	kdf = get_string(&r);
	get_string(&r); /* options of the kdf */
	count = get_number(&r);
	public = get_string(&r);
	private = get_string(&r);
	/* ciphers that authenticate have a tag behind it */
	if (r.bad || (r.left && is(cipher, "none")) || count != 1)
		return refuse(why, -EINVAL, "not a key of the form openssh-key-v1");
	if (tls_key_from_blob(&key->public, public.at, public.len))
		return refuse(why, -EOPNOTSUPP,
			"not an Ed25519 key: other kinds are not used (ssh-keygen -t ed25519)");
	key->encrypted = !is(cipher, "none");
	key->is_strange = !is(kdf, "bcrypt") || !is_known(cipher);
	if (key->encrypted)
		return 0;
	if (!is(kdf, "none"))
		return refuse(why, -EINVAL, "not a key of the form openssh-key-v1");
	return parse_private(private, key, why);
}

/* The base64 between the two lines, without the ends of lines: its length, or -1. */
static ssize_t gather(const char *text, size_t len, char *out)
{
	const char *begin = memmem(text, len, BEGIN, strlen(BEGIN)), *end;
	size_t n = 0;

	if (!begin)
		return -1;
	begin += strlen(BEGIN);
	end = memmem(begin, len - (size_t)(begin - text), END, strlen(END));
	if (!end)
		return -1;
	for (; begin < end; begin++)
		if (*begin != '\n' && *begin != '\r')
			out[n++] = *begin;
	return (ssize_t)n;
}

int ssh_key_parse(const char *text, size_t len, struct ssh_key *key, char why[SSH_KEY_WHY_MAX])
{
	char *base64 = malloc(len + 1);
	uint8_t *bytes = malloc(len + 1);
	ssize_t n;
	int err;

	*key = (struct ssh_key){.encrypted = false};
	if (!base64 || !bytes) {
		free(base64);
		free(bytes);
		return refuse(why, -ENOMEM, "out of memory");
	}
	n = gather(text, len, base64);
	if (n >= 0)
		n = tls_base64_decode(base64, (size_t)n, bytes, len);
	err = n < 0 ? refuse(why, -EINVAL,
			      "not a private key of OpenSSH (" BEGIN "), as ssh-keygen makes it")
		    : parse_bytes(bytes, (size_t)n, key, why);
	if (err)
		explicit_bzero(key, sizeof *key);
	explicit_bzero(base64, len + 1);
	explicit_bzero(bytes, len + 1);
	free(base64);
	free(bytes);
	return err;
}

/* NUL behind it; for forget_file. */
static int read_file(const char *path, char **out, size_t *len, char why[SSH_KEY_WHY_MAX])
{
	char text[PASSWORD_WHY_MAX];
	int fd = password_open_private(path, text), err = 0;
	ssize_t n = 1;

	*out = NULL;
	*len = 0;
	if (fd < 0) {
		snprintf(why, SSH_KEY_WHY_MAX, "%s", text);
		return fd;
	}
	*out = malloc(SSH_KEY_FILE_MAX);
	while (*out && *len < SSH_KEY_FILE_MAX &&
		(n = read(fd, *out + *len, SSH_KEY_FILE_MAX - *len)) > 0)
		*len += (size_t)n;
	err = !*out ? -ENOMEM : n < 0 ? -errno : *len == SSH_KEY_FILE_MAX ? -EFBIG : 0;
	close(fd);
	if (err)
		snprintf(why, SSH_KEY_WHY_MAX, "%.200s: %s", path, strerror(-err));
	else
		(*out)[*len] = '\0';
	return err;
}

static void forget_file(char *file)
{
	if (file)
		explicit_bzero(file, SSH_KEY_FILE_MAX);
	free(file);
}

int ssh_key_load(const char *path, struct ssh_key *key, char why[SSH_KEY_WHY_MAX])
{
	char text[SSH_KEY_WHY_MAX], *file;
	size_t len;
	int err = read_file(path, &file, &len, why);

	if (!err) {
		err = ssh_key_parse(file, len, key, text);
		if (err)
			snprintf(why, SSH_KEY_WHY_MAX, "%.200s: %.250s", path, text);
	}
	forget_file(file);
	return err;
}

/* Of the key without its passphrase. */
static int take_plain(char *plain, struct ssh_key *key, char why[SSH_KEY_WHY_MAX])
{
	struct tls_key public = key->public;
	int err = ssh_key_parse(plain, strlen(plain), key, why);

	if (!err && (key->encrypted || !tls_key_equal(&public, &key->public)))
		err = refuse(why, -EINVAL, "its private and its public key do not belong together");
	ssh_unlock_free(plain);
	return err;
}

int ssh_key_unlock(
	const char *path, const char *passphrase, struct ssh_key *key, char why[SSH_KEY_WHY_MAX])
{
	char text[SSH_KEY_WHY_MAX], *file, *plain;
	size_t len;
	int err = read_file(path, &file, &len, why);

	if (err)
		goto out;
	err = ssh_key_parse(file, len, key, text);
	if (!err && key->encrypted) {
		err = ssh_unlock(file, passphrase, &plain);
		if (!err)
			err = take_plain(plain, key, text);
		else if (err == -EKEYREJECTED)
			snprintf(text, sizeof text, "the passphrase is wrong");
		else
			snprintf(text, sizeof text, "%s", strerror(-err));
	}
	if (err) {
		explicit_bzero(key, sizeof *key);
		snprintf(why, SSH_KEY_WHY_MAX, "%.200s: %.250s", path, text);
	}
out:
	forget_file(file);
	return err;
}
